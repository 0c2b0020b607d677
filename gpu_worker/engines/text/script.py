"""Which part of a text is in which language: English inside Chinese, Chinese inside English, and so on."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Literal

#: The languages that a run of text can be phonemized in. English is also how other alphabets are read.
Language = Literal["en", "zh", "ja"]

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3005-\u3007"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_EAST = f"{_HAN}{_KANA}"
_LETTER = rf"[^\W\d_{_EAST}]"
#: A word of letters with what belongs to it: don't, AT&T, C++, R&D, e-mail.
WORD = rf"{_LETTER}+(?:['’&-]{_LETTER}+)*(?:\+\+|#)?"

_KANA_ONLY = re.compile(f"[{_KANA}]")
_EAST_RUN = re.compile(f"[{_EAST}]+")
#: Three and more words of English with only spaces, numbers and marks of English between them are a passage
#: of English, whose numbers are English too. Fewer are names and terms, whose numbers people say in Chinese:
#: iPhone 15 Pro.
_FOREIGN = rf"{WORD}(?:[ \d.,:;!?'\"“”’()$£€%/&+-]+?{WORD}){{2,}}[.!?%]*"
#: A sentence of its own that begins with a word, ends with a mark of English and has none of the others' signs in it is
#: English however short, and so are its numbers: Chapter 2.
_SENTENCE = (
    rf"(?:^|(?<=[。！？；.!?…;]))[\s\"'“‘(]*{WORD}[^{_EAST}。！？，、；：]*[.!?]+[\"'”’)]*(?=\s|$|[{_EAST}])"
)
_PASSAGE = re.compile(f"{_SENTENCE}|{_FOREIGN}")
#: A Chinese passage in an English text takes its numbers and marks along: 2026年11月30日.
_EAST_PASSAGE = re.compile(f"[￥¥]?[\\d.,:/%-]*[{_EAST}][{_EAST}\\d.,:/%～~，。！？、；：（）《》“”]*")
_WORDS = re.compile(WORD)


def passages(text: str, base: Language) -> list[tuple[Language, str]]:
    """`text` cut into parts, each to be normalised (numbers, dates, units) by the rules of one language.

    `"".join(part for _, part in passages(text, base)) == text`. Single foreign words stay with the base
    language: `words` finds them afterwards.
    """
    found = _EAST_PASSAGE if base == "en" else _PASSAGE
    parts: list[tuple[Language, str]] = []
    position = 0
    for match in found.finditer(text):
        if match.start() > position:
            parts.append((base, text[position : match.start()]))
        parts.append(("en" if base != "en" else _east(match[0]), match[0]))
        position = match.end()
    if position < len(text):
        parts.append((base, text[position:]))
    return _merged(parts)


def words(text: str) -> list[tuple[bool, str]]:
    """`text` of an East Asian language cut into (is it a word of another alphabet?, part)."""
    parts = []
    position = 0
    for match in _WORDS.finditer(text):
        if match.start() > position:
            parts.append((False, text[position : match.start()]))
        parts.append((True, match[0]))
        position = match.end()
    if position < len(text):
        parts.append((False, text[position:]))
    return parts


def japanese_runs(text: str) -> list[tuple[bool, str]]:
    """Chinese `text` cut into (is it Japanese?, part): a run of Han and kana is, when a quarter of it is
    kana, and single kana in Chinese are.
    """
    parts = []
    position = 0
    for run in _EAST_RUN.finditer(text):
        kana = len(_KANA_ONLY.findall(run[0]))
        if kana == 0:
            continue
        whole = kana * 4 >= len(run[0])
        for match in [run] if whole else _KANA_ONLY.finditer(text, run.start(), run.end()):
            if match.start() > position:
                parts.append((False, text[position : match.start()]))
            parts.append((True, match[0]))
            position = match.end()
    if position < len(text):
        parts.append((False, text[position:]))
    return parts


def _east(text: str) -> Language:
    return "ja" if _KANA_ONLY.search(text) else "zh"


def _merged(parts: list[tuple[Language, str]]) -> list[tuple[Language, str]]:
    return [
        (language, "".join(part for _, part in group))
        for language, group in groupby(parts, key=lambda part: part[0])
    ]
