"""What pages hear of requests under way: a doorbell, and the sound itself. Served by the ASGI process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET

from accounts import permissions
from accounts.actors import Actor
from accounts.web.shell import current_actor
from synthesis import events, listening, watching
from synthesis.engines import capabilities
from synthesis.models import Status, SynthesisRequest
from synthesis.services import requests

#: A comment after so many quiet seconds keeps proxies from closing the stream and finds clients that are gone.
HEARTBEAT_SECONDS = 15


@require_GET
async def stream(request: HttpRequest) -> HttpResponseBase:
    """`event: request` with an id for each change of the team's requests, `event: queue` when places moved."""
    actor = await sync_to_async(_actor)(request)
    if actor is None:
        # 204 tells an EventSource to stop trying, where a redirect to the sign-in page would be followed for ever.
        return HttpResponse(status=204)
    actor.require(permissions.SYNTHESES_READ)
    return StreamingHttpResponse(
        _messages(actor),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _actor(request: HttpRequest) -> Actor | None:
    return current_actor(request) if request.user.is_authenticated else None


async def _messages(actor: Actor) -> AsyncIterator[str]:
    async for heard in events.listen(
        events.team_channel(actor.team.id), events.QUEUE, every=HEARTBEAT_SECONDS
    ):
        if heard is None:
            yield ": still here\n\n"
        elif heard[0] == events.QUEUE:
            # Whose request it was is nobody else's business.
            yield "event: queue\ndata: moved\n\n"
        else:
            yield f"event: request\ndata: {heard[1]}\n\n"


@require_GET
async def sound(request: HttpRequest, request_id: UUID) -> HttpResponseBase:
    """A request as MP3 while it is spoken; its file when it is done, 204 when there is nothing (more) to hear."""
    actor = await sync_to_async(_actor)(request)
    if actor is None:
        return HttpResponse(status=204)
    row = await sync_to_async(requests.find)(actor, request_id)
    if row.status == Status.SUCCEEDED:
        return HttpResponseRedirect(reverse("request_audio", args=[row.id]))
    if row.is_final:
        return HttpResponse(status=204)
    return StreamingHttpResponse(
        _spoken(row),
        content_type="audio/mpeg",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Accept-Ranges": "none"},
    )


async def _spoken(row: SynthesisRequest) -> AsyncIterator[bytes]:
    await watching.release_thread()
    heard = listening.Sound(format="mp3", rate=capabilities(row.engine).sample_rate)
    try:
        async with watching.watch(row.id) as seen:
            async for data in heard.of(seen):
                yield data
    except listening.Ended:
        # Failed or cancelled on the way: the card says why.
        return
