"""Whether what came out can be what was asked for.

The model sometimes says nothing, a fifth of a second, or the same thing until its limit; another seed nearly
always helps. These checks need no speech recognition and are wide on purpose: they catch what nobody could
call speech of that text, never somebody's slow or lively way of speaking.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np

from gpu_worker.engines.base import Samples, SegmentJob
from gpu_worker.engines.speaking import gettext_noop
from synthesis import instructions
from synthesis.text.characters import is_han_or_kana, is_hangul

#: Seconds that one character takes, fastest and slowest, over what readers of audiobooks and newsreaders do
#: (Mandarin 3-6 syllables a second, English 10-20 letters), with room for twice as fast and as slow.
_HAN = (0.08, 0.70)
_KANA = (0.05, 0.45)
_HANGUL = (0.07, 0.60)
_DIGIT = (0.08, 0.90)
_LETTER = (0.025, 0.22)
#: Seconds of a pause at a mark, and of a sound made by a tag.
_PAUSE = 1.2
_SOUND = 4.0
#: Seconds that any segment may have beside its words.
_MARGIN = 1.5
#: Levels are taken in windows of 20 ms; -50 dBFS is far below speech and above the vocoder's floor.
_WINDOW = 0.02
_SILENT = 10 ** (-50 / 20)
_LONGEST_EDGE = 2.0
_LONGEST_PAUSE = 3.0
#: The vocoder cuts at 0.99; speech touches that in a few samples, a broken segment in a good part of them.
_FULL_SCALE = 0.985
_MOST_CLIPPED = 0.01

EMPTY = gettext_noop("The model made no sound for this text.")
TOO_SHORT = gettext_noop("The model left out most of this text.")
TOO_LONG = gettext_noop("The model did not stop speaking.")
SILENT = gettext_noop("The model was silent for too long.")
CLIPPED = gettext_noop("The sound was distorted.")
LOOPED = gettext_noop("The model said the same thing again and again.")
BROKEN = gettext_noop("The model made numbers that are no sound.")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a segment. `code` is stable; `message` may be shown to the user."""

    code: str
    message: str


def plausible_seconds(job: SegmentJob) -> tuple[float, float]:
    """The shortest and longest time in seconds that speaking `job`'s text may take."""
    least = most = 0.0
    for character in instructions.without_tags(job.text):
        low, high = _seconds(character)
        least += low
        most += high
    tags = [tag for tag in instructions.tags_in(job.text) if tag in instructions.KNOWN_TAGS]
    sounds = sum(tag in instructions.SOUNDS for tag in tags)
    # Three phonemes, or the two halves of a syllable, at the pace of a slow syllable.
    spelt = sum(tag in instructions.PHONEMES or tag in instructions.PINYIN for tag in tags)
    most += _SOUND * sounds + _HAN[1] / 2 * spelt
    pace = instructions.pace_of(job.instruction)
    if job.instruction:
        # Words of one's own may ask for any pace; the catalogue knows its own.
        least *= min(pace, 0.6)
        most *= max(pace, 1.6)
    return least / job.speed, (most + _MARGIN) / job.speed


def _seconds(character: str) -> tuple[float, float]:
    if 0x3041 <= ord(character) <= 0x30FF:
        return _KANA
    if is_han_or_kana(character):
        return _HAN
    if is_hangul(character):
        return _HANGUL
    category = unicodedata.category(character)
    if category[0] == "N":
        return _DIGIT
    if category[0] == "L":
        return _LETTER
    return (0.0, _PAUSE) if category[0] in "PS" else (0.0, 0.1)


def find_fault(samples: Samples, sample_rate: int, job: SegmentJob) -> Fault | None:
    """What is wrong with `samples` (n,) as `job`'s sound, or None. A conversion has no text to judge it by."""
    if not np.isfinite(samples).all():
        return Fault("sound_broken", BROKEN)
    seconds = len(samples) / sample_rate
    if seconds < 0.05:
        return Fault("sound_empty", EMPTY)
    if job.source_audio is None:
        least, most = plausible_seconds(job)
        if seconds < least:
            return Fault("sound_too_short", TOO_SHORT)
        if seconds > most:
            return Fault("sound_too_long", TOO_LONG)
    if np.mean(np.abs(samples) >= _FULL_SCALE) > _MOST_CLIPPED:
        return Fault("sound_clipped", CLIPPED)
    return _find_silence(samples, sample_rate, job)


def _find_silence(samples: Samples, sample_rate: int, job: SegmentJob) -> Fault | None:
    window = round(_WINDOW * sample_rate)
    count = len(samples) // window
    levels = np.sqrt(
        np.square(samples[: count * window].reshape(count, window), dtype=np.float64).mean(axis=1)
    )
    loud = np.flatnonzero(levels > _SILENT)
    if len(loud) == 0:
        return Fault("sound_empty", EMPTY)
    if job.source_audio is not None:
        # The pauses are those of the recording.
        return None
    slow = max(1.0, instructions.pace_of(job.instruction)) / job.speed
    edges = max(loud[0], count - 1 - loud[-1]) * _WINDOW
    pauses = (int(np.diff(loud).max()) - 1) * _WINDOW if len(loud) > 1 else 0.0
    if edges > _LONGEST_EDGE * slow or pauses > _LONGEST_PAUSE * slow:
        return Fault("sound_silent", SILENT)
    return None


#: How a call that stopped itself is told to the user.
STOPPED: dict[str, Fault] = {
    "empty": Fault("sound_empty", EMPTY),
    "endless": Fault("sound_too_long", TOO_LONG),
    "loop": Fault("sound_repeats", LOOPED),
}
