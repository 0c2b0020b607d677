"""The history of a team: search, filter, favourites, many at once."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from accounts import permissions
from accounts.errors import InvalidInput
from accounts.models import Membership
from accounts.services import limits, rates
from accounts.web.shell import PageRequest, fragment, show, team_page
from synthesis.models import Status, SynthesisRequest, Voice
from synthesis.services import bundles
from synthesis.services import requests as service
from synthesis.web.cards import request_card, request_cards, voice_name

PAGE = 20
_NAMES = ("q", "state", "voice", "person", "since", "until", "favourites")


@dataclass(frozen=True, slots=True)
class Filters:
    """What the query string asks for; nonsense counts as nothing."""

    q: str
    state: str
    voice: str
    person: str
    since: str
    until: str
    favourites: str

    @classmethod
    def of(cls, query: QueryDict) -> Filters:
        """From a query string."""
        given = {name: " ".join(query.get(name, "").replace("\0", "").split()) for name in _NAMES}
        for name in ("voice", "person"):
            given[name] = given[name] if _uuid(given[name]) else ""
        for name in ("since", "until"):
            given[name] = given[name] if _day(given[name]) else ""
        return cls(**given)

    def kept(self) -> dict[str, str]:
        """Those that say something."""
        return {name: value for name in _NAMES if (value := getattr(self, name))}

    def apply(self, found: QuerySet[SynthesisRequest], zone: zoneinfo.ZoneInfo) -> QuerySet[SynthesisRequest]:
        """Narrow `found`; days are those of the team."""
        if self.q:
            found = found.filter(Q(text__icontains=self.q) | Q(title__icontains=self.q))
        if self.state == "open":
            found = found.filter(status__in=[Status.QUEUED, Status.RUNNING])
        elif self.state in Status.values:
            found = found.filter(status=self.state)
        if self.voice:
            found = found.filter(voice=UUID(self.voice))
        if self.person:
            found = found.filter(user=UUID(self.person))
        if since := _day(self.since):
            found = found.filter(created_at__gte=datetime.combine(since, time.min, zone))
        if until := _day(self.until):
            found = found.filter(created_at__lt=datetime.combine(until + timedelta(days=1), time.min, zone))
        # An annotation of `requests.visible`, which the plugin does not know of.
        return found.filter(**{"is_favourite": True}) if self.favourites else found


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value)
    except ValueError:
        return None


def _day(value: str) -> date | None:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return None
    return day if 2000 <= day.year <= 9000 else None


@require_safe
@team_page
def history(request: PageRequest) -> HttpResponse:
    """Everything that the team has had spoken."""
    states = [("", _("All")), ("open", _("Under way")), ("succeeded", _("Ready")), ("failed", _("Failed"))]
    states.append(("canceled", _("Cancelled")))
    filters = Filters.of(request.GET)
    team = request.actor.team
    found = filters.apply(service.visible(request.actor), zoneinfo.ZoneInfo(team.time_zone))
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    kept = filters.kept()
    members = Membership.objects.filter(team=team).select_related("user")
    context = {
        "page": page,
        "items": request_cards(page.object_list, request.user),
        "filters": filters,
        "states": states,
        "people": sorted((str(one.user_id), one.user.get_short_name()) for one in members),
        "used_voices": sorted(
            ((str(voice.id), voice_name(voice)) for voice in Voice.objects.usable(request.actor)),
            key=lambda voice: voice[1].lower(),
        ),
        "filtering": bool(kept),
        "more_filters": bool({"voice", "person", "since", "until"} & kept.keys()),
        "query": f"{urlencode(kept)}&" if kept else "",
        "events_url": reverse("events"),
        "retention_days": limits.retention_days(team),
        "may_delete": request.actor.can(permissions.SYNTHESES_WRITE),
        "today": timezone.localdate().isoformat(),
        "selectable": True,
    }
    return show(request, "history/history.html", context, section="history")


@require_POST
@team_page
def favourite(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Mark a request, or take the mark away."""
    wanted = request.POST.get("wanted") == "1"
    service.set_favourite(actor=request.actor, request_id=request_id, wanted=wanted)
    if not request.htmx:
        return redirect("request", request_id)
    found = service.find(request.actor, request_id)
    return fragment(request, "studio/favourite.html", context={"item": request_card(found, request.user)})


@require_POST
@team_page
def title(request: PageRequest, request_id: UUID) -> HttpResponse:
    """Give a request a title."""
    service.rename(actor=request.actor, request_id=request_id, title=request.POST.get("title", ""))
    messages.success(request, _("Saved."))
    address = reverse("request", args=[request_id])
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


@require_POST
@team_page
def download(request: PageRequest) -> HttpResponseBase:
    """The recordings that are ticked, as a ZIP file."""
    rates.hit(request.actor)
    found = _ticked(request)
    name = f"chorus-{timezone.localdate().isoformat()}.zip"
    return StreamingHttpResponse(
        bundles.stream(found),
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


@require_POST
@team_page
def delete(request: PageRequest) -> HttpResponse:
    """Remove the words and the sound of what is ticked."""
    found = _ticked(request)
    for one in found:
        service.delete(actor=request.actor, request_id=one.id)
    words = ngettext(
        "%(n)d text with its recording is deleted.",
        "%(n)d texts with their recordings are deleted.",
        len(found),
    )
    messages.success(request, words % {"n": len(found)})
    return HttpResponseClientRedirect(reverse("history")) if request.htmx else redirect("history")


def _ticked(request: PageRequest) -> list[SynthesisRequest]:
    """What is ticked and the team's, in the order of the page; InvalidInput when that is nothing."""
    ids = [found for value in request.POST.getlist("id")[: bundles.MOST] if (found := _uuid(value))]
    rows = list(service.visible(request.actor).filter(id__in=ids))
    if not rows:
        raise InvalidInput(_("Tick at least one recording first."), code="nothing_selected", param="id")
    return rows
