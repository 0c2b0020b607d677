"""Announcements reach those who listen, after the commit, and only the team's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient

from synthesis import events
from synthesis.services import dispatch
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _close():
    """The connection of asgiref's thread would keep the test database from being dropped."""
    yield
    await sync_to_async(connections.close_all)()


async def _end(stream: Any) -> None:
    await stream.aclose()


async def _next(stream, want, within=5.0):
    async def find():
        async for item in stream:
            if want(item):
                return item
        raise AssertionError("the stream ended")

    return await asyncio.wait_for(find(), within)


async def test_a_listener_hears_what_is_announced():
    alice = await sync_to_async(factories.owner)("Alice")
    stream = events.listen(events.team_channel(alice.actor.team.id), every=5)
    assert await anext(stream) is None
    request = await sync_to_async(factories.submit)(alice)
    assert await _next(stream, bool) == (events.team_channel(alice.actor.team.id), str(request.id))
    await _end(stream)


async def test_without_redis_a_listener_is_told_to_look(settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    stream = events.listen("x", every=0.01)
    assert [await anext(stream) for _i in range(3)] == [None, None, None]
    await _end(stream)


async def _open(person):
    client = AsyncClient()
    await sync_to_async(client.force_login)(person.user)
    response = await client.get("/events/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    stream: Any = aiter(response)  # type: ignore[arg-type]
    assert await anext(stream) == b": still here\n\n"
    return stream


async def test_a_page_hears_its_team_and_never_a_strangers_ids():
    alice, charlie = (
        await sync_to_async(factories.owner)("Alice"),
        await sync_to_async(factories.owner)("Charlie"),
    )
    hers, his = await _open(alice), await _open(charlie)
    request = await sync_to_async(factories.submit)(alice)
    assert (
        await _next(hers, lambda item: b"request" in item)
        == f"event: request\ndata: {request.id}\n\n".encode()
    )
    await sync_to_async(dispatch.claim)(worker="w", engine="hibari")
    heard = await _next(his, lambda item: item.startswith(b"event"))
    assert heard == b"event: queue\ndata: moved\n\n"
    await _end(hers)
    await _end(his)


async def test_without_a_session_the_stream_says_stop():
    assert (await AsyncClient().get("/events/")).status_code == 204
