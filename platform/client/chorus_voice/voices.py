"""`chorus voices`: list, add, delete."""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chorus_voice.errors import REFUSED, CommandError, UsageError
from chorus_voice.http import Api, multipart
from chorus_voice.progress import Bar
from chorus_voice.words import _


def run(options: argparse.Namespace, api: Api, bar: Bar) -> int:
    """One of the three."""
    action = {"add": _add, "delete": _delete}.get(options.action or "list", _list)
    return action(options, api)


def _all(api: Api, **query: Any) -> Iterator[dict[str, Any]]:
    page = api.get("/voices", limit=100, **query)
    while True:
        yield from page["results"]
        if not page["next"]:
            return
        page = api.get(page["next"])


def _list(options: argparse.Namespace, api: Api) -> int:
    query = {name: getattr(options, name, None) for name in ("search", "language", "kind")}
    found = sorted(_all(api, **query), key=lambda voice: (voice["kind"] != "cloned", voice["name"].lower()))
    if getattr(options, "json", False):
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return 0
    table([(voice["name"], voice["language"], _kind(voice), voice["style"], voice["id"]) for voice in found])
    return 0


def _kind(voice: dict[str, Any]) -> str:
    return _("own") if voice["kind"] == "cloned" else _("preset")


def _add(options: argparse.Namespace, api: Api) -> int:
    clip = Path(options.clip)
    if not options.consent:
        raise UsageError(
            _(
                "Add --consent when this is your own voice, or when you have the speaker's permission to clone it."
            )
        )
    try:
        data = clip.read_bytes()
    except OSError as error:
        raise UsageError(f"{clip}: {error.strerror}") from None
    fields = {"name": options.name or clip.stem, "language": options.language, "consent": "true"}
    for name in ("transcript", "gender"):
        if value := getattr(options, name):
            fields[name] = value
    form, kind = multipart(fields, name="audio", filename=clip.name, data=data)
    voice = api.post("/voices", data=form, content_type=kind)
    print(f"{voice['name']}  {voice['id']}")
    return 0


def _delete(options: argparse.Namespace, api: Api) -> int:
    wanted = options.voice.casefold()
    own = [voice for voice in _all(api, kind="cloned") if wanted in (voice["id"], voice["name"].casefold())]
    if not own:
        raise CommandError(
            _("Your team has no voice “{name}” of its own.").format(name=options.voice), REFUSED
        )
    voice = own[0]
    if not options.yes:
        if not sys.stdin.isatty():
            raise UsageError(_("Add --yes to delete without a question."))
        question = _("Delete “{name}” for the whole team? [y/N] ").format(name=voice["name"])
        if input(question).strip().lower() not in {"y", "yes", "是"}:
            return 0
    api.delete(f"/voices/{voice['id']}")
    print(_("“{name}” is deleted.").format(name=voice["name"]))
    return 0


def table(rows: list[tuple[str, ...]]) -> None:
    """Columns under each other; Chinese characters are two columns wide."""
    if not rows:
        return
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
