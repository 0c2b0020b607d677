"""`manage.py restore FOLDER`: a backup into this installation, compared with its manifest at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import backups


class Command(BaseCommand):
    """Restore into an empty installation."""

    help = "Restore a backup into an empty installation, and compare."
    # Their tables are not there yet.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Which backup, and what to overlook."""
        parser.add_argument("folder", type=Path, help="where backups are kept")
        parser.add_argument(
            "--name", default="", help="a backup's name, such as 20260131T020000Z (default: newest)"
        )
        parser.add_argument("--replace", action="store_true", help="drop what the database holds first")
        parser.add_argument(
            "--while-running",
            action="store_true",
            help="go on though web, workers or others use the database; stop and start them afterwards",
        )
        parser.add_argument(
            "--other-peppers", action="store_true", help="go on though API keys will stop working"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Nothing is changed when the backup is damaged, or the database not empty or in use."""
        try:
            backups.restore(
                options["folder"],
                name=options["name"],
                replace=options["replace"],
                while_running=options["while_running"],
                other_peppers=options["other_peppers"],
                say=self.stdout.write,
            )
        except backups.BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(self.style.SUCCESS("Restored. Start web, streams, sweep and workers now."))
