"""Single requests and the history of a team."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import permissions
from accounts.actors import Actor
from accounts.web.shell import PageRequest, fragment, show, team_page
from synthesis.errors import RequestNotFound
from synthesis.models import Status, SynthesisRequest
from synthesis.services import dispatch
from synthesis.web.cards import request_card, request_cards
from synthesis.web.wording import language_name

PAGE = 20


def visible_requests(actor: Actor) -> QuerySet[SynthesisRequest]:
    """The team's requests, the newest first, with what a card needs."""
    actor.require(permissions.SYNTHESES_READ)
    requests = SynthesisRequest.objects.filter(team=actor.team, deleted_at=None)
    return requests.select_related("voice", "voice_version", "output", "user").order_by("-id")


def own_request(actor: Actor, request_id: UUID) -> SynthesisRequest:
    """One of the team's requests; RequestNotFound, also for another team's."""
    found = visible_requests(actor).filter(id=request_id).first()
    if found is None:
        raise RequestNotFound
    return found


@require_safe
@team_page
def history(request: PageRequest) -> HttpResponse:
    """Everything that the team has had spoken: search, filter, page."""
    q = " ".join(request.GET.get("q", "").replace("\0", "").split())
    states = [("", _("All")), ("open", _("Under way")), ("succeeded", _("Ready")), ("failed", _("Failed"))]
    states.append(("canceled", _("Cancelled")))
    state = request.GET.get("state", "")
    found = visible_requests(request.actor)
    if q:
        found = found.filter(Q(text__icontains=q) | Q(title__icontains=q))
    if state == "open":
        found = found.filter(status__in=[Status.QUEUED, Status.RUNNING])
    elif state in Status.values:
        found = found.filter(status=state)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    kept = {name: value for name, value in (("q", q), ("state", state)) if value}
    context = {
        "page": page,
        "items": request_cards(page.object_list),
        "q": q,
        "state": state,
        "states": states,
        "filtering": bool(kept),
        "query": f"{urlencode(kept)}&" if kept else "",
        "retention_days": request.actor.team.plan.retention_days,
    }
    return show(request, "history/history.html", context, section="history")


@require_safe
@team_page
def detail(request: PageRequest, request_id: UUID) -> HttpResponse:
    """All that is known about one request."""
    found = own_request(request.actor, request_id)
    output = getattr(found, "output", None)
    context = {
        "item": request_card(found),
        "request_row": found,
        "output": output,
        "language": language_name(found.language),
        "speed_of_making": output.seconds / found.engine_seconds if output and found.engine_seconds else None,
    }
    return show(request, "history/request.html", context, section="history")


@require_safe
@team_page
def card(request: PageRequest, request_id: UUID) -> HttpResponse:
    """The card as it is now, for a page that shows it already."""
    found = own_request(request.actor, request_id)
    return fragment(request, "studio/request_card.html", context={"item": request_card(found)})


@require_POST
@team_page
def cancel(request: PageRequest, request_id: UUID) -> HttpResponse:
    """End a request that has not ended."""
    request.actor.require(permissions.SYNTHESES_WRITE)
    found = own_request(request.actor, request_id)
    dispatch.cancel(found.id)
    if not request.htmx:
        return redirect("request", found.id)
    found = own_request(request.actor, request_id)
    return fragment(request, "studio/request_card.html", context={"item": request_card(found)})
