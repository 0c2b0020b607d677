"""Cut a long recording where nobody speaks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from synthesis.audio.decode import Clip, Samples
from synthesis.audio.speech import FRAME_SECONDS, Activity, find_speech, runs

#: No cut comes sooner than this share of the longest piece, so that there are few.
_EARLIEST = 0.5


def cut(clip: Clip, *, longest: float) -> list[Samples]:
    """`clip` in pieces (n,) of at most `longest` seconds, which together are all of it.

    Each cut lies in the middle of the longest pause that is late enough in its piece, or where it is quietest when
    nobody pauses for so long.
    """
    activity = find_speech(clip.samples, clip.rate)
    frame = round(FRAME_SECONDS * clip.rate)
    most = int(longest / FRAME_SECONDS)
    bounds, start = [0], 0
    while len(clip.samples) - start * frame > longest * clip.rate:
        start = _pause(activity, start + int(most * _EARLIEST), start + most)
        bounds.append(start * frame)
    bounds.append(len(clip.samples))
    return [clip.samples[begin:end] for begin, end in pairwise(bounds)]


def _pause(activity: Activity, first: int, end: int) -> int:
    pauses = runs(~activity.speech[first:end])
    if pauses:
        begin, stop = max(pauses, key=lambda pause: pause[1] - pause[0])
        return first + (begin + stop) // 2
    return first + int(np.argmin(activity.levels[first:end]))
