"""The service that a bench measures: `./chorus up` in a folder of its own, ended with whatever it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.live import stack
from tests.live.stack import Stack

#: High enough that no bench meets them: what is measured is speed.
_LIMITS = """
UPDATE accounts_plan SET characters_per_month = 1000000000000, queued_requests = 1000000,
    requests_per_minute = 1000000, concurrent_requests = 100
"""
_CLEAR = """
UPDATE synthesis_synthesisrequest SET status = 'canceled', completed_at = now(), lease_until = NULL
WHERE status = 'queued'
"""


def engine(quick: bool) -> str:
    """What speaks where sound is measured: the default engine; to try a bench, the fast one."""
    return "hibari" if quick else "kokoro"


@contextlib.contextmanager
def running(engine: str, *, workers: int = 1) -> Iterator[Stack]:
    """The service on a free port with a fresh data folder, without limits worth the name."""
    with tempfile.TemporaryDirectory(prefix="chorus-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL, started by root, runs as another user
        service = stack.start(Path(folder) / "data", engine, workers=workers)
        try:
            with database(service) as connection:
                connection.execute(_LIMITS)
            yield service
        finally:
            _end(service)


def _end(service: Stack) -> None:
    """Without waiting for what is being spoken: a second signal says so."""
    process = service.process
    for wait in (1.0, 60.0):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(wait)
    if process.poll() is None:
        process.kill()
        process.wait()


def database(service: Stack) -> psycopg.Connection[Any]:
    """Its database, each statement for itself; use it in a `with`."""
    return psycopg.connect(
        service.environment()["DATABASE_URL"], autocommit=True, cursor_factory=psycopg.ClientCursor
    )


def clear_queue(service: Stack) -> None:
    """End what waits, as if it had been canceled; without quota, which no bench looks at."""
    with database(service) as connection:
        connection.execute(_CLEAR)


def tidy_up(service: Stack) -> None:
    """What the database does by itself some time after many rows have come."""
    with database(service) as connection:
        connection.execute("VACUUM ANALYZE")


def settle(service: Stack, *, seconds: float = 120) -> None:
    """Wait until nothing waits and nothing is spoken."""
    end = time.monotonic() + seconds
    with database(service) as connection:
        while time.monotonic() < end:
            row = connection.execute(
                "SELECT count(*) FROM synthesis_synthesisrequest WHERE status IN ('queued', 'running')"
            ).fetchone()
            if row == (0,):
                return
            time.sleep(0.2)
    raise RuntimeError("the service does not come to rest")


def django(service: Stack) -> None:
    """Make this process one of the service's: its settings, database and Redis. Once in a process."""
    import django as framework

    os.environ.update(service.environment())
    framework.setup()


def teams(service: Stack, count: int) -> list[str]:
    """API keys of so many new teams with the demo team's plan."""
    printed = service.manage(
        "from accounts.models import Plan, User\n"
        "from accounts.services import keys, teams\n"
        f"for number in range({count}):\n"
        "    user = User.objects.create_user(f'bench{number}@example.org')\n"
        "    actor = teams.create(owner=user, name=f'Bench {number}', plan=Plan.objects.first())\n"
        "    print(keys.create(actor=actor, name='bench')[1])"
    )
    return printed.split()


@dataclass(frozen=True, slots=True)
class Preset:
    """A voice that an engine brings: its id for the API, its name for the engine."""

    id: str
    preset: str
    language: str


def preset(service: Stack, language: str = "en-US") -> Preset:
    """The first voice of the service's engine in a language, by name."""
    with database(service) as connection:
        row = connection.execute(
            "SELECT id::text, preset, language FROM synthesis_voice"
            " WHERE team_id IS NULL AND language = %s AND engine = %s ORDER BY name LIMIT 1",
            [language, service.environment()["CHORUS_ENGINE"]],
        ).fetchone()
    if row is None:
        raise RuntimeError(f"there is no preset for {language}")
    return Preset(*row)
