"""Where a queued request stands and when it will be done, told from the same rows that dispatch uses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.db.models import Count, F, QuerySet, Sum
from django.utils import timezone

from synthesis.models import Status, SynthesisRequest, Worker
from synthesis.services import pools

#: Until an engine has a history: Kokoro on two CPU cores needs 0.035 s a character (real-time factor 0.5, about 14
#: characters of English a second).
_DEFAULT_SECONDS_PER_CHARACTER = 0.035
#: Requests that the pace is taken from: recent enough to follow a change of hardware, enough to smooth.
_RECENT = 20
#: So many queued requests are counted one by one; among more the place is told by the teams' turns, and the average
#: length of a text is worked out so many seconds later again.
_MANY = 10_000
_AVERAGE_SECONDS = 10.0

_AHEAD = """
WITH mine AS (
    SELECT count(*) + 1 AS nth FROM synthesis_synthesisrequest
    WHERE team_id = %(team)s AND status = 'queued' AND engine = %(engine)s
      AND (priority > %(priority)s OR (priority = %(priority)s AND created_at < %(created)s))
), busy AS (
    SELECT team_id, count(*) AS n FROM synthesis_synthesisrequest WHERE status = 'running' GROUP BY team_id
), share AS (
    SELECT (coalesce((SELECT n FROM busy WHERE team_id = %(team)s), 0) + mine.nth) / p.weight AS s
    FROM mine, accounts_team t JOIN accounts_plan p ON p.id = t.plan_id WHERE t.id = %(team)s
), many AS (SELECT EXISTS (SELECT FROM synthesis_synthesisrequest WHERE status = 'queued' OFFSET %(many)s) AS yes
), others AS (
    SELECT q.team_id, q.n, q.oldest, p.weight, coalesce(b.n, 0) AS busy
    FROM (SELECT team_id, count(*) AS n, min(created_at) AS oldest FROM synthesis_synthesisrequest
          WHERE NOT (SELECT yes FROM many)
            AND status = 'queued' AND engine = %(engine)s AND team_id <> %(team)s GROUP BY team_id) q
    JOIN accounts_team t ON t.id = q.team_id AND t.suspended_at IS NULL
    JOIN accounts_plan p ON p.id = t.plan_id LEFT JOIN busy b ON b.team_id = q.team_id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = q.team_id
    WHERE coalesce(tp.pool_id, '') = %(pool)s
), turns AS (  -- among many the teams' turns, which may be some seconds old, tell whose requests to count, and how far
    SELECT x.team_id, x.since AS oldest, p.weight, coalesce(b.n, 0) AS busy
    FROM share CROSS JOIN synthesis_turn x
    JOIN accounts_team t ON t.id = x.team_id
    JOIN accounts_plan p ON p.id = t.plan_id LEFT JOIN busy b ON b.team_id = x.team_id
    WHERE (SELECT yes FROM many) AND x.engine = %(engine)s AND x.pool = %(pool)s AND x.share IS NOT NULL
      AND x.share <= share.s AND x.team_id <> %(team)s
), known AS (
    SELECT *, ceil(s * weight - busy) - 1
        + (CASE WHEN ceil(s * weight) = s * weight AND oldest < %(created)s THEN 1 ELSE 0 END) AS before
    FROM (SELECT team_id, n, oldest, weight, busy FROM others
          UNION ALL SELECT team_id, NULL, oldest, weight, busy FROM turns) o, share
)
SELECT (SELECT nth - 1 FROM mine) AS own,
       coalesce(sum(greatest(0, CASE
           WHEN n IS NOT NULL THEN least(n, before)
           WHEN before <= 1 THEN before
           ELSE (SELECT count(*) FROM (
               SELECT FROM synthesis_synthesisrequest r
               WHERE r.team_id = known.team_id AND r.status = 'queued' AND r.engine = %(engine)s
               LIMIT before::bigint) counted) END)), 0)
FROM known
"""


@dataclass(frozen=True, slots=True)
class Place:
    """`ahead` requests will be taken before this one, `ahead_own` of them the same team's."""

    ahead: int
    ahead_own: int

    @property
    def position(self) -> int:
        """1 for the next one."""
        return self.ahead + 1


def place(request: SynthesisRequest) -> Place | None:
    """Where a queued request stands by fair share; None unless it is queued."""
    if request.status != Status.QUEUED:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            _AHEAD,
            {
                "team": request.team_id,
                "engine": request.engine,
                "priority": request.priority,
                "created": request.created_at,
                "pool": pools.of_team(request.team_id),
                "many": _MANY,
            },
        )
        own, others = cursor.fetchone()
    return Place(int(own) + int(others), int(own))


def seconds_per_character(engine: str) -> float:
    """The engine's recent pace: engine seconds for a character of text."""
    recent = SynthesisRequest.objects.filter(
        status=Status.SUCCEEDED, engine=engine, engine_seconds__gt=0
    ).order_by(F("completed_at").desc())[:_RECENT]
    totals = SynthesisRequest.objects.filter(id__in=recent.values("id")).aggregate(
        seconds=Sum("engine_seconds"), characters=Sum("characters")
    )
    if not totals["characters"]:
        return _DEFAULT_SECONDS_PER_CHARACTER
    return totals["seconds"] / totals["characters"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a waiting person wants to know. `seconds` until the end; None when no worker is there to do it."""

    place: Place | None
    seconds: int | None
    workers: int
    #: None of them is ready, and one is loading its model.
    starting: bool = False


def outlook(request: SynthesisRequest) -> Outlook:
    """Place in the queue and seconds until done, for a request that has not ended."""
    pool = pools.of_team(request.team_id)
    of_pool = Worker.objects.filter(engine=request.engine, pool=pool)
    workers = of_pool.alive().count()
    where = place(request)
    if not workers:
        return Outlook(where, None, 0, starting=of_pool.loading().exists())
    pace = seconds_per_character(request.engine)
    remaining = request.characters * (1 - request.segments_done / request.segments_total)
    if where is None:
        return Outlook(None, max(1, math.ceil(remaining * pace)), workers)
    same = pools.within(SynthesisRequest.objects.filter(engine=request.engine), pool)
    running = same.filter(status=Status.RUNNING).aggregate(
        left=Sum(F("characters") * (F("segments_total") - F("segments_done")) / F("segments_total"))
    )
    before = (where.ahead * _average(same, request.engine, pool) + (running["left"] or 0)) / workers
    pause = max(timedelta(0), request.not_before - timezone.now()).total_seconds()
    return Outlook(where, max(1, math.ceil((before + remaining) * pace + pause)), workers)


_averages: dict[tuple[str, str], tuple[float, float]] = {}


def _average(requests: QuerySet[SynthesisRequest], engine: str, pool: str) -> float:
    """Characters of the queued of `requests`, on average; of many not at each question."""
    until, average = _averages.get((engine, pool), (0.0, 0.0))
    if time.monotonic() < until:
        return average
    found = requests.filter(status=Status.QUEUED).aggregate(n=Count("id"), characters=Sum("characters"))
    average = (found["characters"] or 0) / max(1, found["n"])
    if found["n"] > _MANY:
        _averages[engine, pool] = time.monotonic() + _AVERAGE_SECONDS, average
    return float(average)
