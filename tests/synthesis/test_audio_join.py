"""Segments become one recording without clicks, long silences or clipping."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesis.audio.join import Joiner, join, limit

RATE = 24_000
Samples = npt.NDArray[np.float32]


def tone(seconds: float, *, level: float = 0.3, before: float = 0.0, after: float = 0.0) -> Samples:
    """A 220 Hz tone that starts and stops at its crest, the worst case for clicks, with silence around it."""
    wave = level * np.cos(2 * np.pi * 220 * np.arange(round(seconds * RATE)) / RATE)
    return np.concatenate([np.zeros(round(before * RATE)), wave, np.zeros(round(after * RATE))]).astype(
        np.float32
    )


def whole(parts: list[tuple[Samples, float]]) -> Samples:
    return np.concatenate(list(join(parts, rate=RATE)))


def silences(samples: Samples) -> list[float]:
    """Lengths of the runs of silence in seconds, at a resolution of 1 ms."""
    step = RATE // 1000
    frames = samples[: len(samples) // step * step].reshape(-1, step)
    quiet = np.concatenate([[False], np.abs(frames).max(axis=1) < 0.003, [False]])
    edges = np.flatnonzero(np.diff(quiet.astype(int)))
    return [float(b - a) / 1000 for a, b in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("pause", [0.25, 0.6, 1.5])
def test_the_pause_between_segments_is_what_was_asked_for(pause: float) -> None:
    joined = whole([(tone(0.5, before=0.4, after=0.7), pause), (tone(0.5, before=0.3, after=0.2), 0.25)])
    before, between, after = silences(joined)
    assert before == pytest.approx(0.04, abs=0.012)
    assert between == pytest.approx(pause, abs=0.012)
    assert after == pytest.approx(0.08, abs=0.012)


def test_without_a_pause_only_a_little_of_the_engines_silence_stays() -> None:
    joined = whole([(tone(0.5, after=2.0), 0.0), (tone(0.5, before=2.0), 0.0)])
    assert silences(joined) == [pytest.approx(0.12, abs=0.025)]


def test_joins_do_not_click() -> None:
    joined = whole([(tone(0.3), 0.25), (tone(0.3), 0.0), (tone(0.3), 0.6)])
    steepest = 0.3 * 2 * np.pi * 220 / RATE
    fade = 0.3 * np.pi / 2 / (0.005 * RATE)
    assert abs(joined[0]) < 0.01
    assert abs(joined[-1]) < 0.01
    assert np.abs(np.diff(joined)).max() < steepest + 1.1 * fade
    # What a bare concatenation would do.
    assert np.abs(np.diff(np.concatenate([tone(0.3), np.zeros(10), tone(0.3)]))).max() > 0.29


def test_sound_inside_a_segment_is_untouched() -> None:
    sound = tone(0.5)
    joined = whole([(sound, 0.25)])
    fade = round(0.005 * RATE)
    assert len(joined) == len(sound)
    np.testing.assert_array_equal(joined[fade:-fade], sound[fade:-fade])


def test_pauses_inside_a_segment_stay() -> None:
    joined = whole([(np.concatenate([tone(0.3), tone(0.3, before=0.8)]), 0.25)])
    assert silences(joined) == [pytest.approx(0.8, abs=0.01)]


def test_a_silent_segment_adds_only_its_longer_pause() -> None:
    joined = whole([(tone(0.3), 0.25), (np.zeros(RATE, np.float32), 0.6), (tone(0.3), 0.25)])
    assert silences(joined) == [pytest.approx(0.6, abs=0.01)]
    assert list(join([(np.zeros(RATE, np.float32), 0.6)], rate=RATE)) == []
    assert list(join([], rate=RATE)) == []


def test_peaks_are_bent_and_never_clip() -> None:
    joined = whole([(tone(0.5, level=1.6), 0.0)])
    assert 0.85 < np.abs(joined).max() < 0.98
    quiet = tone(0.5, level=0.8)
    assert limit(quiet) is quiet
    ramp = np.linspace(-2, 2, 1001, dtype=np.float32)
    assert np.all(np.diff(limit(ramp)) >= 0)


def test_samples_that_are_not_numbers_become_silence() -> None:
    broken = tone(0.5)
    broken[1000:1010] = np.nan
    assert np.isfinite(whole([(broken, 0.0)])).all()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=20))
def test_how_a_segment_is_cut_into_chunks_makes_no_difference(sizes: list[int]) -> None:
    segments = [tone(0.2, before=0.1, after=0.3), tone(0.5, level=1.2), tone(0.1, before=0.05)]
    joiner = Joiner(RATE)
    out: list[Samples] = []
    for segment in segments:
        cuts = np.cumsum(sizes)
        for chunk in np.split(segment, cuts[cuts < len(segment)]):
            out.append(joiner.write(chunk))
        out.append(joiner.end_segment(0.25))
    out.append(joiner.close())
    np.testing.assert_array_equal(np.concatenate(out), whole([(segment, 0.25) for segment in segments]))


def test_memory_does_not_grow_with_the_text() -> None:
    def parts() -> Iterator[tuple[Samples, float]]:
        for _ in range(200):
            yield tone(2.0, before=0.3, after=0.3), 0.25

    tracemalloc.start()
    try:
        length = sum(len(block) for block in join(parts(), rate=RATE))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert length / RATE == pytest.approx(200 * 2.25, rel=0.05)
    assert peak < 4 * 2**20
