"""Where a queued request stands and when it will be done, told from the same rows that dispatch uses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from accounts.queries import prepared
from synthesis.models import Status, SynthesisRequest
from synthesis.models.workers import ALIVE, READY
from synthesis.services import pools

#: Until an engine has a history: Kokoro on two CPU cores needs 0.035 s a character (real-time factor 0.5, about 14
#: characters of English a second).
_DEFAULT_SECONDS_PER_CHARACTER = 0.035
#: Requests that the pace is taken from: recent enough to follow a change of hardware, enough to smooth.
_RECENT = 20
#: So many queued requests are counted one by one; among more the place is told by the teams' turns.
_MANY = 10_000
#: How long a text is on average is taken from so many of them.
_SAMPLE = 1_000

# Every result is cast, here and below: a prepared statement must not change its types when a column does
# (`accounts.queries.prepared`).
#
# A request begins when its team's share (`turns`) has grown by the characters that stand before it. Among equals the
# team that was served longest ago comes first: the one whose request before began earlier (-1: none is to come).
_AHEAD = """
WITH clock AS (
    SELECT greatest(0, (SELECT now FROM synthesis_fairclock WHERE engine = %(engine)s AND pool = %(pool)s)) AS now
), mine AS (
    SELECT own.n, own.of_user, greatest(clock.now, t.finish) + own.work / p.weight AS begins,
           coalesce(greatest(clock.now, t.finish) + (own.work - own.last) / p.weight, -1) AS before,
           greatest(own.oldest, t.served_at) AS since
    FROM (SELECT count(*) AS n, count(*) FILTER (WHERE user_id = %(user)s) AS of_user,
                 coalesce(sum(greatest(characters, 1)), 0) AS work,
                 (array_agg(greatest(characters, 1) ORDER BY priority, created_at DESC))[1] AS last,
                 least(min(created_at), %(created)s) AS oldest
          FROM synthesis_synthesisrequest
          WHERE team_id = %(team)s AND status = 'queued' AND engine = %(engine)s
            AND (priority > %(priority)s OR (priority = %(priority)s AND created_at < %(created)s))) own
    CROSS JOIN clock JOIN accounts_team a ON a.id = %(team)s JOIN accounts_plan p ON p.id = a.plan_id
    LEFT JOIN synthesis_turn t ON t.team_id = a.id AND t.engine = %(engine)s AND t.pool = %(pool)s
), many AS (SELECT EXISTS (SELECT FROM synthesis_synthesisrequest WHERE status = 'queued' OFFSET {many}) AS yes
), others AS (
    SELECT greatest(clock.now, t.finish)
               + coalesce(sum(greatest(r.characters, 1)) OVER (line ROWS BETWEEN UNBOUNDED PRECEDING
                                                               AND 1 PRECEDING), 0) / p.weight AS begins,
           CASE WHEN row_number() OVER line = 1 THEN -1 ELSE greatest(clock.now, t.finish)
               + coalesce(sum(greatest(r.characters, 1)) OVER (line ROWS BETWEEN UNBOUNDED PRECEDING
                                                               AND 2 PRECEDING), 0) / p.weight END AS before,
           greatest(first_value(r.created_at) OVER line, t.served_at) AS since
    FROM clock CROSS JOIN synthesis_synthesisrequest r
    JOIN accounts_team a ON a.id = r.team_id AND a.suspended_at IS NULL
    JOIN accounts_plan p ON p.id = a.plan_id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = r.team_id
    LEFT JOIN synthesis_turn t ON t.team_id = r.team_id AND t.engine = %(engine)s AND t.pool = %(pool)s
    WHERE NOT (SELECT yes FROM many) AND r.status = 'queued' AND r.engine = %(engine)s AND r.team_id <> %(team)s
      AND coalesce(tp.pool_id, '') = %(pool)s
    WINDOW line AS (PARTITION BY r.team_id ORDER BY r.priority DESC, r.created_at)
), turns AS (  -- among many the teams' turns, which may be some seconds old, tell whose requests to count, and how far
    SELECT x.team_id, ceil((mine.begins - x.share) * p.weight / sample.characters)
        + (CASE WHEN x.share = mine.begins AND (mine.before >= 0 OR x.since < mine.since) THEN 1 ELSE 0 END)
        AS before
    FROM mine CROSS JOIN synthesis_turn x
    JOIN accounts_team a ON a.id = x.team_id JOIN accounts_plan p ON p.id = a.plan_id
    CROSS JOIN (SELECT greatest(1, avg(characters)) AS characters FROM (
        SELECT characters FROM synthesis_synthesisrequest WHERE status = 'queued' AND engine = %(engine)s
        LIMIT {sample}) few) sample
    WHERE (SELECT yes FROM many) AND x.engine = %(engine)s AND x.pool = %(pool)s AND x.share IS NOT NULL
      AND x.share <= mine.begins AND x.team_id <> %(team)s
)
SELECT (SELECT n FROM mine)::bigint, (SELECT of_user FROM mine)::bigint,
       ((SELECT count(*) FROM others o CROSS JOIN mine
        WHERE (o.begins, o.before, o.since) < (mine.begins, mine.before, mine.since))
       + coalesce(sum(CASE WHEN before <= 1 THEN before ELSE (SELECT count(*) FROM (
             SELECT FROM synthesis_synthesisrequest r
             WHERE r.team_id = turns.team_id AND r.status = 'queued' AND r.engine = %(engine)s
             LIMIT before::bigint) counted) END), 0))::bigint
FROM turns
"""


@dataclass(frozen=True, slots=True)
class Place:
    """`ahead` requests will be taken before this one: `ahead_own` the same team's, `ahead_user` the same person's."""

    ahead: int
    ahead_own: int
    ahead_user: int = 0

    @property
    def position(self) -> int:
        """1 for the next one."""
        return self.ahead + 1


def place(request: SynthesisRequest) -> Place | None:
    """Where a queued request stands by fair share; None unless it is queued."""
    if request.status != Status.QUEUED:
        return None
    with prepared() as cursor:
        cursor.execute(
            _AHEAD.format(many=_MANY, sample=_SAMPLE),  # as they are: PostgreSQL must know them to plan well
            {
                "team": request.team_id,
                "user": request.user_id,
                "engine": request.engine,
                "priority": request.priority,
                "created": request.created_at,
                "pool": pools.of_team(request.team_id),
            },
        )
        own, of_user, others = cursor.fetchone()
    return Place(int(own) + int(others), int(own), int(of_user))


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a waiting person wants to know. `seconds` until the end; None when no worker is there to do it."""

    place: Place | None
    seconds: int | None
    workers: int
    #: None of them is ready, and one is loading its model.
    starting: bool = False


# In one round trip: pages and event streams ask whenever something moves. `left` are characters in hand that are still
# to be spoken, `average` is a waiting text's length.
_CIRCUMSTANCES = """
WITH work AS NOT MATERIALIZED (
    SELECT status, characters, segments_total, segments_done FROM synthesis_synthesisrequest
    WHERE engine = %(engine)s AND (
        %(pool)s <> '' AND team_id IN (SELECT team_id FROM synthesis_teampool WHERE pool_id = %(pool)s)
        OR %(pool)s = '' AND team_id NOT IN (SELECT team_id FROM synthesis_teampool))
), recent AS (
    SELECT engine_seconds, characters FROM synthesis_synthesisrequest
    WHERE status = 'succeeded' AND engine = %(engine)s AND engine_seconds > 0
    ORDER BY completed_at DESC LIMIT {recent}
), of_pool AS (
    SELECT state FROM synthesis_worker WHERE engine = %(engine)s AND pool = %(pool)s AND last_seen > %(since)s
)
SELECT (SELECT count(*) FROM of_pool WHERE state = ANY (%(ready)s)),
       (SELECT count(*) FROM of_pool WHERE state = 'loading'),
       (SELECT sum(engine_seconds) / nullif(sum(characters), 0) FROM recent)::float,
       (SELECT coalesce(sum(characters * (segments_total - segments_done) / segments_total), 0) FROM work
        WHERE status = 'running')::float,
       (SELECT coalesce(avg(characters), 0) FROM (
           SELECT characters FROM work WHERE status = 'queued' LIMIT {sample}) few)::float
"""


def outlook(request: SynthesisRequest) -> Outlook:
    """Place in the queue and seconds until done, for a request that has not ended."""
    where = place(request)
    with prepared() as cursor:
        cursor.execute(
            _CIRCUMSTANCES.format(recent=_RECENT, sample=_SAMPLE),
            {
                "engine": request.engine,
                "pool": pools.of_team(request.team_id),
                "ready": [*READY],
                "since": timezone.now() - ALIVE,
            },
        )
        workers, loading, pace, left, average = cursor.fetchone()
    if not workers:
        return Outlook(where, None, 0, starting=loading > 0)
    pace = pace or _DEFAULT_SECONDS_PER_CHARACTER
    remaining = request.characters * (1 - request.segments_done / request.segments_total)
    if where is None:
        return Outlook(None, max(1, math.ceil(remaining * pace)), workers)
    before = (where.ahead * float(average) + float(left)) / workers
    pause = max(timedelta(0), request.not_before - timezone.now()).total_seconds()
    return Outlook(where, max(1, math.ceil((before + remaining) * pace + pause)), workers)
