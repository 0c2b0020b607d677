"""Usage added up by day and month, so that a report over ten million requests reads a few thousand rows.

A day (of the team's time zone, by the time of submission, as the ledger's months are) is always added up as a whole
from its requests: doing it twice changes nothing. What has to be done again is told by the requests that ended since
the last time, with some overlap for transactions that committed late.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.utils import timezone

from synthesis.models import RollupState, UsageRollup

logger = logging.getLogger(__name__)

#: A request may be committed so long after the time that it says it ended.
OVERLAP = timedelta(minutes=5)
#: Ids are made at submission and begin with its time; clocks and clauses in between get this much room.
_SLACK = timedelta(minutes=5)
#: `pg_advisory_xact_lock`: one adds up at a time.
_LOCK = 0x55534147
#: Days of teams that are added up in one transaction.
_BATCH = 500

_DIRTY = """
SELECT DISTINCT r.team_id, t.time_zone, (r.created_at AT TIME ZONE t.time_zone)::date
FROM synthesis_synthesisrequest r JOIN accounts_team t ON t.id = r.team_id
WHERE r.completed_at > %(since)s
"""
_EVERYTHING = """
SELECT DISTINCT r.team_id, t.time_zone, (r.created_at AT TIME ZONE t.time_zone)::date
FROM synthesis_synthesisrequest r JOIN accounts_team t ON t.id = r.team_id
WHERE r.completed_at IS NOT NULL ORDER BY 3, 1
"""

_COLUMNS = (
    "grain, dimension, start, team_id, subject_id, requests, succeeded, failed, canceled, characters, "
    "audio_seconds, engine_seconds, wait_seconds"
)
_SUMS = (
    "sum(requests), sum(succeeded), sum(failed), sum(canceled), sum(characters), sum(audio_seconds), "
    "sum(engine_seconds), sum(wait_seconds)"
)
_REPLACE = """
ON CONFLICT (grain, dimension, team_id, start, subject_id) DO UPDATE SET
    requests = excluded.requests, succeeded = excluded.succeeded, failed = excluded.failed,
    canceled = excluded.canceled, characters = excluded.characters, audio_seconds = excluded.audio_seconds,
    engine_seconds = excluded.engine_seconds, wait_seconds = excluded.wait_seconds
"""
# For some teams and days: what the requests say, by team, person, key and voice.
_INSERT_DAYS = f"""
WITH dirty AS (
    SELECT * FROM unnest(%(teams)s::uuid[], %(days)s::date[], %(lows)s::uuid[], %(highs)s::uuid[])
        AS d(team_id, day, low, high)
), ended AS (
    SELECT d.team_id, d.day, r.user_id, r.api_key_id, r.voice_id, r.status, r.characters, r.audio_seconds,
           r.engine_seconds, coalesce(extract(epoch FROM r.started_at - r.created_at), 0) AS wait
    FROM dirty d
    JOIN accounts_team t ON t.id = d.team_id
    JOIN synthesis_synthesisrequest r
        ON r.team_id = d.team_id AND r.id >= d.low AND r.id < d.high
        AND (r.created_at AT TIME ZONE t.time_zone)::date = d.day AND r.completed_at IS NOT NULL
)
INSERT INTO synthesis_usagerollup ({_COLUMNS})
SELECT 'd', CASE WHEN grouping(user_id) = 0 THEN 'user' WHEN grouping(api_key_id) = 0 THEN 'key'
                 WHEN grouping(voice_id) = 0 THEN 'voice' ELSE 'team' END,
       day, team_id, coalesce(user_id, api_key_id, voice_id), count(*),
       count(*) FILTER (WHERE status = 'succeeded'), count(*) FILTER (WHERE status = 'failed'),
       count(*) FILTER (WHERE status = 'canceled'),
       coalesce(sum(characters) FILTER (WHERE status = 'succeeded'), 0),
       sum(audio_seconds), sum(engine_seconds), sum(wait)
FROM ended
GROUP BY GROUPING SETS ((team_id, day), (team_id, day, user_id), (team_id, day, api_key_id), (team_id, day, voice_id))
-- Requests without a key, or whose key was deleted, are in the rows of team and person.
HAVING NOT (grouping(api_key_id) = 0 AND api_key_id IS NULL)
{_REPLACE}
"""  # noqa: S608  names of ours
_INSERT_MONTHS = f"""
INSERT INTO synthesis_usagerollup ({_COLUMNS})
SELECT 'm', u.dimension, date_trunc('month', u.start)::date, u.team_id, u.subject_id, {_SUMS}
FROM synthesis_usagerollup u
JOIN (SELECT DISTINCT team_id, month FROM unnest(%(teams)s::uuid[], %(months)s::date[]) AS d(team_id, month)) d
    ON u.team_id = d.team_id AND u.start >= d.month AND u.start < d.month + interval '1 month'
WHERE u.grain = 'd' AND u.dimension IN ('team', 'user', 'key', 'voice')
GROUP BY 1, 2, 3, 4, 5 {_REPLACE}
"""  # noqa: S608
_INSERT_SERVICE = f"""
INSERT INTO synthesis_usagerollup ({_COLUMNS})
SELECT u.grain, 'service', u.start, NULL, NULL, {_SUMS}
FROM synthesis_usagerollup u
WHERE u.dimension = 'team' AND (
    (u.grain = 'd' AND u.start = ANY(%(days)s::date[])) OR (u.grain = 'm' AND u.start = ANY(%(months)s::date[])))
GROUP BY 1, 2, 3 {_REPLACE}
"""  # noqa: S608


@dataclass(frozen=True)
class _Day:
    """One day of one team."""

    team: UUID
    zone: str
    day: date

    def id_at(self, days: int, slack: timedelta) -> UUID:
        """The lowest UUID version 7 that can have been made `days` after this day began where the team is."""
        day = self.day + timedelta(days=days)
        moment = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.zone)) + slack
        return UUID(int=int(moment.timestamp() * 1000) << 80)


def until() -> datetime | None:
    """Up to when what has ended is added up; None before the first time."""
    return RollupState.objects.filter(pk=1).values_list("until", flat=True).first()


def roll_up() -> int:
    """For the sweep: add up the days whose requests have ended since the last time; how many days of teams."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        state = RollupState.objects.filter(pk=1).first()
        now = timezone.now()
        if state is None:
            cursor.execute(_EVERYTHING)
        else:
            cursor.execute(_DIRTY, {"since": state.until - OVERLAP})
        dirty = [_Day(*row) for row in cursor.fetchall()]
        _add_up(dirty)
        RollupState.objects.update_or_create(pk=1, defaults={"until": now})
    return len(dirty)


def rebuild() -> int:
    """Make everything anew from the requests; how many days of teams. Minutes for many millions of requests."""
    with transaction.atomic():
        UsageRollup.objects.all().delete()
        RollupState.objects.all().delete()
        return roll_up()


def _add_up(dirty: list[_Day]) -> None:
    """Days of teams from their requests, then the months and the service's rows that they belong to."""
    if not dirty:
        return
    with connection.cursor() as cursor:
        for start in range(0, len(dirty), _BATCH):
            part = dirty[start : start + _BATCH]
            cursor.execute(
                _INSERT_DAYS,
                {
                    "teams": [one.team for one in part],
                    "days": [one.day for one in part],
                    "lows": [one.id_at(0, -_SLACK) for one in part],
                    "highs": [one.id_at(1, _SLACK) for one in part],
                },
            )
        months = {(one.team, one.day.replace(day=1)) for one in dirty}
        cursor.execute(
            _INSERT_MONTHS,
            {"teams": [team for team, _m in months], "months": [month for _t, month in months]},
        )
        days = {one.day for one in dirty}
        cursor.execute(
            _INSERT_SERVICE, {"days": sorted(days), "months": sorted({day.replace(day=1) for day in days})}
        )


_DIFFERING = """
WITH actual AS (
    SELECT r.team_id, t.time_zone, (r.created_at AT TIME ZONE t.time_zone)::date AS day, count(*) AS requests,
           coalesce(sum(r.characters) FILTER (WHERE r.status = 'succeeded'), 0) AS characters
    FROM synthesis_synthesisrequest r JOIN accounts_team t ON t.id = r.team_id
    WHERE r.id >= %(low)s AND r.completed_at < %(until)s GROUP BY 1, 2, 3
)
SELECT a.team_id, a.time_zone, a.day FROM actual a
LEFT JOIN synthesis_usagerollup u
    ON u.grain = 'd' AND u.dimension = 'team' AND u.team_id = a.team_id AND u.start = a.day
WHERE a.day > %(first)s AND (a.requests, a.characters) IS DISTINCT FROM (u.requests, u.characters)
"""


def mend(days: int = 3) -> int:
    """Days of teams, of the latest `days`, whose rows differ from their requests: they are added up again."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        state = RollupState.objects.filter(pk=1).first()
        if state is None:
            return 0
        first = timezone.now().date() - timedelta(days=days)
        low = UUID(int=int((timezone.now() - timedelta(days=days + 1)).timestamp() * 1000) << 80)
        cursor.execute(_DIFFERING, {"low": low, "first": first, "until": state.until})
        differing = [_Day(*row) for row in cursor.fetchall()]
        _add_up(differing)
    if differing:
        logger.warning("Days of the usage report were added up again", extra={"days": len(differing)})
    return len(differing)
