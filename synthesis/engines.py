"""What each engine can do, as plain data.

Web processes validate requests against this without importing an engine (and with it onnxruntime or torch);
`gpu_worker.engines` implements exactly what is declared here, and a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cloning = Literal["none", "nearest_preset", "zero_shot"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine declares. Languages are BCP 47 tags; rates are in Hz; speeds are factors."""

    name: str
    label: str
    sample_rate: int
    languages: tuple[str, ...]
    cloning: Cloning
    instructions: bool
    speed: tuple[float, float]
    #: The same seed gives the same samples. A deterministic engine keeps that promise without using the seed.
    seed: bool
    #: Longest segment that the engine speaks well, in characters of text.
    segment_characters: int
    batch: int = 1


ENGINES: dict[str, Capabilities] = {
    # Kokoro-82M: 508 phoneme tokens a call; 200 characters of English are about 230 phonemes, of Mandarin 60
    # characters about 300 (each syllable has 3-5 symbols), so the limit is by what both fit in.
    "kokoro": Capabilities(
        name="kokoro",
        label="Kokoro-82M",
        sample_rate=24_000,
        languages=("zh", "en-US", "en-GB", "ja"),
        cloning="nearest_preset",
        instructions=False,
        speed=(0.5, 2.0),
        seed=True,
        segment_characters=200,
    ),
    "hibari": Capabilities(
        name="hibari",
        label="Hibari",
        sample_rate=24_000,
        languages=("en-US",),
        cloning="nearest_preset",
        instructions=False,
        speed=(0.5, 2.0),
        seed=True,
        segment_characters=200,
    ),
}


def capabilities(name: str) -> Capabilities:
    """The declaration of the engine called `name`; KeyError for an engine that does not exist."""
    return ENGINES[name]
