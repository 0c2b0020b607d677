"""`chorus usage`: what is left, and what was used."""

from __future__ import annotations

import argparse
import json

from chorus_voice.http import Api
from chorus_voice.progress import Bar
from chorus_voice.voices import table
from chorus_voice.words import _

BY = ("day", "month", "user", "key", "voice", "model")


def run(options: argparse.Namespace, api: Api, bar: Bar) -> int:
    """The month's characters, then a line for each day or whatever `--by` says."""
    quota = api.get("/quota")
    used = api.get("/usage", by=options.by, first=options.first, last=options.last)
    if options.json:
        print(json.dumps({"quota": quota, "usage": used}, ensure_ascii=False, indent=2))
        return 0
    print(
        _("{used} of {limit} characters used, {reserved} reserved; counted anew from {reset}.").format(
            used=f"{quota['characters_used']:,}",
            limit=f"{quota['characters_limit']:,}",
            reserved=f"{quota['characters_reserved']:,}",
            reset=quota["period_end"][:10],
        )
    )
    rows = [
        (
            row["name"] or row["id"],
            f"{row['characters']:,}",
            f"{row['requests']:,}",
            _minutes(row["audio_seconds"]),
        )
        for row in used["results"]
    ]
    if rows:
        table([(_(options.by), _("characters"), _("requests"), _("minutes")), *rows])
    return 0


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
