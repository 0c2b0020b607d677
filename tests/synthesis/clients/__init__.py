"""The official clients of others' APIs, unmodified, against running servers."""

from pathlib import Path

SPEECH = Path(__file__).parents[2] / "fixtures" / "speech"
TEXT = "The quick brown fox jumps over the lazy dog. It was not amused."
