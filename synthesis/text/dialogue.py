"""Read a dialogue: lines with speakers, a table (CSV), or subtitles (SRT)."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

#: "Anna: Good morning." with a Latin or a Chinese colon; the name is short and has no full stop in it. Neither
#: "http://…" nor "5:30" begins with a name. Without words it is somebody who says nothing.
_SPOKEN = re.compile(r"\s*([^:：.。!?！？\n]{1,40}?)\s*[:：](?!//)(?!(?<=\d[:：])\d)\s*(\S.*)?", re.DOTALL)
_TIMES = re.compile(r"(\d+):(\d\d):(\d\d)[,.](\d{1,3})\s*-->\s*(\d+):(\d\d):(\d\d)[,.](\d{1,3})")
_MARKUP = re.compile(r"</?[ibuc][^>]*>|\{\\[^}]*\}")
_NAMES = {
    "speaker": {"speaker", "role", "name", "character", "who", "说话人", "角色", "人物"},
    "text": {"text", "line", "words", "content", "台词", "文本", "内容"},
    "pause": {"pause", "停顿", "间隔"},
}
#: Between two subtitles more silence than this is an interval of the film and not of the talk.
_MOST_PAUSE = 10.0


@dataclass(frozen=True, slots=True)
class Line:
    """What one speaker says; `pause` in seconds after it, None where nothing is said about it. It stands in line `line`
    of the text, from 1.
    """

    speaker: str
    text: str
    pause: float | None = None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be meant: `line` of the text, from 1; `kind` "silent" (who says nothing), "pause" (`value` is no
    number) or "table" (the row cannot be read)."""

    line: int
    kind: str
    value: str = ""


def read(source: str) -> list[Line]:
    """The lines of `source`, whichever of the three it is; empty when there are none. Without those of `problems`."""
    return [found for found in _read(source) if isinstance(found, Line)]


def problems(source: str) -> list[Problem]:
    """What stands in the way of having `source` spoken as it was meant."""
    return [found for found in _read(source) if isinstance(found, Problem)]


def _read(source: str) -> list[Line | Problem]:
    source = source.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").rstrip()
    before = source[: len(source) - len(source.lstrip())].count("\n")
    source = source.lstrip()
    found = list(_subtitles(source)) if _TIMES.search(source) else _table(source)
    found = list(_play(source)) if found is None else found
    return [replace(one, line=one.line + before) for one in found]


def _play(source: str) -> Iterator[Line | Problem]:
    """A line that names nobody is said by whoever spoke before."""
    speaker = ""
    for number, line in enumerate(source.split("\n"), 1):
        text = line.strip()
        if not text:
            continue
        match = _SPOKEN.fullmatch(text)
        if match:
            speaker, text = match.group(1).strip(), (match.group(2) or "").strip()
        yield Line(speaker, text, line=number) if text else Problem(number, "silent", speaker)


def _table(source: str) -> list[Line | Problem] | None:
    """None unless the first row names a column of texts."""
    head = source.split("\n", 1)[0]
    delimiter = "\t" if "\t" in head else (";" if head.count(";") > head.count(",") else ",")
    rows = csv.reader(io.StringIO(source), delimiter=delimiter)
    try:
        names = [cell.strip().lower() for cell in next(rows)]
        columns = {
            kind: next((place for place, name in enumerate(names) if name in known), None)
            for kind, known in _NAMES.items()
        }
    except (csv.Error, StopIteration):
        return None
    if columns["text"] is None or len(names) < 2:
        return None
    found: list[Line | Problem] = []
    number = rows.line_num + 1
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                found.append(_row(row, columns, number))
            number = rows.line_num + 1
    except csv.Error:
        found.append(Problem(number, "table"))
    return found


def _row(row: list[str], columns: dict[str, int | None], number: int) -> Line | Problem:
    speaker, text, pause = (_cell(row, columns[kind]) for kind in ("speaker", "text", "pause"))
    if not text:
        return Problem(number, "silent", speaker)
    seconds = _number(pause)
    if pause and seconds is None:
        return Problem(number, "pause", pause)
    return Line(speaker, text, seconds, number)


def _cell(row: list[str], place: int | None) -> str:
    return row[place].strip() if place is not None and place < len(row) else ""


def _number(value: str) -> float | None:
    try:
        seconds = float(value.replace(",", "."))
    except ValueError:
        return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), _MOST_PAUSE)


def _subtitles(source: str) -> Iterator[Line | Problem]:
    found: list[tuple[float, float, str, str, int]] = []
    speaker, at = "", 0
    for block in re.split(r"\n\s*\n", source):
        at = source.index(block, at)
        times = _TIMES.search(block)
        if times is None:
            continue
        number = source.count("\n", 0, at) + 1
        start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:])
        text = " ".join(_MARKUP.sub("", block[times.end() :]).split())
        match = _SPOKEN.fullmatch(text)
        if match:
            speaker, text = match.group(1).strip(), (match.group(2) or "").strip()
        if text:
            found.append((start, end, speaker, text, number))
        elif match:
            yield Problem(number, "silent", speaker)
        at += len(block)
    for place, (_start, end, name, text, number) in enumerate(found):
        gap = found[place + 1][0] - end if place + 1 < len(found) else 0.0
        yield Line(name, text, round(min(max(gap, 0.0), _MOST_PAUSE), 2), number)


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000
