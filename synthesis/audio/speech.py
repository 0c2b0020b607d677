"""Where in a clip somebody speaks: WebRTC's voice activity detector, guarded by levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import soxr
import webrtcvad

Samples = npt.NDArray[np.float32]

_RATE = 16_000
FRAME_SECONDS = 0.03
_FRAME = round(_RATE * FRAME_SECONDS)
#: The detector's strictest mode, the only one that does not take a hum or a tone for a voice.
_STRICTNESS = 3
#: The detector was made for telephone levels; quiet clips are raised towards this peak, by 40 dB at most.
_PEAK, _MOST_GAIN = 0.5, 100.0
#: Speech lies within this range below its loud syllables, and above the hiss of a converter.
_RANGE_DB, _LOWEST_DB = 40.0, -70.0
#: The detector takes steady noise for speech; speech rises and falls by 15 dB and more, noise by 1 or 2.
_LEAST_MOVEMENT_DB = 3.0
#: Gaps between words, in frames, that count as speech; and the shortest burst that is a syllable.
_GAP, _BURST = 7, 3
_FLOOR = 1e-9
_DIGITAL_SILENCE_DB = -100.0


@dataclass(frozen=True)
class Activity:
    """Frames of 30 ms: `speech` (bool) and `levels` (RMS in dBFS); the last, incomplete frame is left out."""

    speech: npt.NDArray[np.bool_]
    levels: npt.NDArray[np.float64]

    @property
    def seconds(self) -> float:
        """How long somebody speaks, without pauses of more than 0.2 s."""
        return float(self.speech.sum()) * FRAME_SECONDS

    @cached_property
    def noise_db(self) -> float:
        """Level of the background in dBFS: the quietest twentieth of the frames, which speech leaves free.

        Frames of digital silence, which editors and gates leave, say nothing about it.
        """
        sounding = self.levels[self.levels > _DIGITAL_SILENCE_DB]
        return float(np.percentile(sounding, 5)) if len(sounding) else -np.inf

    @cached_property
    def signal_to_noise_db(self) -> float:
        """Mean power of the speech over that of the background, in dB; 0 without speech, at most 80."""
        if not self.speech.any():
            return 0.0
        noise = 10 ** (self.noise_db / 10)
        speech = float(np.mean(10 ** (self.levels[self.speech] / 10)))
        return float(
            np.clip(10 * np.log10(max(speech - noise, _FLOOR * noise) / max(noise, speech * 1e-8)), 0, 80)
        )


def find_speech(samples: Samples, rate: int) -> Activity:
    """Speech in (n,) float32 mono `samples` at `rate` Hz."""
    samples = np.asarray(soxr.resample(samples, rate, _RATE) if rate != _RATE else samples, np.float32)
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    # An offset is no sound, and would hide digital silence.
    frames = frames - frames.mean(axis=1, keepdims=True)
    levels = 20 * np.log10(np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1)) + _FLOOR)
    if not len(frames) or not np.any(frames):
        return Activity(np.zeros(len(frames), np.bool_), levels)
    gain = min(_MOST_GAIN, _PEAK / float(np.abs(frames).max()))
    detector = webrtcvad.Vad(_STRICTNESS)
    integers = np.rint(frames * gain * 32_767).astype("<i2")
    voiced = np.fromiter(
        (detector.is_speech(frame.tobytes(), _RATE) for frame in integers), np.bool_, len(frames)
    )
    if not voiced.any():
        return Activity(voiced, levels)
    lowest = max(float(np.percentile(levels[voiced], 95)) - _RANGE_DB, _LOWEST_DB)
    speech = _close_gaps(_drop_bursts(voiced & (levels > lowest)))
    if speech.any() and np.ptp(np.percentile(levels[speech], [5, 95])) < _LEAST_MOVEMENT_DB:
        speech = np.zeros_like(speech)
    return Activity(speech, levels)


def runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The stretches of True in `flags`, as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _drop_bursts(speech: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    kept = speech.copy()
    for first, end in runs(speech):
        if end - first < _BURST:
            kept[first:end] = False
    return kept


def _close_gaps(speech: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    closed = speech.copy()
    for first, end in runs(~speech):
        if first > 0 and end < len(speech) and end - first <= _GAP:
            closed[first:end] = True
    return closed
