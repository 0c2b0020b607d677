"""A year of requests in a few statements: for reports and checks over millions of rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from django.db import connection
from django.utils import timezone

from tests import factories

# `uuidv7(shift)` makes ids as ours are: they begin with the time of submission.
_REQUESTS = """
INSERT INTO synthesis_synthesisrequest (
    id, team_id, user_id, api_key_id, source, voice_id, engine, cloning, title, text, characters, language, instruction,
    format, speed, seed, streamed, status, priority, attempt, failures, not_before, worker, error_code, error_message,
    segments_total, segments_done, engine_seconds, audio_seconds, objects_deleted, created_at, started_at, completed_at)
SELECT uuidv7(g.at - clock_timestamp()), m.team_id, m.user_id, CASE WHEN g.n %% 3 = 0 THEN NULL ELSE m.key_id END,
       'api', v.ids[1 + g.n %% array_length(v.ids, 1)], 'hibari', '', '', '', 20 + g.n %% 400, 'en-US', '',
       'mp3', 1, 1, false,
       CASE WHEN g.n %% 50 = 0 THEN 'failed' WHEN g.n %% 70 = 0 THEN 'canceled' ELSE 'succeeded' END,
       0, 1, 0, g.at, 'w', '', '', 1, 1, 0.5, CASE WHEN g.n %% 50 = 0 OR g.n %% 70 = 0 THEN 0 ELSE 2.5 END, false,
       g.at, g.at + interval '1 second', g.at + interval '3 seconds'
FROM (SELECT n, %(start)s::timestamptz + (n * %(step)s) * interval '1 second' AS at
      FROM generate_series(%(low)s::bigint, %(high)s::bigint) n) g
JOIN members m ON m.nth = (g.n * 7919) %% %(members)s
CROSS JOIN (SELECT array_agg(id) AS ids FROM synthesis_voice) v
"""
_LEDGER = """
INSERT INTO accounts_ledgerentry (
    id, kind, team_id, user_id, api_key_id, request_id, characters, period_start, created_at)
SELECT uuidv7(r.created_at - clock_timestamp()), kind, r.team_id, r.user_id, r.api_key_id, r.id, r.characters,
       date_trunc('month', r.created_at AT TIME ZONE 'UTC')::date, r.created_at
FROM synthesis_synthesisrequest r
CROSS JOIN LATERAL (VALUES ('reserve'), (CASE r.status WHEN 'succeeded' THEN 'settle' ELSE 'release' END)) k(kind)
"""
_COUNTERS = """
INSERT INTO accounts_usagecounter (id, team_id, user_id, api_key_id, period_start, used, reserved, granted)
SELECT gen_random_uuid(), team_id, user_id, api_key_id, period_start, used, 0, 0 FROM (
    SELECT team_id, user_id, api_key_id, period_start,
           coalesce(sum(characters) FILTER (WHERE kind = 'settle'), 0) AS used,
           grouping(user_id) AS no_user, grouping(api_key_id) AS no_key
    FROM accounts_ledgerentry
    GROUP BY GROUPING SETS (
        (team_id, period_start), (team_id, user_id, period_start), (team_id, api_key_id, period_start))
) c WHERE NOT (no_key = 0 AND api_key_id IS NULL)
"""


def year(requests: int, *, teams: int = 10, people: int = 3, ledger: bool = False) -> tuple[date, date]:
    """`requests`, evenly over the 365 days before today (UTC), by `teams` × `people`; their first and last day.

    Two of three were sent with a key; one of 50 failed, one of 70 was canceled.
    """
    for name in ("Hibari", "Second", "Third"):
        factories.preset(name)
    for number in range(teams):
        first = factories.owner(f"Owner{number}", team=f"Team {number:04d}")
        for other in range(people - 1):
            factories.colleague(first, f"Member{number}x{other}")
    end = datetime.combine(timezone.now().date(), datetime.min.time(), UTC)
    start = end - timedelta(days=365)
    step = 365 * 86_400 / requests
    with connection.cursor() as cursor:
        cursor.execute(
            """
            CREATE TEMP TABLE members AS
            SELECT m.team_id, m.user_id, k.id AS key_id, row_number() OVER (ORDER BY m.id) - 1 AS nth
            FROM accounts_membership m JOIN accounts_apikey k ON k.team_id = m.team_id AND k.user_id = m.user_id
            """
        )
        chunk = 1_000_000
        for low in range(0, requests, chunk):
            high = min(low + chunk, requests) - 1
            cursor.execute(
                _REQUESTS, {"start": start, "step": step, "low": low, "high": high, "members": teams * people}
            )
        if ledger:
            cursor.execute(_LEDGER)
            cursor.execute(_COUNTERS)
        cursor.execute("DROP TABLE members")
        # As autovacuum does outside of a test's transaction.
        cursor.execute("ANALYZE synthesis_synthesisrequest, accounts_ledgerentry, accounts_team")
    return start.date(), (end - timedelta(days=1)).date()
