"""Many recordings as one ZIP file, written while it is downloaded: nothing is kept in memory or on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime

from accounts import filenames
from accounts.errors import NotFound
from accounts.exports import Sink
from synthesis import storage
from synthesis.models import Output, SynthesisRequest

#: More than somebody ticks by hand.
MOST = 500
#: Characters of the text that name a download whose request has no title.
_NAME_CHARACTERS = 60


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
    words = filenames.safe(request.title or request.text[: filenames.BYTES])
    return f"{number}{' ' if words else ''}{words}.{request.format}"


def own_name(request: SynthesisRequest, ending: str = "") -> str:
    """`A title.mp3` of a download of its own: the title, or how the text begins."""
    words = request.title or " ".join(request.text[: _NAME_CHARACTERS * 4].split())
    if len(words) > _NAME_CHARACTERS:
        words = words[:_NAME_CHARACTERS].rsplit(" ", 1)[0]
    return filenames.name(words, ending or request.format, default="speech")
