"""Downloads that go on where they broke off, and are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
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
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    part = target.with_name(f"{target.name}.part")
    end = time.monotonic() + api.patience
    while (have := _size(part)) != size:
        if have > size:
            part.unlink()
            continue
        try:
            _more(api, path, part, have, sha256)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # a file of ours, not the connection
        if _size(part) > have:
            end = time.monotonic() + api.patience
        elif time.monotonic() > end:
            raise Unreachable(_("The connection is lost; trying again did not help."))
        if _size(part) != size:
            api.waiting(_("The connection is lost; trying again"))
            time.sleep(_PAUSE)
    api.waiting("")
    if _digest(part) != sha256:
        part.unlink()
        raise CommandError(_("{file} arrived damaged. Try again.").format(file=target.name))
    part.replace(target)


def _more(api: Api, path: str, part: Path, have: int, sha256: str) -> None:
    headers = {}
    if have:
        # If it is no longer the same file, the whole of it comes instead of the rest.
        headers = {"Range": f"bytes={have}-", "If-Range": f'"{sha256}"'}
    try:
        answer = api.open(path, headers)
    except Refused as error:
        if error.http_status != 416:
            raise
        part.unlink()
        return
    with answer, part.open("ab" if answer.status == 206 else "wb") as file:
        while piece := answer.read(_PIECE):
            file.write(piece)


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


def _digest(part: Path) -> str:
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
