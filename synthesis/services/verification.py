"""Is every character accounted for? Ledger, counters and requests, compared row by row.

They change in the same transactions, so the answer is always “no difference”; anything else is a bug or a hand in
the database. All of it is read in one snapshot, so that work under way cannot look like a difference.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from accounts.operators import Operator
from synthesis.models import LedgerCheck

logger = logging.getLogger(__name__)

#: So many differences are listed; all are counted.
LISTED = 200
#: The nightly check runs at the first look of the sweep after this hour, UTC.
NIGHT_HOUR = 2
#: `pg_try_advisory_lock`: of several sweeps one checks.
_LOCK = 0x4C454447

_NOBODY = "'00000000-0000-0000-0000-000000000000'::uuid"

# What each counter should be, from the entries: of the team, of each person, of each key.
_COUNTERS = f"""
WITH moved AS (
    SELECT team_id, user_id, api_key_id, period_start,
           CASE WHEN kind = 'settle' THEN characters ELSE 0 END AS used,
           CASE kind WHEN 'reserve' THEN characters WHEN 'settle' THEN -characters WHEN 'release' THEN -characters
               ELSE 0 END AS reserved,
           CASE WHEN kind IN ('grant', 'adjust') THEN characters ELSE 0 END AS granted
    FROM accounts_ledgerentry
), expected AS (
    SELECT team_id, NULL::uuid AS user_id, NULL::uuid AS api_key_id, period_start, sum(used) AS used,
           sum(reserved) AS reserved, coalesce(sum(granted) FILTER (WHERE user_id IS NULL), 0) AS granted
    FROM moved GROUP BY team_id, period_start
    UNION ALL
    SELECT team_id, user_id, NULL, period_start, sum(used), sum(reserved), sum(granted)
    FROM moved WHERE user_id IS NOT NULL GROUP BY team_id, user_id, period_start
    UNION ALL
    SELECT team_id, NULL, api_key_id, period_start, sum(used), sum(reserved), 0
    FROM moved WHERE api_key_id IS NOT NULL GROUP BY team_id, api_key_id, period_start
)
SELECT 'counter', coalesce(e.team_id, c.team_id)::text, coalesce(e.user_id, c.user_id)::text,
       coalesce(e.api_key_id, c.api_key_id)::text, NULL, coalesce(e.period_start, c.period_start)::text,
       format('used %s, reserved %s, granted %s', coalesce(e.used, 0), coalesce(e.reserved, 0), coalesce(e.granted, 0)),
       CASE WHEN c.id IS NULL THEN 'no counter'
            ELSE format('used %s, reserved %s, granted %s', c.used, c.reserved, c.granted) END
FROM expected e
FULL JOIN accounts_usagecounter c
    ON c.team_id = e.team_id AND c.period_start = e.period_start
    AND coalesce(c.user_id, {_NOBODY}) = coalesce(e.user_id, {_NOBODY})
    AND coalesce(c.api_key_id, {_NOBODY}) = coalesce(e.api_key_id, {_NOBODY})
WHERE (coalesce(e.used, 0), coalesce(e.reserved, 0), coalesce(e.granted, 0))
      IS DISTINCT FROM (coalesce(c.used, 0), coalesce(c.reserved, 0), coalesce(c.granted, 0))
  -- Counters go with what they count; entries stay.
  AND (c.id IS NOT NULL
       OR (EXISTS (SELECT 1 FROM accounts_team t WHERE t.id = e.team_id)
           AND (e.user_id IS NULL OR EXISTS (SELECT 1 FROM accounts_user u WHERE u.id = e.user_id))
           AND (e.api_key_id IS NULL OR EXISTS (SELECT 1 FROM accounts_apikey k WHERE k.id = e.api_key_id))))
"""  # noqa: S608

# Each request has one reservation of its characters, for its team and person, closed as its end wants it. A row of a
# batch has it before it is a request; where it never became one, it gave back what it had.
_REQUESTS = """
WITH request AS (
    SELECT id, team_id, user_id, api_key_id, status, characters FROM synthesis_synthesisrequest
    UNION ALL
    SELECT w.reservation, b.team_id, b.user_id, b.api_key_id, 'queued', w.characters
    FROM synthesis_batchrow w JOIN synthesis_batch b ON b.id = w.batch_id
    WHERE w.request_id IS NULL AND w.ended = ''
), entry AS (
    SELECT request_id,
           count(*) FILTER (WHERE kind = 'reserve') AS reserves,
           count(*) FILTER (WHERE kind <> 'reserve') AS closes,
           max(kind) FILTER (WHERE kind <> 'reserve') AS closed,
           min(characters) AS least, max(characters) AS most,
           bool_or(kind = 'reserve' AND note LIKE 'batch %') AS of_batch,
           count(DISTINCT period_start) AS periods, count(DISTINCT team_id) AS teams,
           min(team_id::text) AS team_id, min(user_id::text) AS user_id, min(api_key_id::text) AS api_key_id
    FROM accounts_ledgerentry WHERE request_id IS NOT NULL GROUP BY request_id
), judged AS (
    SELECT r.id, r.team_id::text AS team_id, r.user_id::text AS user_id, r.api_key_id::text AS api_key_id,
           e.request_id, e.team_id AS entry_team, r.status, r.characters,
           e.reserves, e.closes, e.closed, e.least, e.most,
           CASE
               WHEN e.request_id IS NULL THEN 'a reservation'
               WHEN r.id IS NULL THEN
                   CASE WHEN NOT (e.of_batch AND e.reserves = 1 AND e.closes = 1 AND e.closed = 'release'
                                  AND e.least = e.most) THEN 'a request' END
               WHEN e.reserves <> 1 OR e.closes > 1 THEN 'one reservation and at most one end'
               WHEN e.least <> r.characters OR e.most <> r.characters THEN format('%s characters', r.characters)
               WHEN e.periods <> 1 OR e.teams <> 1 THEN 'one month and one team'
               WHEN e.team_id <> r.team_id::text OR e.user_id <> r.user_id::text
                    OR e.api_key_id <> r.api_key_id::text THEN 'the same team, person and key'
               WHEN r.status IN ('queued', 'running') AND e.closes <> 0 THEN 'no end while it is ' || r.status
               WHEN r.status = 'succeeded' AND e.closed IS DISTINCT FROM 'settle' THEN 'settled, as it succeeded'
               WHEN r.status IN ('failed', 'canceled') AND e.closed IS DISTINCT FROM 'release'
                   THEN 'released, as it ' || CASE r.status WHEN 'failed' THEN 'failed' ELSE 'was canceled' END
           END AS wanted
    FROM request r FULL JOIN entry e ON e.request_id = r.id
)
SELECT 'request', coalesce(j.team_id, j.entry_team), j.user_id, j.api_key_id, coalesce(j.id, j.request_id)::text, NULL,
       j.wanted,
       CASE WHEN j.request_id IS NULL THEN 'nothing in the ledger'
            WHEN j.id IS NULL THEN 'entries for a request that is not there'
            ELSE format('%s reserved, %s ended (%s), %s to %s characters', j.reserves, j.closes,
                        coalesce(j.closed, '-'), j.least, j.most) END
FROM judged j
WHERE j.wanted IS NOT NULL
  -- A team that was deleted took its requests along; the entries stay.
  AND (j.id IS NOT NULL OR EXISTS (SELECT 1 FROM accounts_team t WHERE t.id::text = j.entry_team))
"""

# What lies in a month for a grant is what the grant says.
_GRANTS = """
SELECT 'grant', g.team_id::text, g.user_id::text, NULL, g.id::text, g.period_start::text,
       CASE WHEN g.ended_at IS NULL THEN format('%s placed', g.placed) ELSE 'between 0 and all of it' END,
       format('%s in this month, %s in all', coalesce(e.here, 0), coalesce(e.everywhere, 0))
FROM accounts_grant g
LEFT JOIN LATERAL (
    SELECT sum(characters) AS everywhere,
           sum(characters) FILTER (WHERE l.period_start = g.period_start) AS here
    FROM accounts_ledgerentry l WHERE l.grant_id = g.id
) e ON true
WHERE coalesce(e.everywhere, 0) NOT BETWEEN 0 AND g.characters
   OR (g.ended_at IS NULL AND coalesce(e.here, 0) <> g.placed)
"""


@dataclass(frozen=True)
class Difference:
    """One thing that does not add up. `kind` is counter, request or grant; ids are text, or None."""

    kind: str
    team: str | None
    user: str | None
    api_key: str | None
    object: str | None
    period: str | None
    expected: str
    found: str


@dataclass
class Result:
    """What was compared, and what differs: the first LISTED of `count`."""

    entries: int = 0
    counters: int = 0
    requests: int = 0
    count: int = 0
    seconds: float = 0.0
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Nothing differs."""
        return self.count == 0

    def as_json(self) -> dict[str, Any]:
        """For commands."""
        return {
            "clean": self.is_clean,
            "entries": self.entries,
            "counters": self.counters,
            "requests": self.requests,
            "differences": self.count,
            "seconds": round(self.seconds, 3),
            "details": [asdict(one) for one in self.differences],
        }


def words(result: dict[str, Any]) -> list[str]:
    """What `Result.as_json` says, for people: a sentence, and a line for each difference."""
    count = result["differences"]
    found = [
        f"{result['entries']:,} ledger entries, {result['counters']:,} counters and {result['requests']:,} requests "
        f"compared in {result['seconds']:.1f} s: "
        + (f"{count:,} differences." if count else "no difference.")
    ]
    for one in result["details"]:
        names = {name: one[name] for name in ("team", "user", "api_key", "object", "period")}
        where = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in names.items() if value)
        found.append(f"  {one['kind']} ({where}): expected {one['expected']}; found {one['found']}")
    if count > len(result["details"]):
        found.append(f"  and {count - len(result['details']):,} more")
    return found


@contextmanager
def _snapshot() -> Iterator[Any]:
    """A cursor all of whose queries see the same moment."""
    if connection.in_atomic_block:  # in a test: the caller's transaction is all that there is
        with connection.cursor() as cursor:
            yield cursor
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # Sorting tens of millions of rows: worth more memory than a web request's.
        cursor.execute("SET LOCAL work_mem = '256MB'")
        yield cursor


def verify() -> Result:
    """Compare everything; reads only."""
    started = timezone.now()
    result = Result()
    with _snapshot() as cursor:
        for name, table in (
            ("entries", "accounts_ledgerentry"),
            ("counters", "accounts_usagecounter"),
            ("requests", "synthesis_synthesisrequest"),
        ):
            cursor.execute(f"SELECT count(*) FROM {table}")  # noqa: S608  names of ours
            setattr(result, name, cursor.fetchone()[0])
        for query in (_COUNTERS, _REQUESTS, _GRANTS):
            cursor.execute(query)
            while rows := cursor.fetchmany(1000):
                result.count += len(rows)
                room = LISTED - len(result.differences)
                result.differences += [Difference(*row) for row in rows[:room]]
    result.seconds = (timezone.now() - started).total_seconds()
    return result


def record(*, by: Operator, result: Result) -> LedgerCheck:
    """Keep a result where the panel shows it; a difference is also logged."""
    now = timezone.now()
    if not result.is_clean:
        logger.error("The ledger and what it accounts for differ", extra={"differences": result.count})
    return LedgerCheck.objects.create(
        trigger="nightly" if by.source == "sweep" else by.name,
        started_at=now - timedelta(seconds=result.seconds),
        finished_at=now,
        entries=result.entries,
        counters=result.counters,
        requests=result.requests,
        differences=result.count,
        details=[asdict(one) for one in result.differences],
    )


def is_due() -> bool:
    """Whether tonight's check is still to be made (or the first one ever)."""
    now = timezone.now()
    night = now.replace(hour=NIGHT_HOUR, minute=0, second=0, microsecond=0)
    if night > now:
        night -= timedelta(days=1)
    return not LedgerCheck.objects.filter(trigger="nightly", started_at__gte=night).exists()


def start_nightly() -> int:
    """For the sweep: begin tonight's check beside it, as it may take minutes; 1 when it began.

    Several sweeps may ask: the one that has the lock checks.
    """
    if not is_due() or any(thread.name == "ledger-check" for thread in threading.enumerate()):
        return 0
    threading.Thread(target=_nightly, name="ledger-check", daemon=True).start()
    return 1


def _nightly() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
            if not cursor.fetchone()[0]:
                return
            try:
                if is_due():
                    record(by=Operator.sweep(), result=verify())
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    except DatabaseError:
        logger.exception("The nightly check of the ledger failed")
    finally:
        connection.close()
