"""Whose turn it is: the rows of `Turn`, kept up with what triggers note, and the claim that reads them.

A claim over all that waits would walk every team that has something queued. Instead each team's place is worked out
when something of it changes, and a claim looks at as many rows as it takes requests. What is only noted (`QueueChange`)
never makes a submission wait; the notes are read by whoever holds the claim's lock, so that a turn has one writer.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

#: `pg_advisory_xact_lock` of the claim.
CLAIM_LOCK = 0x43484F52
#: Notes read at once: about 5 ms of work.
NOTES = 500
#: A claim that finds nothing where a turn promised something looks again, so many times at most.
_LOOKS = 10

LOCK = "SELECT pg_advisory_xact_lock(%(lock)s)"

# A statement after the lock, so that its snapshot is not older. The notes that it sees come from transactions whose
# other changes it sees as well.
TIDY = """
WITH gone AS (
    DELETE FROM synthesis_queuechange
    WHERE id = ANY (ARRAY(SELECT id FROM synthesis_queuechange ORDER BY id LIMIT %(notes)s))
    RETURNING team_id, engine
), stale AS (
    SELECT team_id, engine FROM gone WHERE engine <> ''
    UNION
    SELECT t.team_id, t.engine FROM synthesis_turn t
    WHERE t.team_id IN (SELECT team_id FROM gone UNION ALL SELECT unnest(%(teams)s::uuid[]))
    UNION
    (SELECT team_id, engine FROM synthesis_turn WHERE look_at <= statement_timestamp() LIMIT %(notes)s)
), fresh AS (
    SELECT s.team_id, s.engine, coalesce(tp.pool_id, '') AS pool, head.created_at AS since,
           CASE WHEN head.created_at IS NOT NULL AND t.suspended_at IS NULL
                     AND busy.n + 1 <= coalesce(q.concurrent_requests, p.concurrent_requests)
                THEN (busy.n + 1) / p.weight END AS share,
           coalesce(paused.until,
                    -- Not yet by the database's clock, which may differ from the submitter's.
                    CASE WHEN late.one THEN statement_timestamp() + interval '1 second' END) AS look_at
    FROM stale s
    LEFT JOIN accounts_team t ON t.id = s.team_id
    LEFT JOIN accounts_plan p ON p.id = t.plan_id
    LEFT JOIN accounts_teamquota q ON q.team_id = s.team_id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = s.team_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS n FROM synthesis_synthesisrequest r
        WHERE r.team_id = s.team_id AND r.status = 'running') busy
    CROSS JOIN LATERAL (  -- people who have as much at work as they may
        SELECT ARRAY(SELECT m.user_id FROM accounts_membership m
                     JOIN accounts_memberquota mq ON mq.membership_id = m.id
                     WHERE m.team_id = s.team_id AND mq.concurrent_requests <= (
                         SELECT count(*) FROM synthesis_synthesisrequest r
                         WHERE r.team_id = m.team_id AND r.user_id = m.user_id AND r.status = 'running')) AS users
        ) full_up
    LEFT JOIN LATERAL (
        SELECT r.created_at FROM synthesis_synthesisrequest r
        WHERE r.team_id = s.team_id AND r.status = 'queued' AND r.engine = s.engine
          AND r.not_before <= statement_timestamp() AND r.user_id <> ALL (full_up.users)
        ORDER BY r.priority DESC, r.created_at LIMIT 1) head ON true
    CROSS JOIN LATERAL (
        SELECT min(r.not_before) AS until FROM synthesis_synthesisrequest r
        WHERE r.team_id = s.team_id AND r.status = 'queued' AND r.engine = s.engine
          AND r.not_before > r.created_at AND r.not_before > statement_timestamp()) paused
    CROSS JOIN LATERAL (
        SELECT head.created_at IS NULL AND EXISTS (
            SELECT FROM synthesis_synthesisrequest r
            WHERE r.team_id = s.team_id AND r.status = 'queued' AND r.engine = s.engine
              AND r.not_before > statement_timestamp()) AS one) late
)
INSERT INTO synthesis_turn AS turn (team_id, engine, pool, share, since, look_at)
SELECT team_id, engine, pool, share, since, look_at FROM fresh
ON CONFLICT (team_id, engine) DO UPDATE
    SET pool = excluded.pool, share = excluded.share, since = excluded.since, look_at = excluded.look_at
    WHERE (turn.pool, turn.share, turn.since, turn.look_at)
        IS DISTINCT FROM (excluded.pool, excluded.share, excluded.since, excluded.look_at)
"""

# Fair share: the team with the least at work for its weight comes next, then its own priority and age. Limits of team
# and person hold for what runs at once; they are looked at here once more, since a turn may be some milliseconds old.
# The best `n` requests are among those of the first `n` teams: each team's first is the best of its own.
TAKE = """
WITH next AS (
    SELECT n.team_id FROM synthesis_turn n
    WHERE n.engine = %(engine)s AND n.pool = %(pool)s AND n.share IS NOT NULL
      -- A worker that is to pause, stop or start anew is given nothing, whether it has heard of it or not.
      AND NOT EXISTS (SELECT 1 FROM synthesis_worker sw
                      WHERE sw.name = %(worker)s AND sw."order" IN ('pause', 'stop', 'restart'))
    ORDER BY n.share, n.since LIMIT %(n)s
), team AS (
    SELECT t.id, p.weight, coalesce(q.concurrent_requests, p.concurrent_requests) AS allowed
    FROM next
    JOIN accounts_team t ON t.id = next.team_id
    JOIN accounts_plan p ON p.id = t.plan_id
    LEFT JOIN accounts_teamquota q ON q.team_id = t.id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = t.id
    WHERE t.suspended_at IS NULL AND coalesce(tp.pool_id, '') = %(pool)s
), busy AS (
    SELECT team_id, user_id, count(*) AS n FROM synthesis_synthesisrequest
    WHERE status = 'running' AND team_id IN (SELECT team_id FROM next) GROUP BY team_id, user_id
), team_busy AS (
    SELECT team_id, sum(n)::int AS n FROM busy GROUP BY team_id
), member AS (  -- people with a limit of their own, and what it still allows
    SELECT m.team_id, m.user_id, q.concurrent_requests - coalesce(b.n, 0) AS free
    FROM accounts_membership m
    JOIN accounts_memberquota q ON q.membership_id = m.id
    LEFT JOIN busy b ON b.team_id = m.team_id AND b.user_id = m.user_id
    WHERE q.concurrent_requests IS NOT NULL AND m.team_id IN (SELECT team_id FROM next)
), candidate AS (
    SELECT r.id, r.created_at, (coalesce(b.n, 0) + r.nth) / t.weight AS share
    FROM team t
    LEFT JOIN team_busy b ON b.team_id = t.id
    CROSS JOIN LATERAL (
        SELECT q.id, q.user_id, q.created_at,
               row_number() OVER (ORDER BY q.priority DESC, q.created_at) AS nth,
               row_number() OVER (PARTITION BY q.user_id ORDER BY q.priority DESC, q.created_at) AS nth_of_user
        FROM (SELECT s.id, s.user_id, s.priority, s.created_at FROM synthesis_synthesisrequest s
              WHERE s.team_id = t.id AND s.status = 'queued' AND s.engine = %(engine)s
                AND s.not_before <= statement_timestamp()
                AND NOT EXISTS (SELECT 1 FROM member m
                                WHERE m.team_id = s.team_id AND m.user_id = s.user_id AND m.free <= 0)
              ORDER BY s.priority DESC, s.created_at LIMIT %(n)s) q) r
    WHERE coalesce(b.n, 0) + r.nth <= t.allowed
      AND NOT EXISTS (SELECT 1 FROM member m
                      WHERE m.team_id = t.id AND m.user_id = r.user_id AND r.nth_of_user > m.free)
    ORDER BY share, r.created_at LIMIT %(n)s
), free AS (  -- somebody who cancels one, or moves it, is not waited for
    SELECT r.id FROM synthesis_synthesisrequest r
    WHERE r.id = ANY (ARRAY(SELECT id FROM candidate)) AND r.status = 'queued'
    FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE synthesis_synthesisrequest SET
        status = 'running', attempt = attempt + 1, worker = %(worker)s,
        lease_until = statement_timestamp() + make_interval(secs => %(lease)s),
        started_at = coalesce(started_at, statement_timestamp())
    WHERE id = ANY (ARRAY(SELECT id FROM free)) AND status = 'queued'
    RETURNING id
)
SELECT ARRAY(SELECT id FROM taken), ARRAY(SELECT team_id FROM next),
       EXISTS (SELECT FROM synthesis_queuechange)
"""


def take(*, worker: str, engine: str, pool: str, limit: int) -> list[UUID]:
    """Mark up to `limit` queued requests as running for `worker`; their ids. In the caller's transaction."""
    values = {
        "lock": CLAIM_LOCK,
        "notes": NOTES,
        "teams": [],
        "worker": worker,
        "engine": engine,
        "pool": pool,
        "n": limit,
        "lease": settings.CHORUS_LEASE_SECONDS,
    }
    with connection.cursor() as cursor:
        for _look in range(_LOOKS):
            # Three statements, each with a snapshot of its own, in one round trip.
            cursor.execute(f"{LOCK}; {TIDY}; {TAKE}", values)
            cursor.nextset()
            cursor.nextset()
            taken, looked_at, noted = cursor.fetchone()
            if taken or not (looked_at or noted):
                return list(taken)
            # What was promised is gone since, or more is noted than was read: once more, those teams anew.
            values["teams"] = looked_at
    return []


def tidy() -> int:
    """For the sweep: read the notes that no claim has read, while nobody works; how many rounds it took."""
    rounds = 0
    values = {"lock": CLAIM_LOCK, "notes": NOTES, "teams": []}
    while rounds < 1000:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM synthesis_queuechange)")
            if not cursor.fetchone()[0]:
                break
            cursor.execute(f"{LOCK}; {TIDY}", values)
        rounds += 1
    return rounds
