"""Many recordings as one ZIP file, written while it is downloaded: nothing is kept in memory or on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime

from accounts.errors import NotFound
from accounts.exports import Sink
from synthesis import storage
from synthesis.models import Output, SynthesisRequest

#: More than somebody ticks by hand.
MOST = 500
#: Of a title or text in a file's name, in bytes of UTF-8: with number and ending far below the 255 of file systems.
_NAME_BYTES = 120
#: What Windows does not take in a name, and what would be a folder.
_FORBIDDEN = frozenset('<>:"/\\|?*')


def stream(requests: Iterable[SynthesisRequest]) -> Iterator[bytes]:
    """The recordings of `requests` (with `output` selected) in their order; what has none is left out.

    Raises StorageUnavailable in the middle when storage goes away: the file breaks off and does not open.
    """
    sink = Sink()
    # Sound does not become smaller by deflating it.
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for number, request in enumerate(requests, 1):
            output: Output | None = getattr(request, "output", None)
            if output is not None:
                yield from add(archive, sink, file_name(request, f"{number:03d}"), output)
    yield sink.taken()


def add(archive: zipfile.ZipFile, sink: Sink, name: str, output: Output) -> Generator[bytes, None, bool]:
    """Put a recording into `archive`, which writes to `sink`; False when it has expired in this moment."""
    try:
        source = storage.open_range(output.key, 0, output.bytes - 1)
    except NotFound:
        return False
    try:
        with archive.open(entry(name, output.created_at), "w", force_zip64=True) as file:
            for piece in source:
                file.write(piece)
                yield sink.taken()
    finally:
        source.close()
    return True


def entry(name: str, at: datetime) -> zipfile.ZipInfo:
    """A file in an archive that everybody may read."""
    info = zipfile.ZipInfo(name, at.timetuple()[:6])
    info.external_attr = 0o644 << 16
    return info


def file_name(request: SynthesisRequest, number: str) -> str:
    """`012 A title.mp3`: unique by its number, safe on every system, in whatever script the title is."""
    words = "".join(
        " " if char in _FORBIDDEN else char
        for char in request.title or request.text[:_NAME_BYTES]
        if char.isprintable() or char.isspace()
    )
    cut = " ".join(words.split()).encode()[:_NAME_BYTES].decode(errors="ignore").strip().rstrip(". ")
    return f"{number}{' ' if cut else ''}{cut}.{request.format}"
