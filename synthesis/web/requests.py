"""Single requests."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from accounts import permissions
from accounts.web.shell import PageRequest, fragment, show, team_page
from synthesis.languages import language_name
from synthesis.services import requests as service
from synthesis.web.cards import request_card


@require_safe
@team_page
def detail(request: PageRequest, request_id: UUID) -> HttpResponse:
    """All that is known about one request."""
    found = service.find(request.actor, request_id)
    output = getattr(found, "output", None)
    context = {
        "item": request_card(found, request.user),
        "request_row": found,
        "output": output,
        "language": language_name(found.language),
        "events_url": reverse("events"),
        "may_delete": request.actor.can(permissions.SYNTHESES_WRITE),
        "speed_of_making": output.seconds / found.engine_seconds if output and found.engine_seconds else None,
    }
    return show(request, "history/request.html", context, section="history")


@require_safe
@team_page
def card(request: PageRequest, request_id: UUID) -> HttpResponse:
    """The card as it is now, for a page that shows it already."""
    found = service.find(request.actor, request_id)
    return fragment(request, "studio/request_card.html", context={"item": request_card(found, request.user)})


@require_POST
@team_page
def cancel(request: PageRequest, request_id: UUID) -> HttpResponse:
    """End a request that has not ended."""
    service.cancel(actor=request.actor, request_id=request_id)
    if not request.htmx:
        return redirect("request", request_id)
    found = service.find(request.actor, request_id)
    return fragment(request, "studio/request_card.html", context={"item": request_card(found, request.user)})


@require_POST
@team_page
def delete(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Remove the words and the sound of a request; what it used stays on the account."""
    service.delete(actor=request.actor, request_id=request_id)
    messages.success(request, _("Text and recording are deleted."))
    return HttpResponseClientRedirect(reverse("history")) if request.htmx else redirect("history")
