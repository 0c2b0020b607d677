"""`manage.py workers`: the workers of this machine, kept running."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from gpu_worker import naming, processes
from gpu_worker.supervisor import Slot, Supervisor, gpus, slot_environment


class Command(BaseCommand):
    """Start one worker per slot and keep them running until SIGTERM."""

    help = "Run the workers of this machine and start them again when they end, until told to stop."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The command line."""
        parser.add_argument("--count", type=int, help="how many workers (default: one per GPU, else one)")
        parser.add_argument(
            "--name-prefix", default="", help="stands for the host's name in the workers' names"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until told to stop and the workers have finished the job in hand."""
        prefix = options["name_prefix"]
        if settings.CHORUS_POOL and not prefix:
            # Two pools may have workers on the same machine.
            prefix = f"{socket.gethostname()}-{settings.CHORUS_POOL}"
        devices = gpus(os.environ)
        count = max(1, len(devices)) if options["count"] is None else options["count"]
        shared = {**os.environ, "PYTHONPATH": processes.module_path()}
        slots = []
        for index in range(count):
            name = naming.worker_name(index, prefix)
            added = slot_environment(
                index, count=count, devices=devices, cores=processes.usable_cores(), environment=os.environ
            )
            argv = [sys.executable, "-m", "django", "worker", "--name", name]
            slots.append(Slot(name, argv, shared | added))
        Supervisor(slots).run()
