"""`chorus say`: a text becomes a file."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from chorus_voice import files
from chorus_voice.errors import FAILED, CommandError, UsageError
from chorus_voice.http import Api
from chorus_voice.progress import Bar, clock
from chorus_voice.words import _

FORMATS = ("mp3", "wav", "flac", "opus", "aac", "pcm")
#: Bytes of a text file: more than any server takes.
_TEXT_BYTES = 1024 * 1024
_FIRST_LOOK, _SLOWEST_LOOK = 0.2, 2.0
_OPTIONS = ("speed", "language", "instruction", "seed", "title")


def run(options: argparse.Namespace, api: Api, bar: Bar) -> int:
    """Submit, wait, fetch. The idempotency key makes sure that a lost answer does not queue the text twice."""
    text = _text(options)
    sound = options.format or _format_of(options.output)
    target = None if options.output == "-" else Path(options.output or f"speech.{sound}")
    into_folder = target is not None and target.is_dir()
    if target is not None and into_folder:
        target /= f"speech.{sound}"
    if target and not target.parent.is_dir():  # before anything is paid for
        raise UsageError(_("There is no folder {folder}.").format(folder=target.parent))
    body: dict[str, Any] = {"text": text, "voice": options.voice, "format": sound}
    body |= {name: value for name in _OPTIONS if (value := getattr(options, name)) is not None}
    made = api.post("/syntheses", body, key=str(uuid.uuid4()))
    try:
        made = _wait(api, bar, made)
    except KeyboardInterrupt:
        # It shall not be spoken for nobody. Nothing is charged.
        with contextlib.suppress(CommandError, KeyboardInterrupt):
            Api(api.server, patience=0).post(f"/syntheses/{made['id']}/cancel", safe=True)
        raise
    output = made["output"]
    address = f"/syntheses/{made['id']}/audio"
    if target is None:
        with tempfile.TemporaryDirectory(prefix="chorus-") as folder:
            target = Path(folder) / "audio"
            files.fetch(api, address, target, size=output["bytes"], sha256=output["sha256"])
            bar.close()
            sys.stdout.buffer.write(target.read_bytes())
            sys.stdout.buffer.flush()
        return 0
    if not options.output or into_folder:
        target = files.free_name(target)
    # Never the rest of another text.
    files.drop(target.with_name(f"{target.name}.part"))
    files.fetch(api, address, target, size=output["bytes"], sha256=output["sha256"])
    bar.close()
    print(
        _("{file} · {time} · {characters} characters").format(
            file=target, time=clock(output["seconds"]), characters=made["characters"]
        )
    )
    return 0


def _wait(api: Api, bar: Bar, made: dict[str, Any]) -> dict[str, Any]:
    pause = _FIRST_LOOK
    while made["status"] in ("queued", "running"):
        bar.show(made["segments_done"] / max(1, made["segments_total"]), _state(made))
        time.sleep(pause)
        pause = min(pause * 1.5, _SLOWEST_LOOK)
        made = api.get(f"/syntheses/{made['id']}")
    if made["status"] == "succeeded" and made["output"]:
        bar.show(1, "")
        return made
    error = made.get("error") or {}
    words = error.get("message") or _("It was cancelled.")
    raise CommandError(words, FAILED)


def _state(made: dict[str, Any]) -> str:
    words = []
    if made["status"] == "queued":
        ahead = made.get("ahead")
        words.append(_("waiting, {ahead} before it").format(ahead=ahead) if ahead else _("waiting"))
        if made.get("workers") == 0:
            words.append(_("no worker is there"))
    if made.get("eta_seconds") is not None:
        words.append(_("{time} left").format(time=clock(made["eta_seconds"])))
    return " · ".join(words)


def _text(options: argparse.Namespace) -> str:
    """From the command line, a file, or standard input."""
    if (options.text is not None) + (options.file is not None) > 1:
        raise UsageError(_("Give the text or a file, not both."))
    if options.text is not None and options.text != "-":
        return str(options.text)
    if options.file not in (None, "-"):
        try:
            with Path(options.file).open("rb") as file:
                data = file.read(_TEXT_BYTES + 1)
        except OSError as error:
            raise UsageError(f"{options.file}: {error.strerror}") from None
    else:
        if options.file is None and options.text is None and sys.stdin.isatty():
            raise UsageError(_("Say what to speak: a text, -f FILE, or standard input."))
        data = sys.stdin.buffer.read(_TEXT_BYTES + 1)
    if len(data) > _TEXT_BYTES:
        raise UsageError(_("The text is larger than {max} KiB. Split it.").format(max=_TEXT_BYTES // 1024))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(_("The text is not UTF-8.")) from None


def _format_of(output: str | None) -> str:
    """By the ending of the file's name."""
    if output in (None, "-") or Path(str(output)).is_dir():
        return "mp3"
    ending = Path(str(output)).suffix.removeprefix(".").lower()
    if not ending:
        raise UsageError(
            _("Give the file a name with an ending, or say --format. There are: {all}.").format(
                all=", ".join(FORMATS)
            )
        )
    if ending not in FORMATS:
        raise UsageError(
            _("“{ending}” is no format. There are: {all}.").format(ending=ending, all=", ".join(FORMATS))
        )
    return ending
