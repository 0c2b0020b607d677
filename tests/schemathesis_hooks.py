"""What schemathesis must know to get past the doors of the API (SCHEMATHESIS_HOOKS=tests.schemathesis_hooks).

Ids and voices that it invents exist nowhere, so that all it would see is 404. Half of its requests name objects that
are really there; those that delete, one in ten.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
import uuid
from functools import cache
from typing import Any

import httpx
import schemathesis

from tests.explore import KEY_LOST

#: Set by `tests.explore`.
URL, KEY = os.environ.get("CHORUS_EXPLORE_URL", ""), os.environ.get("CHORUS_EXPLORE_KEY", "")
#: Parameter of an address → where such ids are listed, and what the list calls them.
LISTS = {
    "voice_id": ("/v1/voices", "id"),
    "synthesis_id": ("/v1/syntheses", "id"),
    "history_item_id": ("/v1/syntheses?status=succeeded", "id"),
    "batch_id": ("/v1/batches", "id"),
    "webhook_id": ("/v1/webhooks", "id"),
    "consent_id": ("/v1/audio/voice_consents", "id"),
    "key_id": ("/v1/keys", "id"),
    "model": ("/v1/models", "id"),
}
#: Seconds after which the lists are read again.
_FRESH = 20
_random = random.Random(7)


@schemathesis.serializer("application/jsonl", "application/x-ndjson", "text/csv")
def _as_text(context: Any, value: Any) -> bytes:
    """A file of rows is text: what was generated, as it is."""
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")


@cache
def _ids(address: str, name: str, _time: int) -> list[str]:
    body = httpx.get(f"{URL}{address}", headers={"authorization": f"Bearer {KEY}"}, timeout=60).json()
    rows = body.get("results") or body.get("data") or []
    return [row[name] for row in rows if row[name] != _own_key()]


@cache
def _own_key() -> str:
    """Id of the key that the run itself uses: it must survive what it tries."""
    page = f"{URL}/v1/keys?limit=100"
    while True:
        body = httpx.get(page, headers={"authorization": f"Bearer {KEY}"}, timeout=60).json()
        for row in body["results"]:
            if KEY.startswith(row["hint"].rstrip("…")):
                return str(row["id"])
        # Runs before this one have left theirs.
        page = body["next"]


def _is_own_key(identifier: object) -> bool:
    own = uuid.UUID(_own_key())
    try:
        return uuid.UUID(str(identifier)) == own
    except ValueError:
        return False


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Name what is there."""
    deletes = case.method.upper() == "DELETE"
    for name in case.path_parameters or {}:
        address, field = LISTS.get(name, ("", ""))
        if address and URL and _random.random() < (0.1 if deletes else 0.5):
            there = _ids(address, field, int(time.monotonic() / _FRESH))
            if there:
                case.path_parameters[name] = _random.choice(there)
    # From a list, or from an answer that schemathesis remembers. It may be looked at, and nothing else.
    if URL and _is_own_key((case.path_parameters or {}).get("key_id")) and case.method.upper() != "GET":
        case.path_parameters["key_id"] = str(uuid.uuid4())
    body = case.body
    if isinstance(body, dict) and isinstance(body.get("voice"), str) and _random.random() < 0.7:
        body["voice"] = "Heart"


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """End everything when the run's own key is refused."""
    sent = response.request.headers.get("authorization", "")
    if KEY and response.status_code == 401 and sent == f"Bearer {KEY}":
        print(f"{case.method} {case.path}: 401 with the run's own key", file=sys.stderr, flush=True)
        # Not an exception, which would be one more finding: this thread is one of several.
        os._exit(KEY_LOST)
