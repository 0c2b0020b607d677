"""How much of a month will be used: by what the same weekdays of the last four weeks used."""

from __future__ import annotations

import calendar
import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import fmean, pvariance
from uuid import UUID

from django.db.models import Sum
from django.utils import timezone

from accounts.models import Team, UsageCounter
from accounts.services import limits
from synthesis.models import Dimension, Grain, UsageRollup

#: Days that are looked back on.
HISTORY = 28
#: 80 of 100 months end within this many standard deviations.
_SPREAD = 1.28


@dataclass(frozen=True)
class Forecast:
    """Characters of a month: so far, and expected at its end with the range that 8 of 10 such months fall into.

    `exhausted_on` is the day on which `limit` will be reached; None when it will not be.
    """

    used: int
    expected: int
    low: int
    high: int
    limit: int | None = None
    exhausted_on: date | None = None


def of_month(
    *, today: date, used: int, team: UUID | None = None, limit: int | None = None
) -> Forecast | None:
    """The month of `today`, of which `used` characters are taken (today's included); None without any history."""
    history = _history(today, team)
    if not history:
        return None
    by_weekday: dict[int, list[int]] = defaultdict(list)
    for day, characters in history.items():
        by_weekday[day.weekday()].append(characters)
    overall = list(history.values())
    last = today.replace(day=calendar.monthrange(today.year, today.month)[1])
    expected, variance = float(used), 0.0
    exhausted = today if limit is not None and used >= limit else None
    day = today
    while day < last:
        day += timedelta(days=1)
        # One or two values of a weekday say little: then all days speak.
        values = by_weekday[day.weekday()] if len(by_weekday[day.weekday()]) >= 3 else overall
        expected += fmean(values)
        variance += pvariance(values)
        if exhausted is None and limit is not None and expected >= limit:
            exhausted = day
    spread = _SPREAD * math.sqrt(variance)
    return Forecast(
        used, round(expected), max(used, round(expected - spread)), round(expected + spread), limit, exhausted
    )


def this_month(*, team: Team | None = None) -> Forecast | None:
    """Of the month that runs now, for a team (against its limit) or for the whole service; None without any history."""
    if team is None:
        today = timezone.now().date()
        counters = UsageCounter.objects.filter(user=None, api_key=None, period_start=today.replace(day=1))
        return of_month(today=today, used=counters.aggregate(used=Sum("used"))["used"] or 0)
    standing = limits.standing_of(team)
    if standing is None:
        return None
    local = timezone.localdate(timezone=standing.period.start.tzinfo)
    return of_month(today=local, used=standing.used, team=team.pk, limit=standing.limit)


def _history(today: date, team: UUID | None) -> dict[date, int]:
    """Characters of each complete day since the first use, of the last HISTORY days."""
    rows = UsageRollup.objects.filter(
        grain=Grain.DAY,
        dimension=Dimension.TEAM if team else Dimension.SERVICE,
        team_id=team,
        start__gte=today - timedelta(days=HISTORY),
        start__lt=today,
    ).values_list("start", "characters")
    found = dict(rows)
    if not found:
        return {}
    # A day without use is a day of zero.
    first = min(found)
    return {
        first + timedelta(days=n): found.get(first + timedelta(days=n), 0)
        for n in range((today - first).days)
    }
