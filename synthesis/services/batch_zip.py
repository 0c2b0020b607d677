"""What was made of a batch as one zip archive, written while it is read: memory does not grow with the batch.

Sound is stored as it is (it is compressed already). The manifest comes last, when it is known which file could be
read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import exports
from synthesis.models import Batch, BatchRow, Status
from synthesis.services import batches, bundles

COLUMNS = (
    "row",
    "line",
    "status",
    "file",
    "synthesis_id",
    "title",
    "voice",
    "text",
    "characters",
    "seconds",
    "bytes",
    "sha256",
    "error",
)
#: Rows that are read at once.
_PAGE = 200


def pieces(batch: Batch) -> Iterator[bytes]:
    """The archive: a file for each row that succeeded and has not expired, `manifest.csv`, `manifest.jsonl`.

    Raises StorageUnavailable in the middle when storage goes away: the archive breaks off and does not open.
    """
    sink = exports.Sink()
    written: dict[int, str] = {}
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for row in _rows(batch, status=Status.SUCCEEDED):
            output = getattr(row.request, "output", None)
            if row.request is None or output is None:
                continue
            name = file_name(row)
            if (yield from bundles.add(archive, sink, name, output)):
                written[row.number] = name
        rows = (_line(row, written) for row in _rows(batch))
        with archive.open(_manifest("csv"), "w", force_zip64=True) as file:
            for piece in exports.csv_pieces(COLUMNS, rows):
                file.write(piece)
                yield sink.taken()
        with archive.open(_manifest("jsonl"), "w", force_zip64=True) as file:
            for row in _rows(batch):
                values = dict(zip(COLUMNS, _line(row, written), strict=True))
                file.write(json.dumps(values, ensure_ascii=False, default=str).encode() + b"\n")
                yield sink.taken()
    yield sink.taken()


def _rows(batch: Batch, status: str = "") -> Iterator[BatchRow]:
    """Page by page: a slow reader must not hold a transaction open."""
    last = 0
    while True:
        page = list(batches.rows_of(batch, status=status).filter(number__gt=last)[:_PAGE])
        yield from page
        if len(page) < _PAGE:
            return
        last = page[-1].number


def _manifest(ending: str) -> zipfile.ZipInfo:
    info = bundles.entry(f"manifest.{ending}", timezone.now())
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def file_name(row: BatchRow) -> str:
    """`00012 A title.mp3`, by the number of the row."""
    if row.request is None:
        raise ValueError("a row without a request has no file")
    return bundles.file_name(row.request, f"{row.number:05d}")


def _line(row: BatchRow, written: dict[int, str]) -> tuple[Any, ...]:
    """As COLUMNS."""
    request, given = row.request, row.input or {}
    output = getattr(request, "output", None)
    return (
        row.number,
        row.line,
        row.status,
        written.get(row.number, ""),
        str(request.pk) if request else "",
        request.title if request else given.get("title", ""),
        request.voice.name if request else given.get("voice", ""),
        request.text if request else given.get("text", ""),
        row.characters,
        output.seconds if output else None,
        output.bytes if output else None,
        output.sha256 if output else "",
        error_of(row)[0],
    )


def error_of(row: BatchRow) -> tuple[str, str]:
    """Code and message of a row that failed; empty strings otherwise."""
    if row.status != Status.FAILED:
        return "", ""
    if row.request is None:
        return row.error_code, row.error_message
    message = row.request.error_message
    return row.request.error_code, _(message) if message else ""
