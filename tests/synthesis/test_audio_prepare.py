"""The clip that a voice is made from: trimmed, level, and the best part of a long recording."""

from __future__ import annotations

import io
import time
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soxr

from accounts.errors import InvalidInput
from synthesis.audio.decode import Clip, decode
from synthesis.audio.loudness import measure_loudness
from synthesis.audio.peaks import peaks
from synthesis.audio.prepare import prepare, to_wav

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
RATE = 16_000
Samples = npt.NDArray[np.float32]


def fixture(name: str) -> Samples:
    return decode((SPEECH / name).read_bytes()).samples


def clip_of(samples: npt.NDArray[np.floating], rate: int = RATE) -> Clip:
    return Clip(samples.astype(np.float32), rate, "wav", "pcm_s16le", 1)


READINGS = [fixture("austen-0870.wav"), fixture("austen-0880.wav"), fixture("austen-0890.wav")]


@pytest.mark.parametrize(
    "name", ["austen-0870.wav", "austen-0880.wav", "austen-0870-clipped.wav", "austen-0870-8k.wav"]
)
@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_a_short_recording_is_taken_whole_at_one_level_and_rate(name: str, rate: int) -> None:
    clip = decode((SPEECH / name).read_bytes())
    prepared = prepare(clip, rate=rate)
    assert prepared.rate == rate
    assert prepared.samples.dtype == np.float32
    assert len(prepared.samples) / rate == pytest.approx(prepared.end_s - prepared.start_s, abs=0.01)
    assert len(prepared.samples) / rate > clip.seconds - 0.3
    assert measure_loudness(prepared.samples, rate).lufs == pytest.approx(-20, abs=0.3)
    assert len(prepared.candidates) == 1


@pytest.mark.parametrize("gain", [0.02, 1.0, 2.0])
def test_quiet_and_loud_recordings_come_out_alike(gain: float) -> None:
    prepared = prepare(clip_of(READINGS[0] * gain), rate=24_000)
    assert measure_loudness(prepared.samples, 24_000).lufs == pytest.approx(-20, abs=0.2)


def test_peaks_cap_the_level() -> None:
    spiky = READINGS[0] * 0.1
    spiky[RATE :: RATE // 2] = 0.9
    measured = measure_loudness(prepare(clip_of(spiky), rate=24_000).samples, 24_000)
    assert measured.peak <= 10 ** (-1 / 20) + 0.01
    assert measured.lufs < -21


def test_silence_at_the_ends_is_trimmed_to_a_little() -> None:
    hiss = np.random.default_rng(1).normal(0, 0.0005, 13 * RATE)
    hiss[2 * RATE : 2 * RATE + len(READINGS[0])] += READINGS[0]
    prepared = prepare(clip_of(hiss), rate=RATE)
    assert prepared.start_s == pytest.approx(2.0, abs=0.2)
    assert prepared.end_s == pytest.approx(9.1, abs=0.25)
    edge = round(0.05 * RATE)
    assert np.abs(prepared.samples[:edge]).max() < 0.07
    assert np.abs(prepared.samples[-edge:]).max() < 0.07


def test_the_edges_are_faded_and_an_offset_is_removed() -> None:
    prepared = prepare(clip_of(READINGS[0] + 0.05), rate=RATE, window=(1.0, 4.0))
    assert prepared.samples[0] == prepared.samples[-1] == 0
    assert abs(prepared.samples.mean()) < 1e-3


def long_recording(seconds: float, *, good: tuple[int, int], rate: int = RATE) -> Clip:
    """Readings with a second of room between them; noisy at first, clipped at last, clean between the `good` ones."""
    generator = np.random.default_rng(1)
    parts: list[npt.NDArray[np.floating]] = []
    number = 0
    while sum(map(len, parts)) < seconds * RATE:
        reading = np.pad(READINGS[number % 3], (0, RATE))
        part = reading + generator.normal(0, 0.03 if number < good[0] else 0.001, len(reading))
        parts.append(np.clip(part * 8, -0.9, 0.9) if number >= good[1] else part)
        number += 1
    samples = np.concatenate(parts)[: round(seconds * RATE)]
    return clip_of(soxr.resample(samples, RATE, rate) if rate != RATE else samples, rate)


def test_the_best_part_of_a_long_recording_is_clean_and_goes_from_pause_to_pause() -> None:
    clip = long_recording(120, good=(8, 12))
    lengths = [len(READINGS[n % 3]) / RATE + 1 for n in range(12)]
    clean_from, clean_to = sum(lengths[:8]), sum(lengths)
    prepared = prepare(clip, rate=24_000)
    assert clean_from - 0.3 < prepared.start_s < prepared.end_s < clean_to
    assert 5 <= prepared.end_s - prepared.start_s <= 15
    frame = RATE // 20
    for at in (prepared.start_s, prepared.end_s):
        there = clip.samples[max(0, round(at * RATE) - frame) : round(at * RATE) + frame]
        assert np.sqrt(np.mean(there**2)) < 0.01
    assert (prepared.candidates[0].start_s, prepared.candidates[0].end_s) == (
        prepared.start_s,
        prepared.end_s,
    )
    assert 2 <= len(prepared.candidates) <= 5
    assert [c.score for c in prepared.candidates] == sorted(
        (c.score for c in prepared.candidates), reverse=True
    )


def test_ten_minutes_at_48_khz() -> None:
    prepared = prepare(long_recording(600, good=(20, 40), rate=48_000), rate=24_000)
    assert 5 <= prepared.end_s - prepared.start_s <= 15


def test_thousands_of_short_pauses_take_no_time() -> None:
    word = np.pad(READINGS[0][RATE : 2 * RATE], (0, RATE // 3))
    clip = clip_of(np.tile(word, 450))
    began = time.process_time()
    prepare(clip, rate=RATE)
    assert time.process_time() - began < 5


def test_somebody_who_never_pauses() -> None:
    prepared = prepare(clip_of(np.tile(READINGS[0][RATE : 2 * RATE], 40)), rate=RATE)
    assert 5 <= prepared.end_s - prepared.start_s <= 15


def test_single_words_far_apart() -> None:
    word = READINGS[0][RATE : 2 * RATE]
    sparse = np.concatenate([np.pad(word, (0, 20 * RATE)) for _ in range(4)])
    prepared = prepare(clip_of(sparse), rate=RATE)
    assert 0.8 <= prepared.end_s - prepared.start_s <= 1.5


def test_a_window_that_a_person_chose_is_taken_as_it_is() -> None:
    clip = long_recording(60, good=(0, 99))
    prepared = prepare(clip, rate=24_000, window=(12.5, 20.25))
    assert (prepared.start_s, prepared.end_s) == (12.5, 20.25)
    assert len(prepared.samples) == pytest.approx(7.75 * 24_000, abs=2)
    assert prepared.candidates
    at_the_end = prepare(clip, rate=24_000, window=(50, clip.seconds + 0.02))
    assert at_the_end.end_s == clip.seconds


@pytest.mark.parametrize(
    "window", [(-1, 5), (5, 5), (6, 5), (0, 0.5), (0, 31), (55, 70), (float("nan"), 5), (0, float("inf"))]
)
def test_a_window_that_makes_no_sense_is_refused(window: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(long_recording(60, good=(0, 99)), rate=24_000, window=window, param="window")
    assert (caught.value.code, caught.value.param) == ("audio_window", "window")
    assert "60.0 s" in str(caught.value)


def test_silence_makes_no_voice() -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(decode((SPEECH / "silence-5s.wav").read_bytes()), rate=24_000)
    assert caught.value.code == "audio_no_speech"


def test_the_prepared_clip_as_a_file() -> None:
    prepared = prepare(clip_of(READINGS[1]), rate=24_000)
    data = to_wav(prepared.samples, 24_000)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
    np.testing.assert_allclose(decode(data).samples, prepared.samples, atol=1 / 32_768)


def test_the_outline_for_a_page() -> None:
    samples = np.concatenate([np.full(100, 0.25), np.full(100, -1.0), np.zeros(100)]).astype(np.float32)
    assert peaks(samples, 3) == [0.25, 1.0, 0.0]
    assert len(peaks(READINGS[0], 200)) == 200
    assert max(peaks(READINGS[0], 200)) == pytest.approx(float(np.abs(READINGS[0]).max()), abs=0.001)
    assert peaks(samples[:2], 10) == [0.25, 0.25]
    assert peaks(np.zeros(0, np.float32), 10) == []
    with pytest.raises(ValueError, match="bucket"):
        peaks(samples, 0)
