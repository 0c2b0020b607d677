"""English sentences, the same ones in every run."""

from __future__ import annotations

import random

_WORDS = (
    *("river", "garden", "window", "silver", "market", "orange", "winter", "candle", "bridge", "letter"),
    *("simple", "quiet", "morning", "harbour", "paper", "travel", "music", "kitchen", "summer", "yellow"),
    *("meadow", "teacher", "station", "coffee", "doctor", "flower", "village", "castle", "mirror", "pocket"),
)


def sentence(seed: int, words: int = 10) -> str:
    """About 7 characters a word."""
    generator = random.Random(seed)  # noqa: S311 (the same texts each time)
    return " ".join(generator.choices(_WORDS, k=words)).capitalize() + "."


def paragraph(seed: int, sentences: int) -> str:
    """Sentences of ten words."""
    return " ".join(sentence(seed * 1000 + number) for number in range(sentences))
