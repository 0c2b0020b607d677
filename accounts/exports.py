"""Tables as CSV, JSON or XLSX, sent while they are read: memory does not grow with the number of rows.

XLSX is written here, and not by a library: those build the file in memory or on disk before the first byte leaves, and
a proxy would cut the silence. A worksheet is XML in a zip archive, and zip archives can be written as a stream.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from xml.sax.saxutils import escape

from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput

Rows = Iterable[Sequence[Any]]

#: What a worksheet can hold at most; then the next one begins.
SHEET_ROWS = 1_048_576
#: Bytes that are gathered before they are sent.
_CHUNK = 64 * 1024
#: A cell that begins so would be a formula to a spreadsheet, and names are what users choose.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def respond(*, rows: Rows, columns: Sequence[str], format: str, name: str) -> StreamingHttpResponse:
    """An answer that streams `rows` as the file `name` with the format's ending. InvalidInput for another format."""
    if format not in FORMATS:
        raise InvalidInput(
            _("“%(format)s” is not a format. There are: %(all)s.")
            % {"format": format, "all": ", ".join(FORMATS)},
            code="format_unknown",
            param="format",
        )
    content_type, write = FORMATS[format]
    response = StreamingHttpResponse(_gathered(write(columns, rows)), content_type=content_type)
    response.headers["Content-Disposition"] = (
        content_disposition_header(True, f"{name}.{format}") or "attachment"
    )
    response.headers["X-Accel-Buffering"] = "no"
    response.headers["Cache-Control"] = "no-store"
    return response


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces of a useful size: a row alone would be a packet alone."""
    pending = bytearray()
    for piece in pieces:
        pending += piece
        if len(pending) >= _CHUNK:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)


def csv_pieces(columns: Sequence[str], rows: Rows) -> Iterator[bytes]:
    """UTF-8 with a byte order mark, by which Excel knows it. RFC 4180."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    yield b"\xef\xbb\xbf"
    for row in _with_head(columns, rows):
        writer.writerow([_harmless(_plain(value)) for value in row])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


def json_pieces(columns: Sequence[str], rows: Rows) -> Iterator[bytes]:
    """An array with an object for each row."""
    yield b"["
    first = True
    for row in rows:
        text = json.dumps(dict(zip(columns, map(_plain, row), strict=True)), ensure_ascii=False)
        yield (b"\n" if first else b",\n") + text.encode()
        first = False
    yield b"\n]\n"


def xlsx_pieces(columns: Sequence[str], rows: Rows) -> Iterator[bytes]:
    """A workbook (ECMA-376) with as many worksheets as the rows need, each with the head."""
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        sheets = 0
        rows = iter(rows)
        row = next(rows, None)
        while row is not None or sheets == 0:
            sheets += 1
            with archive.open(f"xl/worksheets/sheet{sheets}.xml", "w", force_zip64=True) as sheet:
                sheet.write(_SHEET_HEAD)
                sheet.write(_sheet_row(columns))
                written = 1
                while row is not None and written < SHEET_ROWS:
                    sheet.write(_sheet_row(row))
                    written += 1
                    row = next(rows, None)
                    if written % 500 == 0:
                        yield sink.taken()
                sheet.write(_SHEET_TAIL)
            yield sink.taken()
        for path, content in _workbook(sheets):
            archive.writestr(path, content)
    yield sink.taken()


FORMATS: dict[str, tuple[str, Callable[[Sequence[str], Rows], Iterator[bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", csv_pieces),
    "json": ("application/json", json_pieces),
    "xlsx": ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", xlsx_pieces),
}


def _with_head(columns: Sequence[str], rows: Rows) -> Iterator[Sequence[Any]]:
    yield columns
    yield from rows


def _plain(value: Any) -> Any:
    """A value as JSON and CSV have it: numbers stay numbers, times are ISO 8601 in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.get_fixed_timezone(0)).isoformat(timespec="seconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, UUID):
        return str(value)
    if value is None:
        return ""
    return value


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


# --- The parts of a workbook ------------------------------------------------------------------------------------

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET_HEAD = f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetData>'.encode()
_SHEET_TAIL = b"</sheetData></worksheet>"


class Sink(io.RawIOBase):
    """A file that cannot be sought, from which what was written is taken away."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pending += data
        return len(data)

    def taken(self) -> bytes:
        """What was written since the last time."""
        data = bytes(self._pending)
        self._pending.clear()
        return data


def _sheet_row(row: Sequence[Any]) -> bytes:
    cells = []
    for value in row:
        plain = _plain(value)
        if isinstance(plain, bool) or not isinstance(plain, int | float):
            # A string in place is a string, whatever it begins with. Control characters cannot be in XML.
            text = escape("".join(char for char in str(plain) if char.isprintable() or char in "\t\n"))
            cells.append(f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>')
        else:
            cells.append(f"<c><v>{plain}</v></c>")
    return f"<row>{''.join(cells)}</row>".encode()


def _workbook(sheets: int) -> Iterator[tuple[str, str]]:
    numbers = range(1, sheets + 1)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{kind}.worksheet+xml"/>'
        for n in numbers
    )
    yield (
        "[Content_Types].xml",
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>{parts}</Types>',
    )
    yield (
        "_rels/.rels",
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    )
    listed = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="rId{n}"/>' for n in numbers)
    yield (
        "xl/workbook.xml",
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>',
    )
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in numbers
    )
    yield (
        "xl/_rels/workbook.xml.rels",
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{related}</Relationships>',
    )
