"""What every page of a signed-in person shares: who acts in which team, and the frame around the content."""

from __future__ import annotations

import zoneinfo
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from accounts import log_context
from accounts.actors import Actor
from accounts.errors import ChorusError, NotAllowed
from accounts.models import Membership, Role, Team, User
from accounts.services import limits

P = ParamSpec("P")

#: Where the session keeps the id of the team that a person looks at.
SESSION_TEAM = "team"
#: Below this share of the month's characters the meter turns to its warning colour.
LOW_QUOTA = 0.1
#: At this share the studio says so, and owners and admins have an e-mail.
SHORT_QUOTA = 0.2


class PersonRequest(HttpRequest):
    """A request of a signed-in person, as `person_page` hands it to a view; `actor` is None for who is in no team."""

    user: User
    htmx: HtmxDetails
    actor: Actor | None


class PageRequest(HttpRequest):
    """A request of a signed-in member, as `team_page` hands it to a view."""

    user: User
    htmx: HtmxDetails
    actor: Actor


View = Callable[Concatenate[PageRequest, P], HttpResponseBase]
PersonView = Callable[Concatenate[PersonRequest, P], HttpResponseBase]


def team_page(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """A page for members of a team: signs others in first, sets `request.actor`, tells times in the team's zone."""

    @wraps(view)
    def wrapped(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return to_sign_in(request)
        try:
            request.actor = current_actor(request)  # type: ignore[attr-defined]
        except NotAllowed as error:
            if error.code != "no_team":
                raise
            return _without_team(request, error)
        log_context.note(team=str(request.actor.team.id))  # type: ignore[attr-defined]
        with timezone.override(zoneinfo.ZoneInfo(request.actor.team.time_zone)):  # type: ignore[attr-defined]
            return view(request, *args, **kwargs)  # type: ignore[arg-type]

    return wrapped


def person_page(view: PersonView[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """A page that is a person's own, whichever team they are in, also when they are in none: signs others in first."""
    of_team = team_page(view)  # type: ignore[arg-type]

    @wraps(view)
    def wrapped(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.user.is_authenticated and not _memberships(request).exists():
            request.actor = None  # type: ignore[attr-defined]
            return view(request, *args, **kwargs)  # type: ignore[arg-type]
        return of_team(request, *args, **kwargs)

    return wrapped


def _without_team(request: HttpRequest, error: NotAllowed) -> HttpResponse:
    """Somebody in no team: told so on the first page, where every other page sends them."""
    # Who runs the service need not be in any team; their place is the panel.
    if request.user.is_staff:
        return redirect("admin:index")
    home = reverse("studio")
    if getattr(request, "htmx", False):
        return HttpResponseClientRedirect(home)
    if request.path != home:
        return redirect(home)
    return render(request, "accounts/no_team.html", {"words": str(error)})


def to_sign_in(request: HttpRequest) -> HttpResponse:
    """To the sign-in page and back again. htmx would put that page into a corner of this one: it is told to leave."""
    if getattr(request, "htmx", False):
        return HttpResponseClientRedirect(reverse("sign_in"))
    answer: HttpResponseRedirect = redirect_to_login(request.get_full_path(), reverse("sign_in"))
    return answer


def current_actor(request: HttpRequest) -> Actor:
    """The person in the team that they chose last, or their first one; NotAllowed for who is in none."""
    memberships = list(_memberships(request))
    if not memberships:
        raise NotAllowed(
            _("You are in no team yet. Ask somebody to invite you, then open the link in their e-mail."),
            code="no_team",
        )
    chosen = request.session.get(SESSION_TEAM)
    return Actor(next((one for one in memberships if str(one.team_id) == chosen), memberships[0]))


def _memberships(request: HttpRequest) -> Any:
    memberships = Membership.objects.filter(user_id=str(request.user.pk))
    return memberships.select_related("team__plan", "team__quota", "user", "quota").order_by("created_at")


def frame(request: PageRequest | PersonRequest) -> dict[str, Any]:
    """What `app.html` and the quota meter need; nothing for somebody in no team, who gets a frame without either."""
    if request.actor is None:
        return {}
    quota = limits.standing(request.actor)
    return {
        "team": request.actor.team,
        "membership": request.actor.membership,
        "teams": team_choices([membership.team for membership in _memberships(request)]),
        "quota": quota,
        "quota_taken": quota.used + quota.reserved,
        "quota_is_low": quota.remaining < quota.limit * LOW_QUOTA,
        "quota_is_short": quota.remaining <= quota.limit * SHORT_QUOTA,
    }


@dataclass(frozen=True, slots=True)
class TeamChoice:
    """A team in the list of one's teams; `detail` tells it apart where another one has the same name."""

    id: UUID
    name: str
    detail: str = ""


def team_choices(teams: list[Team]) -> list[TeamChoice]:
    """One's teams in their order. Names may repeat: then the owner is named, and the day it was made if need be."""
    names = Counter(team.name.casefold() for team in teams)
    twins = [team for team in teams if names[team.name.casefold()] > 1]
    if not twins:
        return [TeamChoice(team.id, team.name) for team in teams]
    owners: dict[UUID, str] = {}
    found = Membership.objects.filter(team__in=twins, role=Role.OWNER).select_related("user")
    for membership in found.order_by("-created_at"):
        owners[membership.team_id] = membership.user.email
    details = {team.id: owners.get(team.id, "") for team in twins}
    seen = Counter((team.name.casefold(), details[team.id]) for team in twins)
    for team in twins:
        if not details[team.id] or seen[team.name.casefold(), details[team.id]] > 1:
            made = _("since %(day)s") % {"day": date_format(team.created_at, "DATE_FORMAT")}
            # Two of one day differ in their ids.
            details[team.id] = " · ".join(filter(None, [details[team.id], made, team.id.hex[-4:]]))
    return [TeamChoice(team.id, team.name, details.get(team.id, "")) for team in teams]


def show(
    request: PageRequest | PersonRequest,
    template: str,
    context: dict[str, Any],
    *,
    section: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a page in the frame; `section` is the entry of the navigation that it belongs to."""
    return render(request, template, {**frame(request), "section": section, **context}, status=status)


def fragment(
    request: PageRequest, *templates: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Some partials one after the other, for htmx, followed by the quota meters, which find their own place."""
    values = {**frame(request), **context}
    parts = [render_to_string(template, values, request) for template in templates]
    parts.append(render_to_string("parts/quotas.html", values, request))
    return HttpResponse("".join(parts), status=status)


def add_error(form: Any, error: ChorusError) -> None:
    """Put a business error onto the field at fault, or onto the form when it has no such field."""
    form.add_error(error.param if error.param in form.fields else None, str(error))
