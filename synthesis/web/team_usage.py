"""What a team used: by day, person, key and voice, with the forecast of the month; as a page and as CSV."""

from __future__ import annotations

import zoneinfo
from datetime import date, timedelta
from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts import exports, permissions
from accounts.actors import Actor
from accounts.panel import charts
from accounts.services import keys, limits
from accounts.web.shell import PageRequest, show, team_page
from synthesis.services import forecast, reports, rollup

_DAYS = 30
_MOST_DAYS = 366
_LINES = 20
_GROUPS = ("user", "key", "voice")
_TITLES = {
    "user": gettext_lazy("By person"),
    "key": gettext_lazy("By API key"),
    "voice": gettext_lazy("By voice"),
}
_COLUMNS = ("group", "name", "requests", "succeeded", "failed", "canceled", "characters", "audio_seconds")


@require_safe
@team_page
def usage(request: PageRequest) -> HttpResponse:
    """Charts and tables of a range of days."""
    request.actor.require(permissions.USAGE_READ)
    first, last = _range(request)
    team = request.actor.team
    by_day = reports.report(reports.Query(first, last, by="day", team=team.id))
    tables = [(by, _TITLES[by], _lines(request.actor, by, first, last)) for by in _GROUPS]
    context = {
        "tab": "usage",
        "first": first,
        "last": last,
        "today": timezone.localdate(),
        "total": by_day.total,
        # Only today can lag behind the month's figures, which are counted at once.
        "as_of": rollup.until() if last == timezone.localdate() else None,
        "chart": _chart(by_day, first, last),
        "tables": tables,
        "forecast": forecast.this_month(team=team),
        "limits": limits.of_team(team),
    }
    return show(request, "team/usage_page.html", context, section="team")


@require_safe
@team_page
def download(request: PageRequest) -> HttpResponseBase:
    """The same as CSV, all lines."""
    request.actor.require(permissions.USAGE_READ)
    first, last = _range(request)
    by = request.GET.get("by", "day")
    query = reports.Query(first, last, by=by if by in reports.GROUPS else "day", team=request.actor.team.id)
    query.check()
    own = _own(request.actor, query.by)
    rows = (
        (query.by, str(row.start) if row.start else row.name, *(getattr(row, name) for name in _COLUMNS[2:]))
        for row in reports.stream(query)
        if own is None or row.subject_id in own
    )
    return exports.respond(rows=rows, columns=_COLUMNS, format="csv", name=f"usage-{query.by}-{first}-{last}")


def _range(request: PageRequest) -> tuple[date, date]:
    """The days that are asked for, a year at most; by default the last thirty."""
    zone = zoneinfo.ZoneInfo(request.actor.team.time_zone)
    today = timezone.now().astimezone(zone).date()
    first, last = _day(request.GET.get("first", "")), _day(request.GET.get("last", ""))
    last = min(last or today, today)
    first = min(first or last - timedelta(days=_DAYS - 1), last)
    return max(first, last - timedelta(days=_MOST_DAYS - 1)), last


def _day(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _lines(actor: Actor, by: str, first: date, last: date) -> list[reports.Row]:
    """The most characters first."""
    own = _own(actor, by)
    found = reports.report(
        reports.Query(first, last, by=by, team=actor.team.id), limit=None if own else _LINES
    )
    return [row for row in found.rows if own is None or row.subject_id in own][:_LINES]


def _own(actor: Actor, by: str) -> set[UUID] | None:
    """The people or keys that the actor may see the use of; None for all."""
    if by not in ("user", "key") or actor.can(permissions.MEMBERS_WRITE):
        return None
    return {actor.user.id} if by == "user" else set(keys.visible(actor).values_list("id", flat=True))


def _chart(report: reports.Report, first: date, last: date) -> charts.Chart | None:
    values = {row.start: row for row in report.rows}
    points = []
    day = first
    while day <= last:
        row = values.get(day)
        label = _("%(day)s: %(characters)s characters, %(requests)s requests") % {
            "day": date_format(day, "DATE_FORMAT"),
            "characters": f"{row.characters if row else 0:,}",
            "requests": f"{row.requests if row else 0:,}",
        }
        points.append(charts.Point(f"{day:%m-%d}", row.characters if row else 0, label))
        day += timedelta(days=1)
    return charts.bars(_("Characters a day"), points)
