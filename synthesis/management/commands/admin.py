"""`manage.py admin <noun> <verb> …`: what operators do in the panel, for scripts. `./chorus admin` calls it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.errors import ChorusError
from synthesis.console import NOUNS
from synthesis.console.common import WRITTEN, lines, plain


class Command(BaseCommand):
    """Exit status 0 when it was done, 1 when it was refused or (verify) something differs."""

    help = "Quotas, teams, people, requests, workers, voices, settings and reports, for scripts."

    def add_arguments(self, parser: CommandParser) -> None:
        """A parser for each noun and verb; `--json` after any of them."""
        nouns = parser.add_subparsers(dest="noun", required=True, metavar="noun")
        for noun, (text, verbs) in NOUNS.items():
            of_noun = nouns.add_parser(noun, help=text, description=text)
            of_verb = of_noun.add_subparsers(dest="verb", required=True, metavar="verb")
            for verb in verbs:
                made = of_verb.add_parser(verb.name, help=verb.help, description=verb.help)
                for flags, options in verb.arguments:
                    made.add_argument(*flags, **options)
                made.add_argument("--json", action="store_true", help="print JSON")
                made.set_defaults(run=verb.run, words=verb.words or lines)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb and write its answer."""
        as_json = options["json"]
        try:
            answer = options["run"](argparse.Namespace(**options))
        except ChorusError as error:
            if as_json:
                self.stdout.write(
                    json.dumps({"error": {"code": error.code, "message": str(error)}}, ensure_ascii=False)
                )
            else:
                self.stderr.write(str(error))
            raise SystemExit(1) from None
        except FileExistsError as error:
            self.stderr.write(f"{error.filename} exists already.")
            raise SystemExit(1) from None
        if answer is WRITTEN:
            return
        if as_json:
            self.stdout.write(json.dumps(plain(answer), ensure_ascii=False, indent=2))
        else:
            self.stdout.write("\n".join(options["words"](plain(answer))))
        if isinstance(answer, dict) and answer.get("clean") is False:
            raise SystemExit(1)
