"""One resident worker in a process of its own, as `manage.py worker` runs it, with a journal in the
database's place."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import redis
from rq import Queue

from gpu_worker.worker import Limits, Report, ResidentWorker
from tests.gpu_worker.resident import journal

ORDER = Path(os.environ["CHORUS_TEST_JOURNAL"]).with_name("order")


def _need_database() -> None:
    if Path(os.environ["CHORUS_TEST_JOURNAL"]).with_name("database-away").exists():
        journal.write("refused")
        raise ConnectionError("the database is away")


def give_back(name: str, exit_code: int | None, stopped: bool) -> None:
    """Stands for `dispatch.abandon`."""
    _need_database()
    journal.write("lost", worker=name, exit_code=exit_code, stopped=stopped)


def beat(report: Report) -> str:
    """Stands for `workers.beat`; the order is in a file."""
    _need_database()
    journal.write(
        "beat", state=report.state, done=report.requests_done, rss=report.rss_bytes, error=report.last_error
    )
    return ORDER.read_text() if ORDER.exists() else ""


def obeyed(name: str, order: str) -> None:
    """Stands for `workers.obeyed`."""
    journal.write("obeyed", worker=name, order=order)
    ORDER.unlink()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    _, url, name, queue, max_requests, max_rss_mib = sys.argv
    connection = redis.Redis.from_url(url)
    ResidentWorker.beat_seconds = 1.0
    worker = ResidentWorker(
        [Queue(queue, connection=connection)],
        name,
        connection=connection,
        loader="tests.gpu_worker.resident.jobs.load",
        on_child_lost=give_back,
        beat=beat,
        obeyed=obeyed,
        limits=Limits(requests=int(max_requests), rss_bytes=int(max_rss_mib) * 2**20),
    )
    worker.work(logging_level="WARNING")
    sys.exit(1 if worker.failure else 0)
