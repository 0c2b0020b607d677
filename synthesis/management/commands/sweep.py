"""`manage.py sweep`: the small loop that mends what a killed process left behind. Safe to run twice at once."""

from __future__ import annotations

import logging
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections

from synthesis.services import batch_admission, batch_ends, deliveries, housekeeping

logger = logging.getLogger(__name__)

#: Seconds between two looks for webhooks that are to be told something, and for rows of batches.
_DELIVERY_SECONDS = 1.0
_ADMISSION_SECONDS = 1.0


class Command(BaseCommand):
    """Run every task of `housekeeping` at its interval until SIGTERM or SIGINT."""

    help = "Return expired leases, ring for waiting requests, delete expired outputs: until told to stop."

    def handle(self, *args: Any, **options: Any) -> None:
        """Loop; a task that fails (a server is away) is logged and tried again at its next turn."""
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        # On its own: a receiver that does not answer must not keep leases from being returned.
        threading.Thread(target=_deliver, args=(stop,), name="deliveries", daemon=True).start()
        threading.Thread(target=_admit, args=(stop,), name="batches", daemon=True).start()
        due = [0.0] * len(housekeeping.TASKS)
        while not stop.is_set():
            for index, (task, interval) in enumerate(housekeeping.TASKS):
                if time.monotonic() < due[index]:
                    continue
                due[index] = time.monotonic() + interval
                close_old_connections()
                try:
                    done = task()
                except Exception:
                    logger.exception("The sweep's task failed", extra={"task": task.__name__})
                else:
                    if done:
                        logger.info("Swept", extra={"task": task.__name__, "count": done})
            stop.wait(min(interval for _task, interval in housekeeping.TASKS))


def _deliver(stop: threading.Event) -> None:
    """Tell webhooks what is due, until told to stop."""
    while not stop.wait(_DELIVERY_SECONDS):
        close_old_connections()
        try:
            deliveries.send_due()
        except Exception:
            logger.exception("Webhooks were not told")


def _admit(stop: threading.Event) -> None:
    """Make requests of the rows of batches, and tell of batches that have ended, until told to stop."""
    while not stop.wait(_ADMISSION_SECONDS):
        close_old_connections()
        try:
            batch_admission.admit_waiting()
            batch_ends.tell()
        except Exception:
            logger.exception("Rows of batches were not queued")
