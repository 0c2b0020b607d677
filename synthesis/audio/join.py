"""Join spoken segments into one recording: even pauses, no clicks, nothing beyond full scale.

Works on chunks of any size and gives the same samples however a segment was cut into chunks. It holds back
only the silence at the end of what came in, so a text of any length needs the memory of one chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

#: Below this mean level a frame is silence: engines leave their vocoder's hiss at -60 to -75 dBFS before and
#: after speech, and the softest consonants are above -45.
_SILENCE = 10 ** (-50 / 20)
_FRAME_SECONDS = 0.01
#: How much of the engine's own silence stays: enough for a soft onset, and for the room of the last sound.
_KEPT_BEFORE_SECONDS = 0.04
_KEPT_AFTER_SECONDS = 0.08
_FADE_SECONDS = 0.005
#: Peaks above the knee are bent towards the ceiling (-0.2 dBFS), which no sample reaches.
_KNEE, _CEILING = 0.85, 0.977


def join(parts: Iterable[tuple[Samples, float]], *, rate: int) -> Iterator[Samples]:
    """Each segment's samples, (n,) float32 at `rate` Hz, with the pause after it in seconds, as one
    recording.

    Yields (n,) float32 blocks. The silence between the sound of two segments is the pause, or what is kept
    of the engine's own (at most 0.12 s) where that is longer.
    """
    joiner = Joiner(rate)
    for samples, pause in parts:
        yield from _filled(joiner.write(samples), joiner.end_segment(pause))
    yield from _filled(joiner.close())


def _filled(*blocks: Samples) -> Iterator[Samples]:
    return (block for block in blocks if len(block))


class Joiner:
    """The same in steps: `write` each chunk of a segment, `end_segment` after its last one, `close` at
    the end.
    """

    def __init__(self, rate: int) -> None:
        """`rate` in Hz, of all that is written."""
        self._rate = rate
        self._frame = max(1, round(rate * _FRAME_SECONDS))
        self._fade = max(1, round(rate * _FADE_SECONDS))
        self._pause = 0
        self._start_segment()

    def _start_segment(self) -> None:
        self._unframed = np.zeros(0, np.float32)
        #: Frames that nothing is decided about yet: silence at the start, or since the last sound.
        self._held: list[Samples] = []
        self._sounding = False

    def write(self, samples: Samples) -> Samples:
        """The next samples of the segment; returns what is certain by now, which may be nothing."""
        samples = np.nan_to_num(samples.astype(np.float32, copy=False))
        pending = np.concatenate([self._unframed, samples])
        whole = len(pending) // self._frame * self._frame
        self._unframed = pending[whole:]
        frames = pending[:whole].reshape(-1, self._frame)
        loud = np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1)) >= _SILENCE
        out: list[Samples] = []
        for frame, sounds in zip(frames, loud, strict=True):
            out += self._take(frame, bool(sounds))
        return limit(_together(out))

    def _take(self, frame: Samples, sounds: bool) -> list[Samples]:
        if not sounds:
            self._held.append(frame)
            if not self._sounding:
                del self._held[: -self._frames(_KEPT_BEFORE_SECONDS)]
            return []
        # The frame with the last sound is held as well: the fade at the end may reach into it.
        released = _together(self._held)
        if not self._sounding:
            self._sounding = True
            pause = np.zeros(max(0, self._pause - len(released)), np.float32)
            self._pause = 0
            faded = self._fade_in(np.concatenate([released, frame]))
            released, frame = np.concatenate([pause, faded[: len(released)]]), faded[len(released) :]
        self._held = [frame]
        return [released]

    def _fade_in(self, start: Samples) -> Samples:
        start[: self._fade] *= _ramp(self._fade)
        return start

    def end_segment(self, pause_after: float = 0.0) -> Samples:
        """The end of the segment's sound; `pause_after` in seconds comes before the next segment that has
        any.
        """
        tail = np.concatenate([*self._held, self._unframed])
        sounding = self._sounding
        self._start_segment()
        pause = round(pause_after * self._rate)
        if not sounding:
            self._pause = max(self._pause, pause)
            return np.zeros(0, np.float32)
        kept = tail[: self._frame + round(_KEPT_AFTER_SECONDS * self._rate)].copy()
        fade = min(self._fade, len(kept))
        kept[-fade:] *= _ramp(fade)[::-1]
        self._pause = max(0, pause - (len(kept) - self._frame))
        return limit(kept)

    def close(self) -> Samples:
        """What is left when the last segment was not ended; there is no pause at the end of a recording."""
        return self.end_segment()

    def _frames(self, seconds: float) -> int:
        return max(1, round(seconds * self._rate / self._frame))


def limit(samples: Samples) -> Samples:
    """`samples` with peaks above 0.85 bent softly below 0.977; quieter ones are unchanged."""
    size = np.abs(samples)
    if not np.any(size > _KNEE):
        return samples
    room = np.float32(_CEILING - _KNEE)
    bent = np.copysign(_KNEE + room * np.tanh((size - _KNEE) / room), samples)
    limited: Samples = np.where(size > _KNEE, bent, samples).astype(np.float32)
    return limited


def _together(frames: list[Samples]) -> Samples:
    return np.concatenate(frames) if frames else np.zeros(0, np.float32)


def _ramp(length: int) -> Samples:
    """A raised cosine from 0 to 1, without either end."""
    phase = (np.arange(length, dtype=np.float32) + 0.5) / length
    ramp: Samples = (0.5 - 0.5 * np.cos(np.pi * phase)).astype(np.float32)
    return ramp
