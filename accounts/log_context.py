"""What every line of the log says beside its message: which HTTP request, team, synthesis and attempt it concerns.

`config.logs` writes it. It lives here because all of accounts, synthesis and gpu_worker fill it in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_fields: ContextVar[dict[str, object] | None] = ContextVar("log_fields", default=None)


@contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Until the end of the block, each line of the log carries `fields` beside those from around it."""
    token = _fields.set({**current(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def note(**fields: object) -> None:
    """Add `fields` to the innermost block, once they are known. Outside of any block nothing is kept: it would stick
    to whatever the thread does next."""
    bound = _fields.get()
    # The same dictionary in whichever thread or task carries on with this request.
    if bound is not None:
        bound.update(fields)


def current() -> Mapping[str, object]:
    """What holds right now."""
    return _fields.get() or {}
