"""Downloads that go on where they broke off, and are whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import time
from pathlib import Path

from chorus_voice.errors import CommandError, Refused, Unreachable
from chorus_voice.http import Api
from chorus_voice.words import _

_PIECE = 64 * 1024
_PAUSE = 0.5


def fetch(api: Api, path: str, target: Path, *, size: int, sha256: str) -> None:
    """The file at `path`, of `size` bytes and with this digest, as `target`.

    It is written beside it as `….part` and renamed when it is whole; what an earlier attempt left is gone on with.
    """
    part = target.with_name(f"{target.name}.part")
    if _size(part) > size:  # of something else
        part.unlink()
    end = time.monotonic() + api.patience
    while (have := _size(part)) < size:
        if not _more(api, path, part, have, sha256):
            raise _damaged(part, target)
        if _size(part) > have:
            end = time.monotonic() + api.patience
        elif time.monotonic() > end:
            raise Unreachable(_("The connection is lost; trying again did not help."))
        if _size(part) < size:
            api.waiting(_("The connection is lost; trying again"))
            time.sleep(_PAUSE)
    api.waiting("")
    if digest(part) != sha256:
        raise _damaged(part, target)
    part.replace(target)


def _damaged(part: Path, target: Path) -> CommandError:
    drop(part)
    return CommandError(_("{file} arrived damaged. Try again.").format(file=target.name))


def _more(api: Api, path: str, part: Path, have: int, sha256: str) -> bool:
    """As much as comes before the connection breaks; False when the file has no more. OSError is the disk's."""
    headers = {}
    if have:
        # If it is no longer the same file, the whole of it comes instead of the rest.
        headers = {"Range": f"bytes={have}-", "If-Range": f'"{sha256}"'}
    try:
        answer = api.open(path, headers)
    except Refused as error:
        if error.http_status != 416:
            raise
        return False
    with answer, part.open("ab" if answer.status == 206 else "wb") as file:
        while piece := _piece(answer):
            file.write(piece)
    return True


def _piece(answer: http.client.HTTPResponse) -> bytes:
    """Nothing at the end, and where the connection broke."""
    try:
        return answer.read(_PIECE)
    except (OSError, http.client.HTTPException):
        return b""


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def digest(part: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while piece := file.read(1024 * 1024):
            digest.update(piece)
    return digest.hexdigest()


def free_name(wanted: Path) -> Path:
    """`wanted`, or with a number when that is taken."""
    target, number = wanted, 1
    while target.exists():
        number += 1
        target = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
    return target


def drop(part: Path) -> None:
    """Remove what is left of a download that nobody wants any more."""
    with contextlib.suppress(OSError):
        part.unlink()
