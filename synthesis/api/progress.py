"""`/v1/syntheses/{id}/events`: a request as it goes on, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.conf import settings
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from accounts import permissions
from accounts.actors import Actor
from accounts.api.base import ApiView, parse_id
from accounts.api.schema import errors
from synthesis import watching
from synthesis.api import objects
from synthesis.api.fields import ServerSentEventSerializer
from synthesis.errors import RequestNotFound
from synthesis.models import SynthesisRequest
from synthesis.services import queue, requests

#: A place in the queue is told anew this often, in seconds: others move it without this request changing.
_PLACE_SECONDS = 3.0
#: A comment after so many quiet seconds keeps proxies from closing the stream and finds callers that are gone.
_HEARTBEAT_SECONDS = 15.0
#: Milliseconds after which a lost connection is made again.
_RETRY = 2000


class SynthesisEventsView(ApiView):
    """Follow one request."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}

    @extend_schema(
        summary="Follow a synthesis request",
        tags=["Syntheses"],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                ServerSentEventSerializer,
                description="`event: progress` whenever something changes, with `status`, `segments_done`, "
                "`segments_total`, `queue_position`, `ahead`, `eta_seconds` and `workers` as JSON; at last "
                "`event: end` with the whole request, after which the stream ends.",
            ),
            **errors(404),
        },
    )
    def get(self, request: Request, synthesis_id: str) -> HttpResponseBase:
        """Each event is about what is true now: who connects again has missed nothing."""
        row = requests.find(self.actor, parse_id(synthesis_id, RequestNotFound))
        follow = _Follow(self.actor, request, row)
        return StreamingHttpResponse(
            follow.later() if settings.CHORUS_ASGI else follow.now(),
            content_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )


class _Follow:
    """What one caller is told of one request."""

    def __init__(self, actor: Actor, request: Request, row: SynthesisRequest) -> None:
        self._actor = actor
        self._request = request
        self._row = row
        self._told: dict[str, Any] = {}

    def now(self) -> Iterator[bytes]:
        """Where nothing may wait: what is true now, and the caller comes again."""
        yield _retry()
        yield from self._look()

    async def later(self) -> AsyncIterator[bytes]:
        """Until the request has ended."""
        await watching.release_thread()
        yield _retry()
        quiet = 0.0
        async with watching.watch(self._row.id) as seen:
            while True:
                events = await asyncio.to_thread(self._look_in_thread)
                for event in events:
                    yield event
                if self._row.is_final:
                    return
                quiet = 0.0 if events else quiet + _PLACE_SECONDS
                if quiet >= _HEARTBEAT_SECONDS:
                    yield b": still here\n\n"
                    quiet = 0.0
                await seen.change(_PLACE_SECONDS)

    def _look_in_thread(self) -> list[bytes]:
        close_old_connections()
        try:
            return self._look()
        finally:
            close_old_connections()

    def _look(self) -> list[bytes]:
        """What is new since the last look."""
        try:
            self._row = requests.find(self._actor, self._row.id)
        except RequestNotFound:  # deleted: whatever was told before was the last
            self._row.status = "canceled"
            return [_event("end", {"id": str(self._row.id), "status": "canceled"})]
        if self._row.is_final:
            return [_event("end", objects.synthesis(self._row, self._request))]
        outlook = queue.outlook(self._row)
        state = {
            "id": str(self._row.id),
            "status": self._row.status,
            "segments_done": self._row.segments_done,
            "segments_total": self._row.segments_total,
            "queue_position": outlook.place.position if outlook.place else None,
            "ahead": outlook.place.ahead if outlook.place else None,
            "eta_seconds": outlook.seconds,
            "workers": outlook.workers,
        }
        if state == self._told:
            return []
        self._told = state
        return [_event("progress", state)]


def _retry() -> bytes:
    return f"retry: {_RETRY}\n\n".encode()


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
