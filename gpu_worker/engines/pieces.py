"""A segment's phonemes in pieces that a model can take, and the pieces' sound joined again.

Nothing is dropped: the pieces together are the phonemes that were given, in order.
"""

from __future__ import annotations

import numpy as np

from gpu_worker.engines.base import Samples
from synthesis.audio.join import limit

_SENTENCE = frozenset(".!?…")
_CLAUSE = frozenset(";:,—")
_CLOSING = frozenset('"”)')

#: Seconds of silence before the first sound and after the last of a segment. The models leave 0.2-0.6 s,
#: another length each time; a fixed one lets whoever joins segments choose the pause.
LEAD_SECONDS = 0.05
TAIL_SECONDS = 0.15
#: Seconds of silence where a segment had to be cut into pieces, by what was cut at.
_PAUSES = {"sentence": 0.30, "clause": 0.15, "word": 0.0, "": 0.0}
#: What counts as sound, in windows of 5 ms: 1/150 of the loudest window (-43 dB), which soft consonants reach
#: and the noise that the models leave in pauses does not.
_WINDOW_SECONDS = 0.005
_SOUND = 1 / 150
#: Kept before and after the first and last window of sound, faded: breath and decay lie there.
_MARGIN_SECONDS = 0.03


def boundary(phonemes: str) -> str:
    """What `phonemes` end with: "sentence", "clause", "word" (a space) or "" (in the middle of a word)."""
    spoken = phonemes.rstrip()
    mark = spoken.rstrip("".join(_CLOSING) + " ")[-1:]
    if mark in _SENTENCE and mark:
        return "sentence"
    if mark in _CLAUSE and mark:
        return "clause"
    return "word" if spoken != phonemes else ""


def split(phonemes: str, limit: int) -> list[str]:
    """Cut `phonemes` into the fewest pieces of at most `limit` characters, of about equal length, at the best
    places.

    The end of a sentence is better than a comma, a comma better than a space; a word is cut only where there
    is nothing else. `"".join(split(p, n)) == p`.
    """
    pieces = []
    rest = phonemes
    while len(rest) > limit:
        target = len(rest) / -(-len(rest) // limit)
        cut = _best_cut(rest, int(target), limit)
        pieces.append(rest[:cut])
        rest = rest[cut:]
    return [*pieces, rest] if rest else pieces


def _best_cut(text: str, target: int, limit: int) -> int:
    """The place to cut, at most `limit`: the strongest boundary between half of `target` and `limit`, nearest
    to it.
    """
    for kind in ("sentence", "clause", "word"):
        places = [cut for cut in range(max(1, target // 2), limit + 1) if _is_cut(text, cut, kind)]
        if places:
            return min(places, key=lambda cut: abs(cut - target))
    return limit


def _is_cut(text: str, cut: int, kind: str) -> bool:
    """Whether a cut before `text[cut]` falls between a space and a word, after a boundary of this kind."""
    return text[cut - 1] == " " and text[cut] != " " and boundary(text[:cut]) == kind


class Joiner:
    """Turns the raw sound of a segment's pieces into what is sent on: even silences, no clicks.

    `add` gives what can be sent after one more piece. Peaks above full scale are limited by scaling the
    piece.
    """

    def __init__(self, sample_rate: int, *, speed: float = 1.0, gain: float = 1.0) -> None:
        """`gain` is a factor for every sample; peaks that it would lift to full scale are bent below it."""
        self._rate = sample_rate
        self._gain = gain
        self._speed = speed

    def add(self, raw: Samples, *, first: bool, last: bool, ends: str) -> Samples:
        """`raw` (samples,) trimmed, faded and padded. `ends` is the boundary that the piece ends with."""
        sound = self._trim(raw)
        before = self._silence(LEAD_SECONDS) if first else self._silence(0)
        after = self._silence(TAIL_SECONDS if last else _PAUSES[ends] / self._speed)
        return np.concatenate([before, sound, after])

    def _silence(self, seconds: float) -> Samples:
        return np.zeros(round(seconds * self._rate), np.float32)

    def _trim(self, raw: Samples) -> Samples:
        raw = np.nan_to_num(np.asarray(raw, np.float32).ravel())
        window = round(_WINDOW_SECONDS * self._rate)
        count = len(raw) // window
        if count == 0:
            return raw
        levels = np.sqrt(np.square(raw[: count * window].reshape(count, window)).mean(axis=1))
        loud = np.flatnonzero(levels > max(float(levels.max()) * _SOUND, 1e-5))
        if len(loud) == 0:
            return raw[:0]
        margin = round(_MARGIN_SECONDS * self._rate)
        start = max(0, int(loud[0]) * window - margin)
        end = min(len(raw), (int(loud[-1]) + 1) * window + margin)
        sound = limit(raw[start:end] * np.float32(self._gain)).copy()
        fade = min(margin, len(sound) // 2)
        ramp = np.linspace(0.0, 1.0, fade, endpoint=False, dtype=np.float32)
        sound[:fade] *= ramp
        sound[len(sound) - fade :] *= ramp[::-1]
        return sound
