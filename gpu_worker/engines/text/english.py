"""English text to phonemes, by hibari's port of misaki (lexicon, tagger, numbers, a net for unknown words).

It reads numbers, money, dates, times, units, titles and abbreviations; this module adds what it does not:
addresses, versions, other scripts.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from gpu_worker.engines.base import EngineUnavailable
from gpu_worker.engines.text import addresses

_VERSION = re.compile(r"\b[vV]?(\d+(?:\.\d+){2,})\b")
#: The largest number that the number reader has words for is 10^36.
_LONG_NUMBER = re.compile(r"\d{16,}")
_GROUPED_NUMBER = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3}){5,}")
#: 1,1,1 is a list, no number.
_LIST_COMMA = re.compile(r"(?<=\d),(?=\d)(?!\d{3}(?!\d))")
#: No word is this long without a space; the phonemizer's work grows with the cube of it.
_ENDLESS_WORD = re.compile(r"\S{48}(?=\S{16})")
_LEADING_ZEROS = re.compile(r"(?<![\d.,:/-])0\d+(?![\d.:/-])")
#: Signs that would be dropped, or that its markup would swallow: [text](phonemes) is a link for it.
_SIGNS = str.maketrans(
    {
        "[": "(",
        "]": ")",
        "{": "(",
        "}": ")",
        "×": " times ",
        "÷": " divided by ",
        "±": " plus or minus ",
        "≈": " about ",
        "≠": " is not ",
        "≤": " at most ",
        "≥": " at least ",
        "→": ", ",
        "•": ", ",
        "·": " ",
        "№": "number ",
        "℃": "°C",
        "℉": "°F",
        "²": " squared",
        "³": " cubed",
        "\u00ad": "",
    }
)
#: Latin ends at U+024F (phonetic signs follow); from U+2E80 on a character is a syllable or a word.
_OTHER_ALPHABETS, _SYLLABLES = 0x250, 0x2E80
#: One alone is a symbol and has a name; several are a Greek word.
_GREEK_LETTER = re.compile("(?<![\u0370-\u03ff\u1f00-\u1fff])[Α-Ωα-ω](?![\u0370-\u03ff\u1f00-\u1fff])")
_TILDE = re.compile(r"[~～](?=\s?\d)")


def normalise(text: str) -> str:
    """`text` in characters that the phonemizer knows: addresses written out, other alphabets romanised."""
    text = unicodedata.normalize("NFC", text).translate(_SIGNS)
    text = unicodedata.normalize("NFKC", text)
    text = addresses.spoken(text, "en")
    text = _TILDE.sub("about ", text)
    text = _VERSION.sub(lambda found: found[0].replace(".", " point "), text)
    text = _GROUPED_NUMBER.sub(lambda found: found[0].replace(",", ""), text)
    text = _LIST_COMMA.sub(", ", text)
    text = _LONG_NUMBER.sub(lambda found: " ".join(found[0]), text)
    text = _LEADING_ZEROS.sub(lambda found: " ".join(found[0]), text)
    text = _romanise(text)
    return _ENDLESS_WORD.sub(lambda found: found[0] + " ", text)


def _romanise(text: str) -> str:
    """Letters of other alphabets in Latin ones: better a rough reading than a hole in the sentence."""
    if all(ord(character) < _OTHER_ALPHABETS for character in text):
        return text
    from anyascii import anyascii

    text = _GREEK_LETTER.sub(lambda found: unicodedata.name(found[0]).split()[3].lower(), text)
    romanised = []
    for character in text:
        if ord(character) < _OTHER_ALPHABETS or unicodedata.category(character)[0] not in "LM":
            romanised.append(character)
        elif ord(character) < _SYLLABLES:
            romanised.append(anyascii(character))
        else:
            romanised.append(f" {anyascii(character)} ")
    return "".join(romanised)


class English:
    """Phonemes in misaki's alphabet. One accent per object; loads its lexicon when made (0.3 s, 120 MB)."""

    def __init__(self, *, british: bool = False) -> None:
        try:
            from hibari.g2p import G2P
        except ImportError as error:
            raise EngineUnavailable(
                "hibari-tts is not installed; install the project with its extra 'cpu'"
            ) from error
        self._g2p: Any = G2P(british=british)

    def __call__(self, text: str) -> str:
        """The phonemes of `text`; "" where nothing can be spoken."""
        phonemes: str = self._g2p(normalise(text))
        return phonemes.strip()
