"""Usage rolls over by month in the team's own time zone, and a reservation is settled in the month it was made in."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

import pytest
from django.utils import timezone

from accounts.models import TeamQuota, UsageCounter
from accounts.services import ledger, limits
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("zone", "at", "month", "start", "end"),
    [
        ("UTC", "2026-11-30T16:30", date(2026, 11, 1), "2026-11-01T00:00", "2026-12-01T00:00"),
        ("Asia/Shanghai", "2026-11-30T16:30", date(2026, 12, 1), "2026-11-30T16:00", "2026-12-31T16:00"),
        ("America/New_York", "2026-11-01T03:59", date(2026, 10, 1), "2026-10-01T04:00", "2026-11-01T04:00"),
        ("America/New_York", "2026-11-01T04:00", date(2026, 11, 1), "2026-11-01T04:00", "2026-12-01T05:00"),
        ("Europe/Berlin", "2026-12-31T23:00", date(2027, 1, 1), "2026-12-31T23:00", "2027-01-31T23:00"),
    ],
)
def test_a_month_begins_at_the_teams_midnight(zone, at, month, start, end):
    team = factories.owner("Alice").actor.team
    team.time_zone = zone

    def utc(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)

    period = limits.period(team, utc(at))
    assert (period.key, period.start, period.end) == (month, utc(start), utc(end))


def test_a_new_month_starts_at_zero_and_an_old_reservation_is_settled_where_it_was_made(monkeypatch):
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=100)
    now = [datetime(2026, 11, 30, 23, 59, tzinfo=UTC)]
    monkeypatch.setattr(timezone, "now", lambda: now[0])
    request = uuid.uuid4()
    ledger.reserve(actor=alice.actor, request_id=request, characters=90)
    assert limits.standing(alice.actor).remaining == 10
    now[0] = datetime(2026, 12, 1, 0, 1, tzinfo=UTC)
    assert limits.standing(alice.actor).remaining == 100
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=90)
    ledger.settle(request)
    months = UsageCounter.objects.filter(user=None, api_key=None).order_by("period_start")
    assert [(row.period_start.month, row.used, row.reserved) for row in months] == [(11, 90, 0), (12, 0, 90)]
