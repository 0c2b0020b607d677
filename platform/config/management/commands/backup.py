"""`manage.py backup FOLDER`: database and objects into a folder, once or at an interval."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections

from config import backups

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """Back up, and remove old backups."""

    help = "Back up database and objects into a folder."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where, how often, how many."""
        parser.add_argument(
            "folder", type=Path, help="where backups are kept; objects are shared between them"
        )
        parser.add_argument(
            "--keep", type=int, default=0, help="remove all but the newest N backups (0: none)"
        )
        parser.add_argument(
            "--every", type=float, default=0, help="hours between two backups (0: one, then end)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """One backup, or one after the other until SIGTERM; with --every a failure is logged and tried again."""
        if options["keep"] < 0:
            raise CommandError("--keep takes how many backups to keep: 1 or more, or 0 to remove none")
        if not options["every"]:
            try:
                self._once(options)
            except backups.BackupError as error:
                raise CommandError(str(error)) from None
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.is_set():
            close_old_connections()
            try:
                self._once(options)
            except Exception:
                logger.exception("The backup failed")
            stop.wait(options["every"] * 3600)

    def _once(self, options: dict[str, Any]) -> None:
        backups.back_up(options["folder"], say=self.stdout.write)
        if options["keep"]:
            backups.prune(options["folder"], keep=options["keep"], say=self.stdout.write)
