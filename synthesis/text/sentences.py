"""Where sentences end: Chinese, Japanese and English rules, and enough of other European languages.

Own rules and not a library: pysbd, the closest one, parts closing Chinese quotes from their sentence, and
nothing else keeps offsets, quotes, versions and abbreviations in all three languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from synthesis.text.characters import CLOSING, OPENING, is_han_or_kana, is_hangul
from synthesis.text.words import BEFORE_NUMBER, MAY_END, NEVER_END, STARTERS

#: One run of marks that may end a sentence. Spaced ellipses (". . .") are one mark.
_MARKS = re.compile(r"\.(?: \.){2,}|[.!?…⋯。！？｡．।॥؟۔։]+")
_ALWAYS_END = frozenset("。！？｡।॥؟۔։")
#: No sentence begins with these: what follows a mark and starts so still belongs to the sentence.
_CONTINUES = frozenset(",;:，；：、—–-")
#: `「…。」と言った`: a quotation that the sentence goes on from.
_JAPANESE_PARTICLES = frozenset("とっなのをはがにもで")
_UNAMBIGUOUS_CLOSING = frozenset("”’»›)]}」』）】》〉〕］｝")
#: After these no space is needed for a new sentence to begin; "(" may be part of an address.
_UNSPACED_OPENING = frozenset('“‘«‹「『（【《〈〔［｛〖〘〚"')
#: A token longer than this is no abbreviation; it bounds the look back.
_LONGEST_TOKEN = 24


def sentences(paragraph: str, *, language: str) -> Iterator[str]:
    """The sentences of one paragraph (no line breaks in it), in order, without the white space between
    them.
    """
    start = 0
    quotes = _Quotes(paragraph)
    for mark in _MARKS.finditer(paragraph):
        if mark.start() < start:
            continue
        end = _take_closing(paragraph, mark.end(), quotes)
        if _ends_sentence(paragraph, start, mark, end, language):
            yield paragraph[start:end]
            start = end + _spaces(paragraph, end)
    if start < len(paragraph):
        yield paragraph[start:]


class _Quotes:
    """Tells whether a straight double quote closes: it does when an odd number came before it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.seen_until = 0
        self.open = False

    def closes(self, position: int) -> bool:
        if self.text.count('"', self.seen_until, position) % 2:
            self.open = not self.open
        self.seen_until = position
        return self.open


def _spaces(text: str, position: int) -> int:
    end = position
    while end < len(text) and text[end].isspace():
        end += 1
    return end - position


def _take_closing(text: str, position: int, quotes: _Quotes) -> int:
    """Where the closing quotes and brackets that follow `position` end."""
    while position < len(text):
        character = text[position]
        if character == '"':
            if not quotes.closes(position):
                return position
        elif character == "'":
            if position + 1 < len(text) and text[position + 1].isalnum():
                return position
        elif character not in CLOSING:
            return _take_spaced_closing(text, position)
        position += 1
    return position


def _take_spaced_closing(text: str, position: int) -> int:
    """French sets a space before “»”; a closing mark after a space counts when nothing is attached to it."""
    spaces = _spaces(text, position)
    after = position + spaces
    if not spaces or after >= len(text) or text[after] not in _UNAMBIGUOUS_CLOSING:
        return position
    if after + 1 < len(text) and text[after + 1].isalnum():
        return position
    return after + 1


def _ends_sentence(text: str, start: int, mark: re.Match[str], end: int, language: str) -> bool:
    if end >= len(text):
        return True
    spaces = _spaces(text, end)
    following = end + spaces
    if following >= len(text):
        return True
    next_character = text[following]
    if next_character in _CONTINUES and not (spaces and next_character in "-—–"):
        return False
    closed = end > mark.end()
    unspaced = is_han_or_kana(next_character) or next_character in _UNSPACED_OPENING
    if closed and is_han_or_kana(next_character) and next_character in _JAPANESE_PARTICLES:
        return False
    marks = mark.group()
    if any(character in _ALWAYS_END for character in marks):
        return True
    if "!" in marks or "?" in marks:
        return bool(spaces or unspaced) and not (closed and _goes_on(text, following))
    if marks[0] in "…⋯" or ".." in marks or ". ." in marks:
        # An ellipsis is a hesitation more often than an end.
        return (bool(spaces) or closed) and not _goes_on(text, following)
    if not spaces and not unspaced:
        return False
    if marks == "．":
        return not (text[mark.start() - 1 : mark.start()].isnumeric() and next_character.isnumeric())
    return _full_stop_ends(text, start, mark.start(), following, closed, language)


def _goes_on(text: str, following: int) -> bool:
    """Whether a lower-case letter follows: “Really?” she asked."""
    while following < len(text) and (text[following] in OPENING or text[following] in "\"'"):
        following += 1
    return following < len(text) and text[following].islower()


def _full_stop_ends(text: str, start: int, stop: int, following: int, closed: bool, language: str) -> bool:
    token = _token_before(text, start, stop)
    if not token:
        return True
    if is_han_or_kana(token[-1]) or is_hangul(token[-1]):
        return True
    lower = token.lower()
    next_word = _word_at(text, following)
    at_start = stop - len(token) == start
    if lower in NEVER_END or (at_start and (token.isnumeric() or (len(token) == 1 and token.isalpha()))):
        return False
    if token.isnumeric() and (
        language.startswith("de") or not (text[stop + 1 : stop + 2].isspace() or closed)
    ):
        # A German ordinal ("3. Oktober"), or a list without spaces: "1.苹果 2.香蕉".
        return False
    if lower in BEFORE_NUMBER and next_word[:1].isnumeric():
        return False
    initials = (len(token) == 1 and token.isupper()) or _is_initials(token)
    if initials or lower in MAY_END:
        return next_word[:1].isupper() and next_word.lower() in STARTERS
    return not (closed and _goes_on(text, following))


def _is_initials(token: str) -> bool:
    """“U.S”, “p.m” and their kind: single letters with full stops between them."""
    return "." in token and all(len(part) == 1 and part.isalpha() for part in token.split("."))


def _token_before(text: str, start: int, stop: int) -> str:
    """The run of letters, digits and inner full stops that ends at `stop`, at most `_LONGEST_TOKEN`
    characters.
    """
    begin = stop
    lowest = max(start, stop - _LONGEST_TOKEN)
    while begin > lowest and (text[begin - 1].isalnum() or text[begin - 1] == "."):
        if begin < stop and is_han_or_kana(text[begin - 1]):
            break
        begin -= 1
    return text[begin:stop].lstrip(".")


def _word_at(text: str, position: int) -> str:
    """The word that begins at `position`, after opening quotes; empty when none does."""
    while position < len(text) and (text[position] in OPENING or text[position] in "\"'"):
        position += 1
    end = position
    while end < len(text) and end < position + _LONGEST_TOKEN and text[end].isalnum():
        end += 1
    word = text[position:end]
    # "A. Smith": an initial, not the article.
    return "" if len(word) == 1 and word.isalpha() and text[end : end + 1] == "." else word
