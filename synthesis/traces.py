"""One trace from the HTTP request through the queue to the engine, though a doorbell says nothing of either.

What the worker needs in order to go on with a trace lies in Redis under the request's id. When it is lost, the worker
begins a trace of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from redis.exceptions import RedisError

from accounts import tracing
from accounts.redis import client
from synthesis.models import SynthesisRequest

logger = logging.getLogger(__name__)

#: Seconds for which a queued request can still be told from where it came.
_KEEP = 24 * 3600


def carry(request: SynthesisRequest) -> None:
    """Once the caller's transaction is committed, leave the current span where the worker that takes `request` will
    find it. Before the doorbell, or that worker may be faster."""
    parent = tracing.traceparent()
    if parent:
        transaction.on_commit(lambda: _leave(request, parent), robust=True)


def _leave(request: SynthesisRequest, parent: str) -> None:
    try:
        client().set(_key(request), parent, ex=_KEEP)
    except RedisError:
        logger.debug("Redis does not answer: a trace ends at the queue")


@contextmanager
def continued(request: SynthesisRequest) -> Iterator[None]:
    """The block as the span `synthesis` of the trace that submitted `request`, with its time in the queue before it."""
    if not tracing.is_on():
        yield
        return
    try:
        found = client().get(_key(request))
    except RedisError:
        found = None
    with tracing.span(
        "synthesis",
        parent=found.decode() if found else "",  # type: ignore[union-attr]
        synthesis=str(request.id),
        team=str(request.team_id),
        attempt=request.attempt,
        engine=request.engine,
        characters=request.characters,
    ):
        if request.started_at and request.attempt == 1:
            tracing.past("queue", request.created_at, request.started_at)
        yield


def _key(request: SynthesisRequest) -> str:
    return f"trace:{request.id}"
