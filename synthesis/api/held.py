"""Answers that wait for the end of a request, without a thread where the process answers by ASGI.

A view returns a `Hold` instead of a response. Under ASGI the wait is a coroutine, which costs a few kilobytes; under
WSGI (a test, or a proxy that sent the request there) it holds the thread that it has.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from redis.exceptions import RedisError
from rest_framework.request import Request

from accounts.api.base import ApiView
from accounts.errors import Unavailable
from accounts.redis import client
from synthesis import events, listening, watching
from synthesis.models import SynthesisRequest
from synthesis.models.requests import FINAL

#: Another process is there again after so many seconds.
_RESTART_SECONDS = 2
#: `Prefer: wait` without a number, and the most that a number can ask for (Replicate's), in seconds.
WAIT_SECONDS = 60


@dataclass(slots=True)
class Hold:
    """Wait up to `seconds` for the end of a request, then answer with `finish`, in the view that returned this.

    `abandon` is called when the caller hangs up before that, and says whether there was something to give up; without
    it the request goes on.
    """

    view: HoldingView
    request_id: UUID
    seconds: float
    finish: Callable[[], HttpResponseBase]
    abandon: Callable[[], object] | None = None

    def answer(self) -> HttpResponseBase:
        """What `finish` returns, or its error, as the view's response.

        When the process ends, a request that nobody could come back for is given up, and the caller told to try again.
        """
        if watching.is_ending() and self.abandon is not None and self.abandon():
            return self.view.resume(_unavailable)
        return self.view.resume(self.finish)


@dataclass(slots=True, kw_only=True)
class Live(Hold):
    """The same for an answer that begins while the request is spoken: `respond` gets what `listen` yields.

    Until there is a first part nothing is sent, so that what goes wrong before that is a proper error by `finish`,
    which is also how WSGI answers: with the whole.
    """

    listen: Callable[[watching.Watch], AsyncIterator[bytes]]
    respond: Callable[[AsyncIterator[bytes]], HttpResponseBase]


def _unavailable() -> HttpResponseBase:
    raise Unavailable(retry_after=_RESTART_SECONDS)


class HoldingView(ApiView):
    """A view whose methods may return a `Hold`."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        """An asynchronous view under ASGI, a plain one elsewhere."""
        plain = super().as_view(**initkwargs)
        chosen = _hold_later(plain) if settings.CHORUS_ASGI else _hold_here(plain)
        # What REST framework and the schema know about a view are its attributes.
        return update_wrapper(chosen, plain)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """A hold is no response yet."""
        if isinstance(response, Hold):
            return response
        return super().finalize_response(request, response, *args, **kwargs)

    def resume(self, finish: Callable[[], HttpResponseBase]) -> HttpResponseBase:
        """What `dispatch` does with a handler."""
        try:
            response: HttpResponseBase = finish()
        except Exception as error:  # noqa: BLE001 - REST framework's own handler raises what it does not know
            response = self.handle_exception(error)
        return super().finalize_response(self.request, response)


def _hold_here(plain: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer = plain(request, *args, **kwargs)
        if isinstance(answer, Hold):
            _wait(answer.request_id, answer.seconds)
            return answer.answer()
        return answer

    return view


def _hold_later(plain: Callable[..., Any]) -> Callable[..., Any]:
    async def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        begun = asyncio.ensure_future(sync_to_async(plain)(request, *args, **kwargs))
        try:
            answer = await asyncio.shield(begun)
            if not isinstance(answer, Hold):
                return answer
            await watching.release_thread()
            if not isinstance(answer, Live):
                async with watching.watch(answer.request_id) as seen:
                    await seen.until_final(answer.seconds)
            elif sound := await _begin(answer):
                return await sync_to_async(answer.view.resume)(lambda: answer.respond(sound))
        except asyncio.CancelledError:
            # The caller hung up, perhaps while the request was being submitted.
            answer = await begun
            if isinstance(answer, Hold) and answer.abandon is not None:
                await sync_to_async(answer.abandon)()
            raise
        return await sync_to_async(answer.answer)()

    return view


async def _begin(live: Live) -> AsyncIterator[bytes] | None:
    """What is heard, as soon as there is something; None when the request ended, or its time was over, before that."""
    sound = _heard(live)
    first = asyncio.ensure_future(anext(sound, b""))
    try:
        await asyncio.wait({first}, timeout=live.seconds)
        if not first.done():
            live.abandon = None
    finally:
        first.cancel()
    with suppress(listening.Ended, asyncio.CancelledError):
        return _chained(await first, sound)
    return None


async def _heard(live: Live) -> AsyncGenerator[bytes, None]:
    over = False
    try:
        async with watching.watch(live.request_id) as seen:
            async for data in live.listen(seen):
                yield data
        over = True
    except listening.Ended:
        over = True
        raise
    finally:
        if not over and live.abandon is not None:
            _in_background(live.abandon)


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    # Only now: middleware used the thread once more after the view.
    await watching.release_thread()
    try:
        yield first
        async for data in rest:
            yield data
    finally:
        await rest.aclose()


_background: set[asyncio.Task[object]] = set()


def _in_background(work: Callable[[], object]) -> None:
    """Do `work` in a thread, though the task that asks for it is being cancelled."""

    def run() -> None:
        close_old_connections()
        try:
            work()
        finally:
            close_old_connections()

    task = asyncio.create_task(asyncio.to_thread(run), context=Context())
    _background.add(task)
    task.add_done_callback(_background.discard)


def _wait(request_id: UUID, seconds: float) -> bool:
    """Wait in this thread; whether the request has ended."""
    deadline = time.monotonic() + seconds
    try:
        with client().pubsub(ignore_subscribe_messages=True) as changes:  # type: ignore[no-untyped-call]
            changes.subscribe(events.request_channel(request_id))
            while not _is_final(request_id):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                changes.get_message(timeout=min(left, watching.POLL_SECONDS))
    except RedisError:
        while not _is_final(request_id):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, watching.POLL_SECONDS))
    return True


def _is_final(request_id: UUID) -> bool:
    return SynthesisRequest.objects.filter(id=request_id, status__in=FINAL).exists()


def wanted_wait(request: Request) -> int | None:
    """Seconds that `Prefer: wait[=n]` asks for, at most WAIT_SECONDS; None without it, and for 0.

    As RFC 7240 has it, other preferences and what is none are ignored, and the first `wait` counts.
    """
    for preference in request.headers.get("Prefer", "").split(","):
        name, _equals, value = (part.strip() for part in preference.partition(";")[0].partition("="))
        if name.lower() != "wait":
            continue
        seconds = value.strip('"')
        if not seconds:
            return WAIT_SECONDS
        if not (seconds.isascii() and seconds.isdigit()):
            return None
        # Three digits are more than the most already; thousands of them are no number to Python.
        return min(int(seconds.lstrip("0")[:3] or 0), WAIT_SECONDS) or None
    return None
