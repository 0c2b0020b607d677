"""Guess the language of a text from its script, and for the Latin alphabet from its most frequent words.

A guess for a default, not a judgement: the caller lets people choose, and checks what the engine can speak.
"""

from __future__ import annotations

import re

from synthesis.text.words import words

#: Scripts that (nearly) one language each is written in, as character ranges of the Unicode blocks.
_SCRIPTS: dict[str, str] = {
    "ja": "\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "ko": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "ru": "\u0400-\u052f",
    "el": "\u0370-\u03ff",
    "he": "\u05d0-\u05ea",
    "ar": "\u0620-\u064a\u0671-\u06d3",
    "hi": "\u0904-\u0939\u0958-\u0961",
    "th": "\u0e01-\u0e2e\u0e40-\u0e46",
}
_COUNTED = {language: re.compile(f"[{ranges}]") for language, ranges in _SCRIPTS.items()}
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
#: Scripts with an alphabet: a word of theirs weighs as one Latin word, where a Han character or a syllable is
#: one.
_ALPHABETS = frozenset({"ru", "el", "he", "ar", "hi", "th"})
_LETTERS_A_WORD = 5

#: Frequent words that English does not share, and that tell these languages from each other.
_FREQUENT: dict[str, frozenset[str]] = {
    "de": words("der das und ist nicht ein eine ich sie wir mit auf für den dem von zu wie sind auch"),
    "fr": words("le la les et est une des du dans pas je vous nous que qui pour avec sur il elle"),
    "es": words("el la los las y es una que en por con para se del al como pero está muy"),
    "it": words("il la gli e è una che di non per con sono del della nel questo anche più ma lo"),
    "pt": words("o os e é uma que não em por com para se da na mais você"),
}
_ENGLISH = words(
    "the and is are was were to of in that it you he she we they for with on this have not be at as"
)


def detect(text: str) -> str:
    """The BCP 47 tag of the language that `text` seems to be written in; `en` when nothing tells.

    - Han with at least one kana in twelve characters is Japanese (Chinese texts quote a stray の), else
      Chinese.
    - Chinese, Japanese and Korean texts sprinkle English words, and an engine for those languages reads
      them, while an English one cannot read Han: two characters of theirs in five (counted against Latin
      words) are enough.
    - Another script wins when it has the most words.
    - In the Latin alphabet: English, unless the frequent words of another language outnumber the English
      ones, are at least two, and at least one word in eight.
    """
    counts = {language: len(pattern.findall(text)) for language, pattern in _COUNTED.items()}
    found = [word.lower() for word in _LATIN_WORD.findall(text)]
    east_asian = {"ko": counts["ko"], "zh": counts["zh"] + counts["ja"]}
    total = sum(east_asian.values())
    others = {language: counts[language] / _LETTERS_A_WORD for language in _ALPHABETS}
    if total and total >= 0.4 * (total + len(found) + sum(others.values())):
        if east_asian["ko"] >= east_asian["zh"]:
            return "ko"
        return "ja" if counts["ja"] * 12 >= east_asian["zh"] else "zh"
    language, amount = max(others.items(), key=lambda item: item[1])
    return language if amount > len(found) else _detect_latin(found)


def _detect_latin(found: list[str]) -> str:
    hits = {language: sum(word in frequent for word in found) for language, frequent in _FREQUENT.items()}
    best = max(hits, key=lambda language: hits[language])
    english = sum(word in _ENGLISH for word in found)
    return best if hits[best] >= 2 and hits[best] > english and hits[best] * 8 >= len(found) else "en"
