"""Many rows in a few statements."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import psycopg

_TEAMS = """
INSERT INTO accounts_team (id, name, plan_id, time_zone, created_at)
SELECT uuidv7(), 'Team ' || n, (SELECT id FROM accounts_plan LIMIT 1), 'UTC', now()
FROM generate_series(1, %(teams)s) n RETURNING id
"""
# Queued by turns: the first of each team, then the second of each. `uuidv7(shift)` makes ids as ours are.
_REQUESTS = """
INSERT INTO synthesis_synthesisrequest (
    id, team_id, user_id, source, voice_id, engine, cloning, title, text, characters, language, instruction,
    format, speed, seed, streamed, status, priority, attempt, failures, not_before, worker, error_code, error_message,
    segments_total, segments_done, engine_seconds, audio_seconds, objects_deleted, created_at, started_at, completed_at)
SELECT uuidv7(at - clock_timestamp()), (%(teams)s::uuid[])[1 + n %% cardinality(%(teams)s::uuid[])], %(user)s, 'api',
       %(voice)s, %(engine)s, '', '', 'A sentence to be spoken, of the usual length.', 45, 'en-US', '',
       'mp3', 1, 1, false, %(status)s, 0, %(attempt)s, 0, at, '', '', '', 1, 0, 0, 0, false, at,
       CASE %(attempt)s WHEN 1 THEN at END, CASE %(status)s WHEN 'succeeded' THEN at END
FROM (SELECT n, now() - interval '1 hour' + n * interval '1 millisecond' AS at
      FROM generate_series(1, %(rows)s) n) series
"""


def teams(connection: psycopg.Connection[Any], count: int) -> list[str]:
    """Ids of new teams, without members."""
    return [str(row[0]) for row in connection.execute(_TEAMS, {"teams": count}).fetchall()]


def requests(
    connection: psycopg.Connection[Any], rows: int, *, teams: list[str], engine: str, status: str
) -> None:
    """So many requests, in turn of each team; `status` queued or succeeded."""
    user = connection.execute("SELECT id FROM accounts_user ORDER BY id LIMIT 1").fetchone()
    voice = connection.execute("SELECT id FROM synthesis_voice WHERE team_id IS NULL LIMIT 1").fetchone()
    if user is None or voice is None:
        raise RuntimeError("the service has no user or no voice yet")
    values = {
        "teams": teams,
        "user": user[0],
        "voice": voice[0],
        "engine": engine,
        "status": status,
        "attempt": 0 if status == "queued" else 1,
        "rows": rows,
    }
    connection.execute(_REQUESTS, values)


@contextlib.contextmanager
def without_notes(connection: psycopg.Connection[Any], *, teams: list[str], engine: str) -> Iterator[None]:
    """Note once for each team, and not for each row, that something has been queued."""
    connection.execute("ALTER TABLE synthesis_synthesisrequest DISABLE TRIGGER USER")
    try:
        yield
    finally:
        connection.execute("ALTER TABLE synthesis_synthesisrequest ENABLE TRIGGER USER")
    connection.execute(
        "INSERT INTO synthesis_queuechange (team_id, engine) SELECT unnest(%s::uuid[]), %s", [teams, engine]
    )
