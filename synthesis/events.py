"""Hints to whoever is watching a request: look at its row again. Losing one costs a watcher a poll interval."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from accounts.redis import client

logger = logging.getLogger(__name__)


def channel(request_id: UUID | str) -> str:
    """The channel on which changes of a request are announced."""
    return f"request:{request_id}"


def announce(request_id: UUID) -> None:
    """Tell watchers, once the caller's transaction is committed, that a request has changed."""
    transaction.on_commit(lambda: _publish(request_id), robust=True)


def _publish(request_id: UUID) -> None:
    try:
        client().publish(channel(request_id), "changed")
    except RedisError:
        logger.warning("Redis does not answer: watchers see a change at their next poll")
