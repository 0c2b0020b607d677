"""Cut a sentence that is too long for the engine where it hurts least."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from synthesis.text.characters import (
    CLOSING,
    OPENING,
    TRAILING,
    is_han_or_kana,
    is_inseparable,
    running_weights,
)
from synthesis.text.words import CLAUSE_STARTERS

Cut = Literal["clause", "cut"]

_STRONG = frozenset(";；:：—–…⋯")
_COMMA = frozenset(",，、､")
#: Between letters or digits these make one word or number of them.
_GLUE = frozenset(",.:'’_@-–+·．：，")
#: After a space these may begin a piece (a quote, a dash, “.5”); other trailing marks never do.
_MAY_BEGIN = frozenset("\"'-–—.…~～")
_NO_BREAK = frozenset("\u00a0\u202f\u2007\u2060")
#: Cost of each place, against 1.0 for a cut that is one limit away from where even parts would meet.
_COST = {"strong": 0.0, "comma": 0.1, "clause word": 0.5, "space": 0.7, "han": 1.0, "seam": 3.0, "word": 10.0}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence, and what kind of cut follows it (None at the end of the sentence)."""

    text: str
    cut: Cut | None


def cut_sentence(sentence: str, limit: float) -> list[Piece]:
    """`sentence` in pieces of at most `limit` (see `characters.weight`), about equally long.

    In order of preference a piece ends at a semicolon, colon or dash, a comma, a space (rather before a
    conjunction), between two Han characters or kana, beside a symbol, and only when nothing else exists
    inside a word or number. Never between a letter and its combining marks, unless those alone pass the
    limit.
    """
    weights = running_weights(sentence)
    pieces: list[Piece] = []
    start = 0
    while weights[-1] - weights[start] > limit:
        left = weights[-1] - weights[start]
        target = left / math.ceil(left / limit)
        position, kind = _best_cut(sentence, weights, start, target=target, limit=limit)
        pieces.append(Piece(sentence[start:position].strip(), kind))
        start = position
    pieces.append(Piece(sentence[start:].strip(), None))
    return [piece for piece in pieces if piece.text]


def cut_early(sentence: str, *, least: float, most: float) -> tuple[str, str] | None:
    """`sentence` in two at the last comma or stronger mark between `least` and `most`, or None where
    there is none.
    """
    weights = running_weights(sentence)
    first, last = bisect_left(weights, least), bisect_right(weights, most)
    for position in range(min(last, len(sentence)) - 1, max(first, 1) - 1, -1):
        if _place(sentence, position) in ("strong", "comma"):
            return sentence[:position].strip(), sentence[position:].strip()
    return None


def _best_cut(text: str, weights: list[float], start: int, *, target: float, limit: float) -> tuple[int, Cut]:
    base = weights[start]
    last = bisect_right(weights, base + limit) - 1
    first = max(start + 1, bisect_left(weights, base + target / 2))
    best, best_cost, best_place = max(last, start + 1), math.inf, "word"
    for position in range(first, last + 1):
        place = _place(text, position)
        if place is None:
            continue
        cost = _COST[place] + abs(weights[position] - base - target) / limit
        if cost < best_cost:
            best, best_cost, best_place = position, cost, place
    return best, "clause" if best_place in ("strong", "comma") else "cut"


def _place(text: str, position: int) -> str | None:
    """What kind of place for a cut lies before `text[position]`; None where there must not be one."""
    before, after = text[position - 1], text[position]
    if after.isspace() or after in _NO_BREAK or before in _NO_BREAK or is_inseparable(before, after):
        return None
    spaced = before.isspace()
    if before in OPENING or (after in TRAILING and not (spaced and after in _MAY_BEGIN)):
        return None
    mark = _mark_before(text, position)
    if mark and (spaced or mark > "\u2fff" or is_han_or_kana(after) or after in OPENING):
        return "strong" if mark in _STRONG else "comma"
    if spaced:
        return _space_place(text, position)
    return "word" if _is_inside_word(text, position) else _seam_place(before, after)


def _is_inside_word(text: str, position: int) -> bool:
    before, after = text[position - 1], text[position]
    if before in _GLUE or (before == "/" and after.isdigit()):
        before = text[position - 2 : position - 1]
    if before.isnumeric() and after.isnumeric():
        return True
    east_asian = is_han_or_kana(after) or (before != "" and is_han_or_kana(before))
    return before.isalnum() and after.isalnum() and not east_asian


def _seam_place(before: str, after: str) -> str:
    if is_han_or_kana(before) or is_han_or_kana(after):
        # "100公里", "三个": a number stays with its unit where it can.
        return "seam" if before.isnumeric() or after.isnumeric() else "han"
    return "seam"


def _mark_before(text: str, position: int) -> str:
    """The punctuation mark that precedes `position`, looking past spaces and closing quotes (a few at
    most).
    """
    index = position - 1
    lowest = max(0, position - 6)
    while index > lowest and text[index].isspace():
        index -= 1
    while index > lowest and text[index] in CLOSING:
        index -= 1
    mark = text[index]
    if mark not in _STRONG and mark not in _COMMA:
        return ""
    between_digits = index > 0 and text[index - 1].isnumeric() and text[position].isnumeric()
    return "" if between_digits and index == position - 1 else mark


def _space_place(text: str, position: int) -> str:
    before = text[position - 2 : position - 1]
    if before.isdigit() and text[position].isdigit():
        return "seam"
    end = position
    while end < len(text) and end < position + 9 and text[end].isalpha():
        end += 1
    return "clause word" if text[position:end].lower() in CLAUSE_STARTERS else "space"
