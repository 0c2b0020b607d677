"""Stands for a worker: `steady` finishes its job in hand when told to stop, `broken` ends at once."""

from __future__ import annotations

import os
import signal
import sys
import time

from tests.gpu_worker.resident import journal

_asked = 0


def on_signal(*_: object) -> None:
    """The first signal lets the job finish, the second does not."""
    global _asked
    _asked += 1
    journal.write("asked", count=_asked)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, on_signal)
    journal.write("started", slot=os.environ["SLOT"])
    if sys.argv[1] == "broken":
        sys.exit(1)
    while not _asked:
        time.sleep(0.02)
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end and _asked < 2:
        time.sleep(0.02)
    journal.write("finished")
