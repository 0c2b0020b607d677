"""What is refused as speech of a text, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_worker.engines.cosyvoice3.calls import is_loop
from gpu_worker.engines.cosyvoice3.checks import FAULTS, find_fault, longest_seconds
from tests.gpu_worker.cosyvoice3.contract import job

RATE = 24_000
TEXT = "收到好友从远方寄来的生日礼物，那份意外的惊喜让我心中充满了快乐。"


def sound(seconds: float, level: float = 0.2) -> np.ndarray:
    """A tone, fading in and out as syllables do."""
    clock = np.arange(round(seconds * RATE)) / RATE
    tone = level * np.sin(2 * np.pi * 220 * clock) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * clock))
    return tone.astype(np.float32)


def code(samples: np.ndarray, *, text: str = TEXT, **fields: Any) -> str:
    found = find_fault(samples, RATE, job(text=text, **fields))
    return found.code if found else ""


@pytest.mark.parametrize("seconds", [3.5, 6.0, 10.0])
def test_every_ordinary_pace_passes(seconds: float) -> None:
    assert code(sound(seconds)) == ""


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.zeros(0, np.float32), "sound_empty"),
        (np.zeros(5 * RATE, np.float32), "sound_empty"),
        (sound(0.2), "sound_too_short"),
        (sound(40), "sound_too_long"),
        (np.concatenate([sound(3), np.zeros(4 * RATE, np.float32), sound(3)]), "sound_silent"),
        (np.sign(sound(6)).astype(np.float32), "sound_clipped"),
        (np.full(5 * RATE, np.nan, np.float32), "sound_broken"),
    ],
    ids=["nothing", "silence", "0.2 s", "endless", "gap", "clipped", "not a number"],
)
def test_what_is_no_speech(samples: np.ndarray, expected: str) -> None:
    assert code(samples) == expected


def test_speed_and_instructions_move_the_bounds() -> None:
    assert code(sound(30)) == "sound_too_long"
    assert code(sound(30), speed=0.5) == ""
    assert code(sound(30), instruction="slowest") == ""
    assert code(sound(25)) == "sound_too_long"
    assert code(sound(25), instruction="尽量慢一点") == ""
    assert code(sound(2.2), instruction="fastest") == ""


def test_tags_take_time_and_are_not_read_out() -> None:
    assert longest_seconds(job(text="好[laughter]")) > longest_seconds(job(text="好")) + 2
    assert longest_seconds(job(text="<strong>好</strong>")) == longest_seconds(job(text="好"))
    assert longest_seconds(job(text="[sic]好")) > longest_seconds(job(text="好"))
    assert code(sound(1.5), text="[laughter]") == ""


def test_a_conversion_is_judged_by_its_sound_alone() -> None:
    source: dict[str, Any] = {"text": "", "source_audio": lambda: b""}
    assert code(sound(0.6), **source) == ""
    assert code(sound(29), **source) == ""
    assert code(np.concatenate([sound(3), np.zeros(4 * RATE, np.float32), sound(3)]), **source) == ""
    assert code(np.zeros(5 * RATE, np.float32), **source) == "sound_empty"
    assert code(np.sign(sound(6)).astype(np.float32), **source) == "sound_clipped"


def test_every_problem_has_words() -> None:
    from typing import get_args

    from synthesis.audio import check

    assert set(get_args(check.Code)) <= set(FAULTS)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (list(range(100)), False),
        ([7] * 49, False),
        ([1, 2, 3] * 5 + [7] * 50, True),
        (list(range(30)) + list(range(500, 512)) * 6, True),
        (list(range(500, 512)) * 5, False),
        (list(range(100, 164)) * 6, True),
        ([5, 6, 5, 7] * 12, False),
    ],
)
def test_loops_in_tokens(tokens: list[int], expected: bool) -> None:
    assert is_loop(tokens) is expected
