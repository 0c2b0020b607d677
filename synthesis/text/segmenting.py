"""Split a text into the segments that an engine speaks one by one.

Nothing is lost or added: the segments together hold every character of the text other than white space, in
order. The work grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from synthesis.text.characters import is_han_or_kana, weigh
from synthesis.text.clean import is_speakable
from synthesis.text.cutting import cut_early, cut_sentence
from synthesis.text.sentences import sentences

#: What follows a segment: the end of a sentence or paragraph, a clause (comma, colon …) of a sentence that
#: was too long, a cut in running words, or the end of the text.
Kind = Literal["sentence", "paragraph", "clause", "cut", "end"]

#: Seconds of silence after a segment. Readings of prose pause 0.2-0.4 s between sentences and 0.5-0.8 s
#: between paragraphs; a comma gets half of a full stop, and a cut in running words nothing.
PAUSES: dict[Kind, float] = {"sentence": 0.25, "paragraph": 0.6, "clause": 0.12, "cut": 0.0, "end": 0.0}

#: Shorter neighbours are merged: about 2.5 s of speech, below which engines clip words and lose their melody.
_LEAST = 40.0
#: The first segment decides when the first sound is heard; a long first sentence is cut at a comma in this
#: range.
_FIRST_LEAST, _FIRST_MOST = 30.0, 80.0
#: A paragraph below this (three Han characters, one short word) joins the one before: alone it sounds
#: clipped.
_TINY = 9.0
#: A line that ends without a mark and is this long was broken by an editor, not by its writer.
_WRAPPED_LATIN, _WRAPPED_EAST_ASIAN = 40, 25
_SMALLEST_LIMIT = 20

_SENTENCE_END = re.compile("[.!?…。！？｡．؟।:：][\"'”’»)\\]」』）】]*$")
_LIST_ITEM = re.compile(
    r"[-*•·–—]\s|\(?\d{1,3}[.)、．]|[（(][\d一二三四五六七八九十]{1,3}[)）]|第[\d一二三四五六七八九十百]"
)
_NO_BREAK_SPACES = ("\u00a0", "\u202f", "\u2007")
_WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Segment:
    """What the engine speaks in one go, and the silence after it in seconds."""

    text: str
    pause_after: float
    kind: Kind


def split(text: str, *, language: str, limit: int) -> list[Segment]:
    """`text`, as `clean` returns it, in segments of at most `limit` (`Capabilities.segment_characters`).

    The limit counts a letter as 1 and a Han character as 2.5 (`characters.weight`), so that one number
    serves all languages. Only a run of punctuation can exceed it, because what cannot be spoken is never a
    segment of its own. `language` is a BCP 47 tag. ValueError for a limit below 20.
    """
    if limit < _SMALLEST_LIMIT:
        raise ValueError(f"limit must be at least {_SMALLEST_LIMIT}")
    pieces: list[Segment] = []
    for paragraph in _paragraphs(text):
        merged = _merge(_cut_to_size(sentences(paragraph, language=language), limit), limit)
        if merged:
            merged[-1] = replace(merged[-1], kind="paragraph")
            pieces += _joined_to_last(pieces, merged, limit)
    pieces = _attach_unspeakable(_start_early(pieces))
    if pieces:
        pieces[-1] = replace(pieces[-1], kind="end")
    return [Segment(_spaced(piece.text), PAUSES[piece.kind], piece.kind) for piece in pieces]


def _paragraphs(text: str) -> Iterator[str]:
    """Lines that belong together, joined; a blank line or a deliberate line break separates."""
    lines: list[str] = []
    for raw in text.split("\n"):
        line = _WHITE_SPACE.sub(_single_space, raw).strip()
        if lines and line and _is_wrapped(lines[-1], line):
            lines.append(line)
            continue
        if lines:
            yield _join_lines(lines)
        lines = [line] if line else []
    if lines:
        yield _join_lines(lines)


def _join_lines(lines: list[str]) -> str:
    joined = [lines[0]]
    for left, right in pairwise(lines):
        joined += [_separator(left, right), right]
    return "".join(joined)


def _is_wrapped(previous: str, line: str) -> bool:
    if _SENTENCE_END.search(previous[-8:]) or _LIST_ITEM.match(line):
        return False
    if line[0].islower():
        return True
    long = _WRAPPED_EAST_ASIAN if is_han_or_kana(previous[-1]) else _WRAPPED_LATIN
    return len(previous) >= long


def _join(left: str, right: str) -> str:
    return f"{left}{_separator(left, right)}{right}"


def _separator(left: str, right: str) -> str:
    """A space, except between neighbours that Chinese and Japanese write without one."""
    left_fits = is_han_or_kana(left[-1]) or left[-1] in "，。！？；：、”’」』）》…"
    right_fits = is_han_or_kana(right[0]) or right[0] in "“‘「『（《【"
    return "" if left_fits and right_fits else " "


def _cut_to_size(parts: Iterable[str], limit: int) -> Iterator[Segment]:
    for sentence in parts:
        for piece in cut_sentence(sentence, limit):
            yield Segment(piece.text, 0.0, piece.cut or "sentence")


def _single_space(match: re.Match[str]) -> str:
    # A no-break space keeps its neighbours together until the cuts are made.
    return match.group() if match.group() in _NO_BREAK_SPACES else " "


def _spaced(text: str) -> str:
    for space in _NO_BREAK_SPACES:
        text = text.replace(space, " ")
    return text


def _merge(pieces: Iterable[Segment], limit: int) -> list[Segment]:
    """Put neighbours of one paragraph together until each is long enough to sound whole."""
    least = min(_LEAST, limit / 2)
    merged: list[tuple[Segment, float]] = []
    for piece in pieces:
        weight = weigh(piece.text)
        if merged and merged[-1][1] < least and merged[-1][1] + 1 + weight <= limit:
            merged[-1] = _put_together(merged[-1], (piece, weight))
        else:
            merged.append((piece, weight))
    if len(merged) > 1 and merged[-1][1] < least and merged[-2][1] + 1 + merged[-1][1] <= limit:
        merged[-2:] = [_put_together(*merged[-2:])]
    return [segment for segment, _ in merged]


def _put_together(left: tuple[Segment, float], right: tuple[Segment, float]) -> tuple[Segment, float]:
    return replace(right[0], text=_join(left[0].text, right[0].text)), left[1] + 1 + right[1]


def _joined_to_last(pieces: list[Segment], paragraph: list[Segment], limit: int) -> list[Segment]:
    """`paragraph`; when it is tiny and the text before ends a sentence, the two are joined in place."""
    if not pieces or len(paragraph) != 1 or weigh(paragraph[0].text) >= _TINY:
        return paragraph
    last, tiny = pieces[-1].text, paragraph[0].text
    if not _SENTENCE_END.search(last[-8:]) or weigh(last) + 1 + weigh(tiny) > limit:
        return paragraph
    pieces[-1] = Segment(_join(last, tiny), 0.0, "paragraph")
    return []


def _start_early(pieces: list[Segment]) -> list[Segment]:
    total = weigh(pieces[0].text) if pieces else 0.0
    if total <= _FIRST_MOST:
        return pieces
    halves = cut_early(pieces[0].text, least=_FIRST_LEAST, most=min(_FIRST_MOST, total - _FIRST_LEAST))
    if halves is None:
        return pieces
    first, rest = halves
    return [Segment(first, 0.0, "clause"), Segment(rest, 0.0, pieces[0].kind), *pieces[1:]]


def _attach_unspeakable(pieces: list[Segment]) -> list[Segment]:
    """Segments without a letter or number go to the one before, or at the start of the text to the one
    after.
    """
    attached: list[Segment] = []
    silent: list[Segment] = []
    for piece in pieces:
        if not is_speakable(piece.text):
            silent.append(piece)
            continue
        if silent and attached:
            attached[-1] = _with_silent(attached[-1], silent)
        elif silent:
            piece = replace(piece, text=" ".join([*(s.text for s in silent), piece.text]))
        silent = []
        attached.append(piece)
    if silent and attached:
        attached[-1] = _with_silent(attached[-1], silent)
    return attached


def _with_silent(piece: Segment, silent: list[Segment]) -> Segment:
    return replace(silent[-1], text=" ".join([piece.text, *(s.text for s in silent)]))
