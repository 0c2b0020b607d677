"""Read a dialogue: lines with speakers, a table (CSV), or subtitles (SRT)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

#: "Anna: Good morning." with a Latin or a Chinese colon; the name is short and has no full stop in it.
_SPOKEN = re.compile(r"\s*([^:：.。!?！？\n]{1,40}?)\s*[:：]\s*(\S.*)", re.DOTALL)
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
    """What one speaker says; `pause` in seconds after it, None where nothing is said about it."""

    speaker: str
    text: str
    pause: float | None = None


def read(source: str) -> list[Line]:
    """The lines of `source`, whichever of the three it is; empty when there are none."""
    source = source.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip()
    if _TIMES.search(source):
        return list(_subtitles(source))
    table = _table(source)
    return table if table is not None else list(_play(source))


def _play(source: str) -> Iterator[Line]:
    """A line that names nobody is said by whoever spoke before."""
    speaker = ""
    for line in source.split("\n"):
        text = line.strip()
        if not text:
            continue
        match = _SPOKEN.fullmatch(text)
        if match:
            speaker, text = match.group(1).strip(), match.group(2).strip()
        yield Line(speaker, text)


def _table(source: str) -> list[Line] | None:
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
        text_at = columns["text"]
        if text_at is None or len(names) < 2:
            return None
        return [
            Line(_cell(row, columns["speaker"]), _cell(row, text_at), _number(_cell(row, columns["pause"])))
            for row in rows
            if _cell(row, text_at)
        ]
    except (csv.Error, StopIteration):
        return None


def _cell(row: list[str], place: int | None) -> str:
    return row[place].strip() if place is not None and place < len(row) else ""


def _number(value: str) -> float | None:
    try:
        return min(max(float(value.replace(",", ".")), 0.0), _MOST_PAUSE)
    except ValueError:
        return None


def _subtitles(source: str) -> Iterator[Line]:
    found: list[tuple[float, float, str, str]] = []
    speaker = ""
    for block in re.split(r"\n\s*\n", source):
        times = _TIMES.search(block)
        if times is None:
            continue
        start, end = _seconds(times.groups()[:4]), _seconds(times.groups()[4:])
        text = " ".join(_MARKUP.sub("", block[times.end() :]).split())
        match = _SPOKEN.fullmatch(text)
        if match:
            speaker, text = match.group(1).strip(), match.group(2).strip()
        if text:
            found.append((start, end, speaker, text))
    for place, (_start, end, name, text) in enumerate(found):
        gap = found[place + 1][0] - end if place + 1 < len(found) else 0.0
        yield Line(name, text, round(min(max(gap, 0.0), _MOST_PAUSE), 2))


def _seconds(parts: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000
