"""Hibari: English, one voice, a hundred times faster than real time on one core. The engine for tests and
load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_worker.engines import base, pieces, runtime
from gpu_worker.engines.speaking import gains, phonemes_of, refusal
from synthesis.engines import ENGINES

if TYPE_CHECKING:
    from gpu_worker.engines.text.english import English

#: Phonemes in one call. The model was made for sentences; above 400 (24 s) its own package splits too.
_LIMIT = 400


class Hibari:
    """The engine. Weights and lexicon come with the package; every voice is spoken by its one preset."""

    capabilities = ENGINES["hibari"]

    def __init__(self) -> None:
        self._gains = gains(self.capabilities.name)
        self._model: Any = None
        self._english: English | None = None

    def load(self) -> None:
        """See `Engine.load`; 0.5 s."""
        if self._model is not None:
            return
        try:
            import hibari
        except ImportError as error:
            raise base.EngineUnavailable(
                "hibari-tts is not installed; install the project with its extra 'cpu'"
            ) from error
        from gpu_worker.engines.text.english import English

        self._english = English()
        model = hibari.Hibari(threads=1, g2p=self._english)
        # The package's own session grows with every new length of text; one thread is what it is fastest
        # with.
        model.sess = runtime.session(Path(model.model_path), intra_threads=1)
        self._model = model
        runtime.settle()

    def synthesise(self, jobs: Sequence[base.SegmentJob]) -> Iterator[base.Event]:
        """See `Engine.synthesise`. One job after the other; the noise in the voice follows the job's seed."""
        for job in jobs:
            yield from self._speak(job)

    def _speak(self, job: base.SegmentJob) -> Iterator[base.Event]:
        assert self._english is not None, "load() first"  # noqa: S101 - a mistake of ours, not of a request
        if job.cancelled():
            return
        if failed := refusal(job, self.capabilities, self._gains):
            yield failed
            return
        phonemes = phonemes_of(job, lambda text, _: self._english(text), self._model.vocab)  # type: ignore[misc]
        if isinstance(phonemes, base.Failed):
            yield phonemes
            return
        joiner = pieces.Joiner(
            self.capabilities.sample_rate, speed=job.speed, gain=self._gains[job.voice.preset]
        )
        noise = np.random.default_rng(job.seed)
        parts = pieces.split(phonemes, _LIMIT)
        for number, part in enumerate(parts):
            if job.cancelled():
                return
            raw = self._model.from_ids(self._model.ids(part), job.speed, noise)
            last = number == len(parts) - 1
            yield base.Audio(
                job.key, joiner.add(raw, first=number == 0, last=last, ends=pieces.boundary(part))
            )
        yield base.Finished(job.key)

    def free_memory(self) -> None:
        """See `Engine.free_memory`."""
        runtime.release_memory()
