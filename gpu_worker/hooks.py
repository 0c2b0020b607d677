"""What the worker tells the rest of Chorus, in Postgres."""

from __future__ import annotations

from dataclasses import asdict

from django.conf import settings
from django.db import close_old_connections, connection

from gpu_worker.worker import Report
from synthesis.services import dispatch, workers


def give_back(worker: str, exit_code: int | None, stopped: bool) -> None:
    """The requests that `worker` had in hand return to the queue; `exit_code` is for the worker's own log."""
    close_old_connections()
    try:
        dispatch.abandon(worker=worker, stopped=stopped)
    finally:
        # Needed again in hours or never.
        connection.close()


def beat(report: Report) -> str:
    """The worker's row in the list of workers; an operator's order, or nothing. Called from a thread that keeps its
    connection."""
    close_old_connections()
    return workers.beat(**asdict(report), pool=settings.CHORUS_POOL)


def obeyed(worker: str, order: str) -> None:
    """The order was carried out; it is not to be heard again."""
    close_old_connections()
    try:
        workers.obeyed(name=worker, order=order)
    finally:
        connection.close()
