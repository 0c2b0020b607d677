"""The first five minutes: what a newcomer has done already and what comes next, without the documentation."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts import permissions
from accounts.models import ApiKey, User
from accounts.web.shell import PageRequest, team_page
from synthesis.models import Status, SynthesisRequest, Voice


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do; `address` leads to where it is done."""

    words: str
    address: str
    done: bool


def steps(request: PageRequest) -> list[Step]:
    """What there is to be done; none for who has done it all, put it away, or may do none of it."""
    user, actor = request.user, request.actor
    if user.guided_at is not None or not actor.can(permissions.VOICES_WRITE):
        return []
    own = SynthesisRequest.objects.filter(user=user, team=actor.team)
    found = [
        Step(
            _("Record a voice: ten seconds of reading aloud"),
            reverse("voice_new"),
            Voice.objects.filter(team=actor.team, created_by=user, deleted_at=None).exists(),
        ),
        Step(_("Write a sentence and hear it"), "#id_text", own.filter(status=Status.SUCCEEDED).exists()),
        Step(
            _("Make an API key for your own programs"),
            f"{reverse('team')}#keys",
            ApiKey.objects.filter(team=actor.team, user=user).exists(),
        ),
    ]
    if all(step.done for step in found):
        _put_away(user)
        return []
    return found


@require_POST
@team_page
def put_away(request: PageRequest) -> HttpResponse:
    """Show them no more."""
    _put_away(request.user)
    return HttpResponse("") if request.htmx else redirect("studio")


def _put_away(user: User) -> None:
    User.objects.filter(pk=user.pk).update(guided_at=timezone.now())
