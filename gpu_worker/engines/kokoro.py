"""Kokoro-82M: Mandarin, English and Japanese on a CPU. The default engine of a fresh machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_worker.engines import base, pieces, runtime
from gpu_worker.engines.speaking import gains, phonemes_of, refusal
from synthesis.engines import ENGINES

if TYPE_CHECKING:
    import onnxruntime

    from gpu_worker.engines.text.mixed import Phonemizer

#: The model has 512 positions; two are the silence at the ends, and its authors keep two more free.
_LIMIT = 508
#: A segment of the declared length has at most 340 phonemes, with which the process holds 850 MB. Shrinking costs a
#: short inference (0.2 s).
_ORDINARY = 360
#: A voice is one style vector of 256 numbers for each number of phonemes, 1 to 510.
_STYLES, _STYLE_SIZE = 510, 256


class Kokoro:
    """The engine. It has no chance in it: the same text gives the same samples, whatever the seed."""

    capabilities = ENGINES["kokoro"]

    def __init__(self) -> None:
        self._gains = gains(self.capabilities.name)
        self._session: onnxruntime.InferenceSession | None = None
        #: Phonemes in the longest piece since the arena was last shrunk.
        self._longest = 0
        self._phonemizer: Phonemizer
        self._vocabulary: dict[str, int]
        self._voices: dict[str, NDArray[np.float32]]

    def load(self) -> None:
        """See `Engine.load`; 3 s, 470 MB."""
        if self._session is not None:
            return
        folder = runtime.models_dir() / "kokoro"
        session = runtime.session(folder / "model.onnx", intra_threads=runtime.threads())
        try:
            self._vocabulary = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))["vocab"]
            # Mapped, not read: 21 MB of which a worker touches a few pages for each voice in use.
            self._voices = {
                path.stem: np.memmap(path, np.float32, "r", shape=(_STYLES, _STYLE_SIZE))
                for path in (folder / "voices").glob("*.bin")
            }
        except (OSError, ValueError, KeyError) as error:
            raise base.EngineUnavailable(
                f"{folder} is damaged ({type(error).__name__}); `./chorus up` repairs the speech weights"
            ) from error
        from gpu_worker.engines.text.mixed import Phonemizer

        self._phonemizer = Phonemizer()
        self._session = session
        runtime.settle()

    def synthesise(self, jobs: Sequence[base.SegmentJob]) -> Iterator[base.Event]:
        """See `Engine.synthesise`. One job after the other."""
        for job in jobs:
            yield from self._speak(job)

    def _speak(self, job: base.SegmentJob) -> Iterator[base.Event]:
        if job.cancelled():
            return
        if failed := refusal(job, self.capabilities, self._voices):
            yield failed
            return
        phonemes = phonemes_of(job, self._phonemizer, self._vocabulary)
        if isinstance(phonemes, base.Failed):
            yield phonemes
            return
        joiner = pieces.Joiner(
            self.capabilities.sample_rate, speed=job.speed, gain=self._gains[job.voice.preset]
        )
        parts = pieces.split(phonemes, _LIMIT)
        for number, part in enumerate(parts):
            if job.cancelled():
                return
            raw = self._infer(part, self._voices[job.voice.preset], job.speed)
            last = number == len(parts) - 1
            samples = joiner.add(raw, first=number == 0, last=last, ends=pieces.boundary(part))
            yield base.Audio(job.key, samples)
        yield base.Finished(job.key)

    def _infer(self, phonemes: str, voice: NDArray[np.float32], speed: float) -> Any:
        """The raw sound of at most `_LIMIT` phonemes: (samples,) float32."""
        assert self._session is not None, "load() first"  # noqa: S101 - a mistake of ours, not of a request
        self._longest = max(self._longest, len(phonemes))
        return self._session.run(None, self._inputs(phonemes, voice, speed))[0]

    def _inputs(self, phonemes: str, voice: NDArray[np.float32], speed: float) -> dict[str, Any]:
        tokens = [self._vocabulary[symbol] for symbol in phonemes]
        return {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": np.array(voice[min(len(tokens), _STYLES) - 1][None]),
            "speed": np.array([speed], np.float32),
        }

    def free_memory(self) -> None:
        """See `Engine.free_memory`. Only an unusually long piece leaves more than ordinary ones use again."""
        if self._session is not None and self._longest > _ORDINARY:
            self._longest = 0
            runtime.shrink(self._session, self._inputs("a", next(iter(self._voices.values())), 1.0))
        runtime.release_memory()
