"""`python -m gpu_worker`: the workers of this machine, one for each GPU, kept running until SIGTERM.

Django is loaded in the workers and not here: who only watches needs none of it, and the first worker begins two
seconds earlier.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from datetime import UTC, datetime

from gpu_worker import processes
from gpu_worker.supervisor import Slot, Supervisor, gpus, slot_environment


class _JsonLines(logging.Formatter):
    """The fields that each line of the other processes' logs has (`config.logs`)."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(line, ensure_ascii=False)


def slots(count: int | None, prefix: str) -> list[Slot]:
    """`count` workers (None: one for each GPU, and one where there is none), each a process with its environment."""
    devices = gpus(os.environ)
    number = max(1, len(devices)) if count is None else count
    shared = (
        {"DJANGO_SETTINGS_MODULE": "config.settings"} | os.environ | {"PYTHONPATH": processes.module_path()}
    )
    cores = processes.usable_cores()
    named = ["--name-prefix", prefix] if prefix else []
    return [
        Slot(
            str(index),
            [sys.executable, "-m", "django", "worker", "--slot", str(index), *named],
            shared
            | slot_environment(index, count=number, devices=devices, cores=cores, environment=os.environ),
        )
        for index in range(number)
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gpu_worker",
        description="Run the workers of this machine and start them again when they end, until told to stop.",
    )
    parser.add_argument("--count", type=int, help="how many workers (default: one per GPU, else one)")
    parser.add_argument("--name-prefix", default="", help="stands for the host's name in the workers' names")
    options = parser.parse_args()
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=os.environ.get("CHORUS_LOG_LEVEL") or "INFO", handlers=[handler])
    Supervisor(slots(options.count, options.name_prefix)).run()


if __name__ == "__main__":
    main()
