"""Hints to whoever is watching: look at the rows again. Losing one costs a watcher an interval, and nothing else.

Writers `announce`; processes under ASGI `listen`, without holding a thread or a database connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import UUID

from django.conf import settings
from django.db import transaction
from redis import asyncio as redis_async
from redis.exceptions import RedisError

from accounts.redis import client
from synthesis.models import SynthesisRequest

logger = logging.getLogger(__name__)

#: Something was taken from the queue or added to it: places have changed.
QUEUE = "events:queue"


def request_channel(request_id: UUID | str) -> str:
    """Where changes of one request are announced."""
    return f"events:request:{request_id}"


def team_channel(team_id: UUID | str) -> str:
    """Where changes of any of a team's requests are announced."""
    return f"events:team:{team_id}"


def announce(request: SynthesisRequest, *, queue_moved: bool = False) -> None:
    """Tell watchers, once the caller's transaction is committed, that `request` has changed.

    The message is the request's id on each channel.
    """
    channels = [request_channel(request.id), team_channel(request.team_id)]
    if queue_moved:
        channels.append(QUEUE)
    transaction.on_commit(lambda: _publish(channels, str(request.id)), robust=True)


def _publish(channels: list[str], message: str) -> None:
    try:
        with client().pipeline(transaction=False) as pipeline:
            for channel in channels:
                pipeline.publish(channel, message)
            pipeline.execute()
    except RedisError:
        logger.warning("Redis does not answer: watchers see a change at their next look")


async def listen(*channels: str, every: float) -> AsyncIterator[tuple[str, str] | None]:
    """`(channel, message)` for each announcement; None at the start and whenever `every` seconds were quiet.

    None means: look for yourself. It also comes when Redis is away, so that a watcher who looks at each None misses
    nothing. Never ends by itself.
    """
    while True:
        try:
            async with (
                redis_async.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1) as connection,
                connection.pubsub(ignore_subscribe_messages=True) as subscription,
            ):
                await subscription.subscribe(*channels)
                # Only now: a change between the watcher's look and the subscription would be lost otherwise.
                yield None
                async for heard in _heard(subscription, every):
                    yield heard
        except RedisError:
            yield None
            await asyncio.sleep(min(1.0, every))


async def _heard(
    subscription: redis_async.client.PubSub, every: float
) -> AsyncIterator[tuple[str, str] | None]:
    while True:
        message = await subscription.get_message(ignore_subscribe_messages=True, timeout=every)
        yield (message["channel"].decode(), message["data"].decode()) if message else None
