"""A worker in a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from gpu_worker import jobs, resident


@contextmanager
def worker(engine: Any) -> Iterator[None]:
    """Speaks what is queued until the block ends."""
    stop = threading.Event()
    resident.install(engine=engine, worker_name="w1")

    def work() -> None:
        try:
            while not stop.is_set():
                jobs.run_next()
                time.sleep(0.02)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        resident.remove()
