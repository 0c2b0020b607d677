"""The event stream behind pages: a doorbell for requests that are under way. Served by the ASGI process."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from accounts import permissions
from accounts.actors import Actor
from accounts.web.shell import current_actor
from synthesis import events

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
