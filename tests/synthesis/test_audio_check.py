"""Segments that came out wrong are told from those that did not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from synthesis.audio.check import check, expected_seconds
from synthesis.audio.decode import decode

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
TEXTS = {
    "austen-0870.wav": "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his "
    "power to do for them.",
    "austen-0880.wav": "He was not an ill-disposed young man,",
    "austen-0890.wav": "unless to be rather cold hearted and rather selfish is to be ill-disposed.",
}
RATE = 16_000
TEXT = TEXTS["austen-0870.wav"]


@pytest.fixture(scope="module")
def speech() -> npt.NDArray[np.float32]:
    return decode((SPEECH / "austen-0870.wav").read_bytes()).samples


def code(
    samples: npt.NDArray[np.float32], text: str = TEXT, language: str = "en", speed: float = 1.0
) -> str | None:
    problem = check(samples, RATE, text, language, speed)
    return problem.code if problem else None


@pytest.mark.parametrize("name", TEXTS)
def test_a_human_reading_is_plausible(name: str) -> None:
    samples = decode((SPEECH / name).read_bytes()).samples
    assert code(samples, TEXTS[name]) is None


def test_silence_around_the_speech_does_not_count(speech: npt.NDArray[np.float32]) -> None:
    assert code(np.pad(speech, 5 * RATE)) is None


def test_nothing_and_silence(speech: npt.NDArray[np.float32]) -> None:
    assert code(np.zeros(0, np.float32)) == "empty"
    assert code(np.zeros(7 * RATE, np.float32)) == "silent"
    assert code(speech * np.float32(1e-4)) == "silent"


def test_samples_that_are_not_numbers(speech: npt.NDArray[np.float32]) -> None:
    assert code(np.where(np.arange(len(speech)) == 500, np.nan, speech).astype(np.float32)) == "not_finite"


def test_a_model_that_stops_at_once_and_one_that_babbles_on(speech: npt.NDArray[np.float32]) -> None:
    assert code(speech[RATE : RATE + RATE // 2]) == "too_short"
    assert code(np.tile(speech, 4)) == "too_long"
    assert code(speech, "Yes.") == "too_long"


def test_speed_moves_the_bounds(speech: npt.NDArray[np.float32]) -> None:
    assert code(speech[::2], speed=2.0) is None
    assert code(np.repeat(speech, 2), speed=0.5) is None
    part = speech[2 * RATE : round(2.8 * RATE)]
    assert code(part, speed=2.0) is None
    assert code(part, speed=0.5) == "too_short"


def test_a_long_hole_inside(speech: npt.NDArray[np.float32]) -> None:
    middle = len(speech) // 2
    with_hole = np.insert(speech, middle, np.zeros(round(2.5 * RATE), np.float32))
    assert code(with_hole) == "gap"
    assert code(np.insert(speech, middle, np.zeros(round(1.5 * RATE), np.float32))) is None
    assert code(with_hole, speed=0.5) is None


def test_clipping(speech: npt.NDArray[np.float32]) -> None:
    assert code(np.clip(speech * 10, -1, 1)) == "clipped"
    assert code(np.clip(speech * 3, -1, 1)) is None


@pytest.mark.parametrize(
    ("text", "language", "seconds"),
    [
        # As Kokoro reads them at normal speed.
        ("Hello.", "en-US", 0.74),
        ("I", "en-US", 0.55),
        ("1234567890", "en-US", 5.86),
        ("https://example.com/a/b?c=d&e=f", "en-US", 5.01),
        ("NATO USA BBC CNN IMF WHO", "en-US", 2.79),
        ("ha" * 40, "en-US", 1.57),
        ("a" * 100, "en-US", 1.39),
        ("$3,500.75 + 20% = ?", "en-US", 4.47),
        ("x^2 + y^2 = z^2", "en-US", 4.93),
        ("好。", "zh", 0.72),
        ("12345678元", "zh", 3.13),
        ("今天天气很好，我们一起去公园玩吧。", "zh", 3.17),
        ("啊啊啊啊啊啊啊啊啊", "zh", 1.02),
        ("3.14%", "zh", 1.59),
        ("東京都庁に行く", "ja", 1.56),
        ("承りました。", "ja", 1.53),
    ],
)
def test_what_a_good_engine_took_is_well_within_the_bounds(text: str, language: str, seconds: float) -> None:
    shortest, longest = expected_seconds(text, language, 1.0)
    assert 1.2 * shortest < seconds < longest / 1.2
