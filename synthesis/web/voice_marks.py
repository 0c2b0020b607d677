"""Tags of a voice, and the star."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from django_htmx.http import reswap

from accounts import permissions
from accounts.errors import InvalidInput
from accounts.web.shell import PageRequest, fragment, team_page
from synthesis.models import Voice
from synthesis.services import voice_marks as marks
from synthesis.services import voices as service
from synthesis.web.cards import voice_card


@require_POST
@team_page
def tags(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Add tags (with commas between them), or take one away."""
    voice = service.seen(request.actor, voice_id)
    before = marks.tags_of(request.actor.team, voice)
    added = [part.strip() for part in request.POST.get("add", "").replace("，", ",").split(",")]
    names = [*before, *(part for part in added if part)]
    try:
        voice = marks.set_tags(
            actor=request.actor,
            voice_id=voice_id,
            names=[name for name in names if name != request.POST.get("remove")],
        )
    except InvalidInput as error:
        if not request.htmx:
            messages.error(request, str(error))
            return redirect("voice", voice_id)
        context = {
            **tags_context(request, voice),
            "tags_error": str(error),
            "added": request.POST.get("add", ""),
        }
        return reswap(fragment(request, "voices/tags.html", context=context, status=422), "outerHTML")
    if not request.htmx:
        return redirect("voice", voice_id)
    return fragment(request, "voices/tags.html", context=tags_context(request, voice))


def tags_context(request: PageRequest, voice: Voice) -> dict[str, Any]:
    own = marks.tags_of(request.actor.team, voice)
    return {
        "voice": voice,
        "tags": own,
        "other_tags": [tag for tag in marks.all_tags(request.actor) if tag not in own],
        "may_tag": request.actor.can(permissions.VOICES_WRITE) and voice.taken_down_at is None,
    }


@require_POST
@team_page
def favourite(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Mark a voice, or take the mark away."""
    wanted = request.POST.get("wanted") == "1"
    marks.set_favourite(actor=request.actor, voice_id=voice_id, wanted=wanted)
    if not request.htmx:
        return redirect("voices")
    card = voice_card(service.find(request.actor, voice_id))
    return fragment(request, "voices/favourite.html", context={"voice": card})
