"""The parts of a recording: play one, have it said again, compare takes, choose."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from accounts import permissions
from accounts.errors import NotFound
from accounts.services import rates
from accounts.web.once import once
from accounts.web.shell import PageRequest, fragment, team_page
from synthesis import delivery, storage
from synthesis.services import requests
from synthesis.services import takes as service
from synthesis.text import clean
from synthesis.web.cards import PartCard, part_card, request_card


@require_safe
@team_page
def parts(request: PageRequest, request_id: UUID) -> HttpResponse:
    """All parts of a finished request, for its card."""
    return _answer(request, request_id)


@require_POST
@team_page
def again(request: PageRequest, request_id: UUID, index: int) -> HttpResponse:
    """One more take of one part."""

    def say() -> UUID:
        rates.hit(request.actor)
        return service.again(actor=request.actor, request_id=request_id, index=index).id

    once(request, say)
    return _answer(request, request_id)


@require_POST
@team_page
def choose(request: PageRequest, request_id: UUID, index: int) -> HttpResponse:
    """Hear another take in the recording."""
    wanted = request.POST.get("take", "")
    try:
        take = UUID(wanted) if wanted else None
    except ValueError:
        raise NotFound from None
    service.choose(actor=request.actor, request_id=request_id, index=index, take_id=take)
    return _answer(request, request_id, joined=True)


@require_safe
@team_page
def first_sound(request: PageRequest, request_id: UUID, index: int) -> HttpResponseBase:
    """How a part sounded at first."""
    key = service.sound(request.actor, request_id, index)
    return delivery.serve(
        request, key=key, size=storage.size(key), content_type="audio/flac", filename=f"{index + 1}.flac"
    )


def _answer(request: PageRequest, request_id: UUID, *, joined: bool = False) -> HttpResponse:
    if request.method == "POST" and not request.htmx:
        return redirect("request", request_id)
    # The player gets the new recording as well.
    templates = ["studio/parts.html", *(["parts/player_swap.html"] if joined else [])]
    return fragment(request, *templates, context=context(request, request_id))


def context(request: PageRequest, request_id: UUID) -> dict[str, object]:
    """What the list of parts needs."""
    found, of_request = service.parts(request.actor, request_id)
    cards: list[PartCard] = [
        part_card(found, part, request.user, characters=clean.count(part.segment.text)) for part in of_request
    ]
    return {
        "item": request_card(requests.find(request.actor, request_id), request.user),
        "parts": cards,
        "may_speak": request.actor.can(permissions.SYNTHESES_WRITE),
    }
