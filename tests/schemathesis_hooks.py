"""What schemathesis must know to try the API: loaded with SCHEMATHESIS_HOOKS=tests.schemathesis_hooks."""

from __future__ import annotations

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/jsonl", "application/x-ndjson", "text/csv")
def _as_text(context: Any, value: Any) -> bytes:
    """A file of rows is text: what was generated, as it is."""
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """The key that the run itself uses must survive it: nobody guesses its id, but a list tells it."""
    if case.method.upper() == "DELETE" and case.path.startswith("/v1/keys/"):
        case.path_parameters["key_id"] = "00000000-0000-7000-8000-000000000000"
