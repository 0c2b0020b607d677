"""`manage.py ledger_verify`: find any difference between ledger, counters and requests."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.operators import Operator
from synthesis.services import verification


class Command(BaseCommand):
    """Exit status 0 when everything adds up, 1 when something differs."""

    help = "Compare ledger, counters and requests; exit with 1 when anything differs."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--json`, `--record`."""
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument(
            "--record", action="store_true", help="keep the result where the admin panel shows it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what was compared, then each difference."""
        result = verification.verify()
        if options["record"]:
            verification.record(by=Operator.command(), result=result)
        if options["json"]:
            self.stdout.write(json.dumps(result.as_json(), indent=2))
        else:
            self.stdout.write("\n".join(verification.words(result.as_json())))
        if not result.is_clean:
            raise SystemExit(1)
