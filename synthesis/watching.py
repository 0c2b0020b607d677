"""Watch requests from an event loop: however many are watched, one Redis connection and one query at a time.

For the ASGI process. A watcher holds neither a thread nor a database connection. Redis only says when to look; while it
is away, the rows are looked at every POLL_SECONDS anyway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from asgiref.sync import SyncToAsync, sync_to_async
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import close_old_connections
from redis.asyncio import Redis
from redis.exceptions import RedisError

from synthesis import events
from synthesis.models import SynthesisRequest
from synthesis.models.requests import FINAL

logger = logging.getLogger(__name__)

#: All watched rows are looked at this often, whatever Redis says.
POLL_SECONDS = 2.0
#: Announcements within so many seconds share one query.
_GATHER_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class State:
    """What of a row tells whether it has changed for its watchers."""

    status: str
    attempt: int
    segments_done: int

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in FINAL


@dataclass(eq=False, slots=True)
class Watch:
    """One watcher's view of one request; `state` is None until the row was first read, or when it is gone."""

    request_id: UUID
    state: State | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def change(self, within: float) -> bool:
        """Wait for the next change of `state`; False when there was none in `within` seconds."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def until_final(self, within: float) -> bool:
        """Wait for the end of the request; False when it has not come in `within` seconds, or the process ends."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not is_ending() and (self.state is None or not self.state.is_final):
                    await self.change(within)
        return self.state is not None and self.state.is_final

    def wake(self) -> None:
        """Have whoever waits for a change look around."""
        self._changed.set()

    def _see(self, state: State | None) -> None:
        if state != self.state:
            self.state = state
            self._changed.set()


class _Hub:
    """The watchers of one event loop, and the two tasks that serve them while there are any."""

    def __init__(self) -> None:
        self._watches: dict[UUID, set[Watch]] = {}
        self._dirty: set[UUID] = set()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def watch(self, request_id: UUID) -> AsyncIterator[Watch]:
        watch = Watch(request_id)
        self._watches.setdefault(request_id, set()).add(watch)
        self._look_at(request_id)
        if not self._tasks:
            # They serve everybody, so they must not run in the context of the request that came first.
            self._tasks = [
                asyncio.create_task(work(), context=Context()) for work in (self._look, self._listen)
            ]
        try:
            yield watch
        finally:
            others = self._watches[request_id]
            others.discard(watch)
            if not others:
                del self._watches[request_id]
            if not self._watches:
                for task in self._tasks:
                    # Kept until it has ended: the event loop alone would let it be collected while it tidies up.
                    self._ending.add(task)
                    task.add_done_callback(self._ending.discard)
                    task.cancel()
                self._tasks = []

    def wake(self) -> None:
        """Wake every watcher."""
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()

    def _look_at(self, request_id: UUID) -> None:
        self._dirty.add(request_id)
        self._wake.set()

    async def _look(self) -> None:
        """Read the rows that were announced, and all of them from time to time."""
        loop = asyncio.get_running_loop()
        next_poll = loop.time() + POLL_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_poll):
                    await self._wake.wait()
                    await asyncio.sleep(_GATHER_SECONDS)
            wanted, self._dirty = self._dirty, set()
            self._wake.clear()
            if loop.time() >= next_poll:
                wanted = set(self._watches)
                next_poll = loop.time() + POLL_SECONDS
            try:
                states = await asyncio.to_thread(_read, wanted)
            except DatabaseFailure:
                logger.warning("The database does not answer: watched requests are looked at again later")
                continue
            for request_id in wanted:
                for watch in self._watches.get(request_id, ()):
                    watch._see(states.get(request_id))

    async def _listen(self) -> None:
        """Hear what `synthesis.events` announces."""
        while True:
            try:
                async with (
                    Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1) as redis,
                    redis.pubsub() as pubsub,
                ):
                    await pubsub.psubscribe(events.request_channel("*"))
                    async for message in pubsub.listen():
                        if message["type"] == "pmessage":
                            self._heard(message["data"].decode())
            except (RedisError, OSError):
                await asyncio.sleep(POLL_SECONDS)

    def _heard(self, name: str) -> None:
        with suppress(ValueError):
            request_id = UUID(name)
            if request_id in self._watches:
                self._look_at(request_id)


def _read(request_ids: Iterable[UUID]) -> dict[UUID, State]:
    close_old_connections()
    try:
        rows = SynthesisRequest.objects.filter(id__in=list(request_ids)).values_list(
            "id", "status", "attempt", "segments_done"
        )
        return {row[0]: State(*row[1:]) for row in rows}
    finally:
        # With a pool (CONN_MAX_AGE 0) this gives the connection back.
        close_old_connections()


async def release_thread() -> None:
    """Give back the thread that Django keeps for the request that is being answered, and its database connection.

    asgiref makes another one when it is needed.
    """
    await sync_to_async(close_old_connections)()
    context = SyncToAsync.thread_sensitive_context.get(None)
    executor = SyncToAsync.context_to_thread_executor.pop(context, None) if context else None
    if executor is not None:
        executor.shutdown(wait=False)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, _Hub] = WeakKeyDictionary()
_ending = False


def is_ending() -> bool:
    """Whether the process has been told to end: whoever still waits is better answered than cut off."""
    return _ending


def end() -> None:
    """Have nobody wait any longer. For a signal's handler."""
    global _ending
    _ending = True
    for loop, hub in list(_hubs.items()):
        loop.call_soon_threadsafe(hub.wake)


def watch(request_id: UUID) -> AbstractAsyncContextManager[Watch]:
    """`async with watch(id) as seen:` follows a request in the running event loop."""
    loop = asyncio.get_running_loop()
    hub = _hubs.get(loop)
    if hub is None:
        hub = _hubs[loop] = _Hub()
    return hub.watch(request_id)
