"""Whether what came out can be what was asked for.

The model sometimes says nothing, a fifth of a second, or the same thing until its limit; another seed nearly
always helps. The measures are those of `synthesis.audio.check`, which every engine's segments pass; here they
learn what only CosyVoice has: tags, instructions that change the pace, and recordings that are converted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.utils.translation.trans_null import gettext_noop

from gpu_worker.engines.base import Samples, SegmentJob
from synthesis import instructions
from synthesis.audio import check

#: A sound made by a tag, as so many symbols that are read out: up to 3 s for a laugh.
_SOUND = "##"
#: How much longer than usual speech may become by an instruction in somebody's own words.
_ANY_PACE = 1.6
_TAG = re.compile(r"\[[^\[\]]+\]")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a segment. `code` is stable; `message` may be shown to the user."""

    code: str
    message: str


_EMPTY = gettext_noop("The model made no sound for this text. Reword it, or try another voice.")
_SHORT = gettext_noop("The model left out most of this text. Reword it, or try another voice.")
_ENDLESS = gettext_noop("The model did not stop speaking. Reword the text, or try another voice.")
FAULTS: dict[str, Fault] = {
    "empty": Fault("sound_empty", _EMPTY),
    "silent": Fault("sound_empty", _EMPTY),
    "not_finite": Fault(
        "sound_broken", gettext_noop("The model made numbers that are no sound. Try again, or another voice.")
    ),
    "too_short": Fault("sound_too_short", _SHORT),
    "too_long": Fault("sound_too_long", _ENDLESS),
    "endless": Fault("sound_too_long", _ENDLESS),
    "loop": Fault(
        "sound_repeats",
        gettext_noop("The model said the same thing again and again. Reword the text, or try another voice."),
    ),
    "gap": Fault(
        "sound_silent",
        gettext_noop("The model was silent for too long. Reword the text, or try another voice."),
    ),
    "clipped": Fault("sound_clipped", gettext_noop("The sound was distorted. Try another voice.")),
}


def longest_seconds(job: SegmentJob) -> float:
    """The longest time in seconds that speaking `job`'s text may take."""
    return check.expected_seconds(_read_out(job.text), job.language, _speed(job))[1]


def find_fault(samples: Samples, sample_rate: int, job: SegmentJob) -> Fault | None:
    """What is wrong with `samples` (n,) as `job`'s sound, or None."""
    if job.source_audio is None:
        problem = check.check(samples, sample_rate, _read_out(job.text), job.language, _speed(job))
    else:
        # A conversion lasts as long as its recording and has its pauses: any text that may last as long will
        # do.
        problem = check.check(
            samples, sample_rate, "#" * (1 + len(samples) // sample_rate), job.language, 1.0
        )
        if problem is not None and problem.code in ("too_short", "gap"):
            problem = None
    return FAULTS[problem.code] if problem is not None else None


def _read_out(text: str) -> str:
    """`text` with a stand-in for each tag that takes about as long: letters for what is spelt, symbols for
    sounds.
    """

    def stand_in(found: re.Match[str]) -> str:
        tag = found.group()
        if tag in instructions.SOUNDS:
            return _SOUND
        return "x" if tag in instructions.KNOWN_TAGS else tag

    return instructions.without_tags(_TAG.sub(stand_in, text))


def _speed(job: SegmentJob) -> float:
    """The speed that the sound may be expected to have: what was asked for, and what the instruction makes of
    it.
    """
    pace = instructions.pace_of(job.instruction) if job.instruction in instructions.BY_KEY else _ANY_PACE
    return job.speed / pace if job.instruction else job.speed
