"""Text in one language with words of others inside, to one string of phonemes."""

from __future__ import annotations

import re
import unicodedata
from functools import cached_property
from typing import TYPE_CHECKING

from gpu_worker.engines.text import addresses, script
from gpu_worker.engines.text.english import English
from gpu_worker.engines.text.mandarin import Mandarin

if TYPE_CHECKING:
    from gpu_worker.engines.text.japanese import Japanese

_BASES: dict[str, script.Language] = {"zh": "zh", "ja": "ja", "en-US": "en", "en-GB": "en"}
#: The names of the letters that are words as well.
_LETTER_NAMES = {"a": "ˈA", "i": "ˈI"}
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")


class Phonemizer:
    """Kokoro's phonemes for the languages that it speaks. Holds one phonemizer a language.

    Mandarin and American English load at once; British English and Japanese when they are first needed.
    """

    def __init__(self) -> None:
        self._american = English()
        self._mandarin = Mandarin()

    @cached_property
    def _british(self) -> English:
        return English(british=True)

    @cached_property
    def _japanese(self) -> Japanese:
        from gpu_worker.engines.text.japanese import Japanese

        return Japanese()

    def __call__(self, text: str, language: str) -> str:
        """The phonemes of `text`, whose main language is `language` (one of the engine's)."""
        base = _BASES[language]
        english = self._british if language == "en-GB" else self._american
        text = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).replace("\n", " ").replace("\t", " ")
        text = addresses.spoken(text, base)
        parts = []
        for part_language, part in script.passages(text, base):
            if part_language == "en":
                parts.append(english(part))
            elif part_language == "ja":
                parts.extend(self._in_japanese(part, english))
            else:
                parts.extend(self._in_mandarin(part, english))
        return _joined(parts)

    def _in_mandarin(self, text: str, english: English) -> list[str]:
        phonemes = []
        for foreign, part in script.words(self._mandarin.normalise(text)):
            if foreign:
                phonemes.append(_term(part, english))
                continue
            for japanese, run in script.japanese_runs(part):
                phonemes.append(self._japanese(run) if japanese else self._mandarin(run))
        return phonemes

    def _in_japanese(self, text: str, english: English) -> list[str]:
        phonemes = []
        own = ""
        for foreign, part in script.words(text):
            if not foreign or self._japanese.knows(part):
                # Kept together: readings of numbers and particles depend on their neighbours.
                own += part
                continue
            phonemes += [self._japanese(own), _term(part, english)]
            own = ""
        return [*phonemes, self._japanese(own)]


def _term(word: str, english: English) -> str:
    """An English word inside another language, where a letter alone is its name."""
    return _LETTER_NAMES.get(word.lower()) or english(word)


def _joined(parts: list[str]) -> str:
    """Phonemes of neighbouring parts with one space between words and none before a mark."""
    joined = " ".join(part.strip() for part in parts if part.strip())
    return re.sub(r"\s+(?=[,.!?:;…”)])|(?<=[“(])\s+|\s+(?=\s)", "", joined)
