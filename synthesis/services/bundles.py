"""Many recordings as one ZIP file, written while it is downloaded: nothing is kept in memory or on disk."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, cast

from accounts.errors import NotFound
from synthesis import storage
from synthesis.models import SynthesisRequest

#: More than somebody ticks by hand.
MOST = 500
_PIECE = 64 * 1024
_UNSAFE = re.compile(r"[^\w .,()\-]+")


class _Sink:
    """What `zipfile` writes to: it cannot seek, and is emptied after each piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def taken(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


def stream(requests: Iterable[SynthesisRequest]) -> Iterator[bytes]:
    """The recordings of `requests` (with `output` selected) in their order; what has none is left out."""
    sink = _Sink()
    # Sound does not become smaller by deflating it.
    with zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for number, request in enumerate(requests, 1):
            output = getattr(request, "output", None)
            if output is None:
                continue
            try:
                source = storage.open_range(output.key, 0, output.bytes - 1)
            except NotFound:
                continue
            moment: datetime = request.created_at
            info = zipfile.ZipInfo(_name(number, request), (*moment.timetuple()[:5], 0))
            info.file_size = output.bytes
            try:
                with archive.open(info, "w", force_zip64=output.bytes > 2**31 - 1) as entry:
                    for piece in source:
                        entry.write(piece)
                        yield sink.taken()
            finally:
                source.close()
    yield sink.taken()


def _name(number: int, request: SynthesisRequest) -> str:
    """A number first, so that names differ and sort as they were ticked; nothing that a file system objects to."""
    words = _UNSAFE.sub(" ", request.title or request.text[:80])
    return f"{number:03} {' '.join(words.split())[:60].strip(' .') or 'speech'}.{request.format}"
