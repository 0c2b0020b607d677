"""The engine protocol: what the resident worker asks of whatever turns text into sound.

An engine takes segments of one or several requests together and yields events. Every segment carries its own
seed and its own cancel; one that fails ends in `Failed` and leaves its batch mates alone. Raising out of
`synthesise` means that the engine itself is broken: the worker's child is retired and a fresh one loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from synthesis.engines import Capabilities

#: (samples,) float32 in [-1, 1], mono, at the engine's sample rate.
Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VoiceSpec:
    """One version of a voice, as an engine needs it.

    `key` identifies the version (a cache key, never reused for other audio). A preset has `preset` (the
    engine's own name for it); a cloned voice has `prompt_audio` (reads the processed clip: mono WAV bytes),
    `transcript`, and, on engines that cannot clone, `preset` set to the nearest one.
    """

    key: str
    language: str
    preset: str = ""
    transcript: str = ""
    prompt_audio: Callable[[], bytes] | None = None
    features: Callable[[], bytes | None] | None = None
    store_features: Callable[[bytes], None] | None = None


@dataclass(frozen=True, slots=True)
class SegmentJob:
    """One segment to speak. `key` is unique within a call; `language` is one of the engine's; `speed` is a
    factor.
    """

    key: str
    text: str
    voice: VoiceSpec
    language: str
    speed: float = 1.0
    instruction: str = ""
    seed: int = 0
    cancelled: Callable[[], bool] = field(default=lambda: False)
    source_audio: Callable[[], bytes] | None = None
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Audio:
    """A piece of a segment's sound, in order."""

    key: str
    samples: Samples


@dataclass(frozen=True, slots=True)
class Finished:
    """The segment is complete."""

    key: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The segment could not be spoken. `code` is stable; `message` may be shown to the user (English, in the
    catalogue of translations); neither ever holds user text.
    """

    key: str
    code: str
    message: str
    retryable: bool = False


Event = Audio | Finished | Failed


class Engine(Protocol):
    """Loaded once per process. Used by one thread, unless `capabilities.batch` is more than 1: then by so many."""

    capabilities: Capabilities

    def load(self) -> None:
        """Bring the weights into memory; raises EngineUnavailable with what is missing and how to get it."""

    def synthesise(self, jobs: Sequence[SegmentJob]) -> Iterator[Event]:
        """Speak `jobs`; a cancelled job ends without `Finished`. Ends when every job has ended."""

    def free_memory(self) -> None:
        """Give back what can be given back between requests (caches, CUDA blocks)."""


class EngineUnavailable(Exception):
    """The engine cannot be loaded on this machine; the message says what is missing and what to do."""
