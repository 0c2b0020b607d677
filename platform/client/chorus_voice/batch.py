"""`chorus batch`: a CSV or JSON Lines file becomes a folder of files.

What was begun is noted in the folder: the same command goes on where it was broken off, and queues nothing twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chorus_voice import files
from chorus_voice.errors import ROWS_FAILED, CommandError, Refused, UsageError
from chorus_voice.http import Api, multipart
from chorus_voice.progress import Bar, clock
from chorus_voice.words import _

NOTE = ".chorus-batch.json"
_DEFAULTS = ("voice", "format", "speed", "language", "instruction", "seed")
_FIRST_LOOK, _SLOWEST_LOOK = 0.5, 5.0
_SHOWN = 20
#: How files of rows are called: by number and title.
_SOUND = re.compile(r"\d{5}( .*)?\.(mp3|wav|flac|opus|aac|pcm)")
_FINISHED = ("succeeded", "failed", "canceled")


def run(options: argparse.Namespace, api: Api, bar: Bar) -> int:
    """Submit, fetch each row as soon as it is done, tell which ones failed."""
    script = Path(options.script)
    try:
        data = script.read_bytes()
    except OSError as error:
        raise UsageError(f"{script}: {error.strerror}") from None
    fields = {name: str(value) for name in _DEFAULTS if (value := getattr(options, name)) is not None}
    fields["name"] = options.name or script.name
    if options.dry_run:
        return _dry_run(api, script, data, fields)
    folder = Path(options.output or script.stem or "batch")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from None
    note = _note(folder, api.server.url, data, fields)
    batch = _submit(api, script, data, fields, note["key"], bar)
    if options.retry and batch["counts"]["failed"]:
        batch = api.post(f"/batches/{batch['id']}/retry", safe=True)
    if options.no_wait:
        bar.close()
        print(batch["id"])
        return 0
    batch, names = _gather(api, bar, batch, folder)
    bar.close()
    _tell_left_over(folder, names)
    return _report(api, batch, folder)


def _submit(
    api: Api, script: Path, data: bytes, fields: dict[str, str], key: str, bar: Bar
) -> dict[str, Any]:
    form, kind = multipart(fields, name="file", filename=script.name, data=data)
    try:
        batch = api.post("/batches", data=form, content_type=kind, key=key)
    except Refused as error:
        _tell_problems(error, script, bar)
        raise
    # The answer may be an old one, of the first time.
    return dict(api.get(f"/batches/{batch['id']}"))


def _tell_problems(error: Refused, script: Path, bar: Bar) -> None:
    problems = error.details.get("problems") or []
    for problem in problems[:_SHOWN] if len(problems) > 1 else []:
        column = f" {problem['column']}:" if problem.get("column") else ""
        bar.say(f"{script.name}:{problem['line']}:{column} {problem['message']}")


def _dry_run(api: Api, script: Path, data: bytes, fields: dict[str, str]) -> int:
    form, kind = multipart(fields | {"dry_run": "true"}, name="file", filename=script.name, data=data)
    found = api.post("/batches", data=form, content_type=kind, safe=True)
    print(
        _("{rows} rows · {characters} characters").format(
            rows=found["rows_total"], characters=found["characters"]
        )
    )
    if found["limit"]:
        print(found["limit"]["message"])
    return 0


def _note(folder: Path, url: str, data: bytes, fields: dict[str, str]) -> dict[str, str]:
    """The idempotency key of this batch: a new one unless this very batch was begun in this folder."""
    what = hashlib.sha256(json.dumps([url, fields], sort_keys=True).encode() + data).hexdigest()
    path = folder / NOTE
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["what"] == what:
            return {"key": str(kept["key"]), "what": what}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    note = {"key": str(uuid.uuid4()), "what": what}
    path.write_text(json.dumps(note), encoding="utf-8")
    return note


def _gather(api: Api, bar: Bar, batch: dict[str, Any], folder: Path) -> tuple[dict[str, Any], set[str]]:
    """Until every row has ended and what succeeded is in the folder; the names of the files."""
    pause = _FIRST_LOOK
    there: dict[int, str] = {}
    while True:
        counts = batch["counts"]
        new = counts["succeeded"] - len(there)
        if new:
            for row in _rows(api, batch, "succeeded"):
                if row["row"] not in there:
                    there[row["row"]] = _fetch(api, row, folder)
                    _show(bar, batch, len(there))
        _show(bar, batch, len(there))
        if batch["status"] in _FINISHED and len(there) >= counts["succeeded"]:
            return batch, set(there.values())
        time.sleep(pause)
        pause = _FIRST_LOOK if new else min(pause * 1.5, _SLOWEST_LOOK)
        batch = api.get(f"/batches/{batch['id']}")


def _show(bar: Bar, batch: dict[str, Any], there: int) -> None:
    counts = batch["counts"]
    ended = there + counts["failed"] + counts["canceled"]
    words = f"{ended}/{batch['rows_total']}"
    if counts["failed"]:
        words += " · " + _("{count} failed").format(count=counts["failed"])
    bar.show(ended / batch["rows_total"], words)


def _rows(api: Api, batch: dict[str, Any], status: str) -> Iterator[dict[str, Any]]:
    page = api.get(f"/batches/{batch['id']}/rows", status=status, limit=100)
    while True:
        yield from page["results"]
        if not page["next"]:
            return
        page = api.get(page["next"])


def _tell_left_over(folder: Path, names: set[str]) -> None:
    """The sound of an earlier batch stays where it is, but is not taken for that of this one."""
    others = sorted(
        one.name for one in folder.iterdir() if _SOUND.fullmatch(one.name) and one.name not in names
    )
    if others:
        shown = ", ".join(others[:_SHOWN]) + (", …" if len(others) > _SHOWN else "")
        print(_("Still in the folder, and not of this batch: {names}").format(names=shown), file=sys.stderr)


def _fetch(api: Api, row: dict[str, Any], folder: Path) -> str:
    """The name of the file; empty when the sound is gone."""
    output = row["output"]
    if output is None:  # expired or deleted meanwhile
        return ""
    name = Path(str(output["file"])).name
    if not name or name.startswith("."):
        raise CommandError(_("The server names a file in a way that is not safe: {name}").format(name=name))
    target = folder / name
    # The file of another batch may have the same name and size.
    if (
        target.exists()
        and target.stat().st_size == output["bytes"]
        and files.digest(target) == output["sha256"]
    ):
        return name
    files.fetch(
        api,
        f"/syntheses/{row['synthesis_id']}/audio",
        target,
        size=output["bytes"],
        sha256=output["sha256"],
    )
    return name


def _report(api: Api, batch: dict[str, Any], folder: Path) -> int:
    counts = batch["counts"]
    print(
        _("{folder} · {count} of {all} rows · {time} · {characters} characters").format(
            folder=folder,
            count=counts["succeeded"],
            all=batch["rows_total"],
            time=clock(batch["audio_seconds"]),
            characters=batch["characters_charged"],
        )
    )
    bad = counts["failed"] + counts["canceled"]
    if not bad:
        return 0
    if counts["failed"]:
        for row, _number in zip(_rows(api, batch, "failed"), range(_SHOWN), strict=False):
            message = (row["error"] or {}).get("message", "")
            print(
                _("Row {row} (line {line}): {message}").format(
                    row=row["row"], line=row["line"], message=message
                )
            )
    raise CommandError(
        _(
            "{count} rows were not spoken. The same command with --retry tries those that failed again."
        ).format(count=bad),
        ROWS_FAILED,
    )
