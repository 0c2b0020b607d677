"""Is what an engine made of a segment plausible? If not, another seed is worth a try.

Autoregressive models now and then stop at once, go on babbling, or fall silent. The bounds are wide on
purpose: a good segment must never be refused, because the worker that retries would only make the same
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from synthesis.audio.decode import Samples
from synthesis.audio.speech import runs
from synthesis.text.characters import weight
from synthesis.text.clean import speaks

Code = Literal["empty", "not_finite", "silent", "too_short", "too_long", "clipped", "gap"]

#: Reading at a normal pace, in `characters.weight` a second: 5 Mandarin syllables of 2.5, 7.5 kana of 2, 5
#: Korean syllables of 2.5, 15 letters of an alphabet.
_PACE = {"zh": 12.5, "ja": 15.0, "ko": 12.5}
_PACE_OF_ALPHABETS = 15.0
#: Kokoro and Hibari take 0.3 of the usual time for "hahaha…" and more for all else; a model that stops at once
#: takes less than a tenth.
_SHORTEST_SHARE = 0.15
#: Of a letter that is repeated ("aaaaah") nobody reads more.
_MOST_REPEATS = 3
#: Symbols, capitals that are spelt out and slow voices stay below this, after a fixed allowance for one-word
#: segments.
_LONGEST_SHARE, _LONGEST_EXTRA_SECONDS = 2.5, 2.0
#: What a symbol ("%", "€", "/") or a capital letter may take when it is read out: a word each.
_SPELT_OUT_WEIGHT = 8.0
#: Shorter is a click, whatever the text.
_SHORTEST_SECONDS = 0.08
#: Engines speak at -16 to -30 dBFS; nothing of it is below this for a whole segment.
_SILENCE_DB = -50.0
_FRAME_SECONDS = 0.02
#: No punctuation mark makes a pause this long.
_LONGEST_GAP_SECONDS = 2.0
#: A few peaks at full scale are harmless; one sample in a hundred is heard.
_FULL_SCALE, _CLIPPED_SHARE = 0.999, 0.01


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a segment: a stable code, and numbers for the log (never text of the user)."""

    code: Code
    detail: str


def check(samples: Samples, rate: int, text: str, language: str, speed: float) -> Problem | None:
    """Judge (n,) float32 `samples` at `rate` Hz as a reading of `text` at `speed`; None when it is plausible.

    - `empty`, `not_finite`: no samples, or NaN among them.
    - `silent`: nothing above -50 dBFS.
    - `too_short`, `too_long`: the sound between the silences at both ends lasts less than 0.15 or more than
      2.5 times (plus 2 s) what the characters take at a normal pace.
    - `gap`: more than 2 s of silence inside, divided by `speed` where that is below 1.
    - `clipped`: one sample in a hundred at full scale.

    `language` is a BCP 47 tag, and says how fast the characters are read.
    """
    if not len(samples):
        return Problem("empty", "no samples")
    if not np.isfinite(samples).all():
        return Problem("not_finite", "samples that are not numbers")
    frame = max(1, round(rate * _FRAME_SECONDS))
    padded = np.pad(samples, (0, -len(samples) % frame)).reshape(-1, frame)
    levels = np.sqrt(np.mean(np.square(padded, dtype=np.float64), axis=1))
    sounding = levels >= 10 ** (_SILENCE_DB / 20)
    if not sounding.any():
        return Problem("silent", f"nothing above {_SILENCE_DB:g} dBFS in {len(samples) / rate:.2f} s")
    first, last = int(np.argmax(sounding)), len(sounding) - int(np.argmax(sounding[::-1]))
    seconds = (last - first) * _FRAME_SECONDS
    shortest, longest = expected_seconds(text, language, speed)
    if seconds < shortest:
        return Problem("too_short", f"{seconds:.2f} s, at least {shortest:.2f} s expected")
    if seconds > longest:
        return Problem("too_long", f"{seconds:.2f} s, at most {longest:.2f} s expected")
    gap = max((end - start for start, end in runs(~sounding[first:last])), default=0) * _FRAME_SECONDS
    if gap > _LONGEST_GAP_SECONDS / min(1.0, speed):
        return Problem("gap", f"{gap:.2f} s of silence inside")
    clipped = float(np.mean(np.abs(samples) >= _FULL_SCALE))
    if clipped > _CLIPPED_SHARE:
        return Problem("clipped", f"{clipped:.1%} of the samples at full scale")
    return None


def expected_seconds(text: str, language: str, speed: float) -> tuple[float, float]:
    """The shortest and longest plausible time in seconds for reading `text` at `speed` (1.0 is normal)."""
    pace = _PACE.get(language.split("-")[0], _PACE_OF_ALPHABETS) * speed
    least = most = 0.0
    for character, same in groupby(text):
        times = len(list(same))
        if speaks(character):
            least += weight(character) * min(times, _MOST_REPEATS)
            most += max(weight(character), _SPELT_OUT_WEIGHT if character.isupper() else 0.0) * times
        elif not character.isspace():
            most += (_SPELT_OUT_WEIGHT if character.isascii() else 1.0) * times
    shortest = max(_SHORTEST_SECONDS, _SHORTEST_SHARE * least / pace)
    return shortest, _LONGEST_SHARE * most / pace + _LONGEST_EXTRA_SECONDS / speed
