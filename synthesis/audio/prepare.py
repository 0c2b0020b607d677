"""Turn a recording into the clip that a voice is made from: the best seconds, trimmed, at one level and
rate.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import soundfile
import soxr
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import InvalidInput
from synthesis.audio.decode import Clip, Samples
from synthesis.audio.encode import to_int16
from synthesis.audio.loudness import measure_loudness
from synthesis.audio.speech import FRAME_SECONDS, Activity, find_speech, runs

#: CosyVoice3 takes prompts of up to 30 s and is at its best with 5-15.
SHORTEST_WINDOW, BEST_WINDOW, LONGEST_WINDOW = 5.0, 10.0, 15.0
#: What a person may choose by hand.
LEAST_SECONDS, MOST_SECONDS = 1.0, 30.0
#: Silence that stays before and after the speech: the onset of the first sound, the room of the last.
_KEPT_SECONDS = 0.15
_FADE_SECONDS = 0.005
TARGET_LUFS = -20.0
#: -1 dBTP: what lossy encoders need above the peaks.
_HIGHEST_PEAK = 10 ** (-1 / 20)
#: More would raise nothing but noise.
_MOST_GAIN = 10 ** (40 / 20)
_CANDIDATES = 5


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the recording, in seconds from its start, and how well it would do (higher is better)."""

    start_s: float
    end_s: float
    score: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """`samples`, (n,) float32 mono at `rate` Hz, come from `start_s` to `end_s` of the recording.

    `candidates` are other stretches to offer, the best first; for a short recording only the one that was
    taken.
    """

    samples: Samples
    rate: int
    start_s: float
    end_s: float
    candidates: tuple[Window, ...]


def prepare(
    clip: Clip, *, rate: int, window: tuple[float, float] | None = None, param: str = "audio"
) -> Prepared:
    """The part of `clip` that a voice is made from, at `rate` Hz and -20 LUFS (less where peaks would pass
    -1 dBTP).

    Silence at the ends is trimmed to 0.15 s. Of more than 15 s the best 5-15 s are taken, from pause to
    pause: where there is most speech, least noise and no clipping. `window` (start, end) in seconds is
    taken as it is instead. Raises InvalidInput, naming `param`: `audio_no_speech`, or `audio_window` for a
    window that is not inside the recording or not 1-30 s long.
    """
    activity = find_speech(clip.samples, clip.rate)
    candidates = _candidates(clip, activity)
    if window is not None:
        _check_window(window, clip, param)
        start, end = window[0], min(window[1], clip.seconds)
    elif candidates:
        start, end = candidates[0].start_s, candidates[0].end_s
    else:
        raise InvalidInput(
            _("We could not hear anyone speak here. Record a few sentences and try again."),
            code="audio_no_speech",
            param=param,
        )
    part = clip.part(start, end).samples
    return Prepared(_finish(part, clip.rate, rate), rate, start, end, candidates)


def to_wav(samples: Samples, rate: int) -> bytes:
    """(n,) float32 mono `samples` at `rate` Hz as a WAV file of 16-bit PCM."""
    file = io.BytesIO()
    soundfile.write(file, to_int16(samples), rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def _check_window(window: tuple[float, float], clip: Clip, param: str) -> None:
    start, end = window
    # Half a frame of a page's slider may lie beyond the end.
    inside = start >= 0 and end <= clip.seconds + 0.05
    if inside and LEAST_SECONDS <= end - start <= MOST_SECONDS:
        return
    raise InvalidInput(
        format_lazy(
            _("Choose between {least} and {most} seconds that lie inside the recording of {seconds} s."),
            least=f"{LEAST_SECONDS:g}",
            most=f"{MOST_SECONDS:g}",
            seconds=f"{clip.seconds:.1f}",
        ),
        code="audio_window",
        param=param,
        seconds=round(clip.seconds, 3),
    )


def _finish(samples: Samples, rate: int, wanted: int) -> Samples:
    samples = samples - samples.mean()
    if rate != wanted:
        samples = np.asarray(soxr.resample(samples, rate, wanted, quality="VHQ"), np.float32)
    measured = measure_loudness(samples, wanted)
    if measured.peak > 0:
        gain = min(10 ** ((TARGET_LUFS - measured.lufs) / 20), _HIGHEST_PEAK / measured.peak, _MOST_GAIN)
        samples = samples * np.float32(gain)
    fade = min(round(_FADE_SECONDS * wanted), len(samples) // 2)
    ramp = np.linspace(0, 1, fade, dtype=np.float32)
    samples[:fade] *= ramp
    samples[len(samples) - fade :] *= ramp[::-1]
    return samples


def _candidates(clip: Clip, activity: Activity) -> tuple[Window, ...]:
    stretches = runs(activity.speech)
    if not stretches:
        return ()
    judge = _Judge(clip, activity)
    whole = judge.window(stretches[0][0], stretches[-1][1])
    if whole.end_s - whole.start_s <= LONGEST_WINDOW:
        return (whole,)
    pairs = (
        _from_pause_to_pause(stretches) or _anywhere(activity) or [max(stretches, key=lambda s: s[1] - s[0])]
    )
    windows = [judge.window(first, end) for first, end in pairs]
    windows.sort(key=lambda window: window.score, reverse=True)
    chosen: list[Window] = []
    for window in windows:
        if all(_overlap(window, other) < 0.5 for other in chosen):
            chosen.append(window)
        if len(chosen) == _CANDIDATES:
            break
    return tuple(chosen)


def _from_pause_to_pause(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All (first frame, end frame) of 5-15 s that begin and end where a stretch of speech does."""
    shortest, longest = _frames(SHORTEST_WINDOW), _frames(LONGEST_WINDOW - 2 * _KEPT_SECONDS)
    pairs = []
    for index, (first, _end) in enumerate(stretches):
        for _first, end in stretches[index:]:
            if end - first > longest:
                break
            if end - first >= shortest:
                pairs.append((first, end))
    return pairs


def _anywhere(activity: Activity) -> list[tuple[int, int]]:
    """Windows of about 10 s for those who never pause, or pause too long, without the silence at their ends.

    They begin and end at the quietest moment near.
    """
    length, reach = _frames(BEST_WINDOW), _frames(1.0)

    def quietest(frame: int) -> int:
        low = max(0, frame - reach)
        return low + int(np.argmin(activity.levels[low : frame + reach]))

    pairs = []
    for start in range(0, len(activity.levels) - length, _frames(2.0)):
        first = quietest(start)
        spoken = np.flatnonzero(activity.speech[first : quietest(start + length)])
        if len(spoken):
            pairs.append((first + int(spoken[0]), first + int(spoken[-1]) + 1))
    return pairs


class _Judge:
    """Scores stretches of a recording: there may be thousands, so that sums are taken once for all."""

    def __init__(self, clip: Clip, activity: Activity) -> None:
        self._seconds, self._rate = clip.seconds, clip.rate
        self._activity = activity
        size = np.abs(clip.samples)
        # As in `quality`: in good recordings, 0.002 of the samples are this loud.
        self._loud = np.flatnonzero(size > 0.9 * np.percentile(size, 99.9)) / clip.rate

    def window(self, first: int, end: int) -> Window:
        """The stretch between two frames, with the silence that stays around it, and its score."""
        inside = Activity(self._activity.speech[first:end], self._activity.levels[first:end])
        start_s = round(max(0.0, first * FRAME_SECONDS - _KEPT_SECONDS), 3)
        end_s = round(min(self._seconds, end * FRAME_SECONDS + _KEPT_SECONDS), 3)
        clean = min(inside.signal_to_noise_db, 30.0) / 30.0
        loud = np.diff(np.searchsorted(self._loud, (start_s, end_s)))[0]
        clipped = min(1.0, max(0.0, loud / ((end_s - start_s) * self._rate) - 0.003) * 50)
        length = abs(end_s - start_s - BEST_WINDOW) / BEST_WINDOW
        score = float(inside.speech.mean()) + 0.5 * clean - clipped - 0.3 * length
        return Window(start_s, end_s, round(float(score), 4))


def _overlap(a: Window, b: Window) -> float:
    """The share of the shorter of two windows that lies in the other."""
    common = min(a.end_s, b.end_s) - max(a.start_s, b.start_s)
    return max(0.0, common) / min(a.end_s - a.start_s, b.end_s - b.start_s)


def _frames(seconds: float) -> int:
    return round(seconds / FRAME_SECONDS)
