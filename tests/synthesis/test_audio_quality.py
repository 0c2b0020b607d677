"""What is said about a recording: every flaw is found, and none where there is none."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soxr

from synthesis.audio.decode import Clip, decode
from synthesis.audio.encode import Format, encode_file
from synthesis.audio.loudness import SILENCE_LUFS, measure_loudness
from synthesis.audio.quality import MESSAGES, Quality, measure
from synthesis.audio.speech import find_speech

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
RATE = 16_000
Samples = npt.NDArray[np.float32]


def fixture(name: str) -> Clip:
    return decode((SPEECH / name).read_bytes())


def clip_of(samples: npt.NDArray[np.floating], rate: int = RATE) -> Clip:
    return Clip(samples.astype(np.float32), rate, "wav", "pcm_s16le", 1)


def flaws(quality: Quality) -> dict[str, str]:
    return {flaw.code: flaw.severity for flaw in quality.flaws}


@pytest.fixture(scope="module")
def reading() -> Samples:
    return fixture("austen-0870.wav").samples


def noise(like: Samples, decibels_below: float) -> npt.NDArray[np.float64]:
    return np.random.default_rng(1).normal(0, like.std() * 10 ** (-decibels_below / 20), len(like))


@pytest.mark.parametrize(
    "name",
    ["austen-0870.wav", "austen-0890.wav", "austen-0870.m4a", "austen-0870.webm", "austen-0870-stereo.mp3"],
)
def test_a_clean_reading_has_no_flaws(name: str) -> None:
    quality = measure(fixture(name))
    assert flaws(quality) == {}
    assert quality.usable
    assert 0.85 * quality.seconds < quality.speech_seconds <= quality.seconds
    assert quality.signal_to_noise_db > 20
    assert quality.clipping < 0.003
    assert 6_500 < quality.bandwidth_hz <= 8_000
    assert -30 < quality.loudness_lufs < -20


def test_silence_and_what_nobody_speaks_in_cannot_be_used(reading: Samples) -> None:
    time = np.arange(5 * RATE) / RATE
    steady = np.random.default_rng(1).normal(0, 1, 5 * RATE)
    nothing = [
        fixture("silence-5s.wav"),
        clip_of(np.zeros(RATE)),
        clip_of(steady * 0.1),
        clip_of(steady * 0.001),
        clip_of(0.3 * np.sin(2 * np.pi * 440 * time)),
        clip_of(0.3 * np.sin(2 * np.pi * 50 * time)),
        clip_of(np.full(5 * RATE, 0.2)),
    ]
    for clip in nothing:
        quality = measure(clip)
        assert flaws(quality) == {"no_speech": "error"}
        assert not quality.usable


def test_too_little_speech_cannot_be_used(reading: Samples) -> None:
    for seconds in (0.4, 0.9):
        quality = measure(clip_of(reading[RATE : RATE + round(seconds * RATE)]))
        assert flaws(quality)["too_short"] == "error"
        assert not quality.usable
    padded = np.pad(reading[RATE : RATE + RATE // 2], 3 * RATE)
    assert "too_short" in flaws(measure(clip_of(padded)))


def test_a_few_seconds_are_usable_with_a_word_of_advice() -> None:
    quality = measure(fixture("austen-0880.wav"))
    assert flaws(quality) == {"short": "warning"}
    assert quality.usable


def test_a_clipped_recording() -> None:
    quality = measure(fixture("austen-0870-clipped.wav"))
    assert flaws(quality) == {"clipped": "warning"}
    assert quality.clipping > 0.5
    assert quality.usable


@pytest.mark.parametrize("format", ["wav", "mp3", "opus", "aac"])
@pytest.mark.parametrize("gain", [4, 10])
def test_clipping_is_found_after_lossy_coding_and_turning_down(
    reading: Samples, format: Format, gain: float
) -> None:
    file = io.BytesIO()
    encode_file(file, [np.clip(reading * gain, -1, 1) * np.float32(0.5)], format=format, rate=RATE)
    assert "clipped" in flaws(measure(decode(file.getvalue())))


@pytest.mark.parametrize(("decibels", "noisy"), [(30, False), (20, False), (12, True), (5, True)])
def test_noise_behind_the_voice(reading: Samples, decibels: float, noisy: bool) -> None:
    quality = measure(clip_of(reading + noise(reading, decibels)))
    assert ("noisy" in flaws(quality)) is noisy
    if decibels < 20:
        assert quality.signal_to_noise_db == pytest.approx(decibels, abs=2)


def test_pauses_of_digital_silence_do_not_hide_noise(reading: Samples) -> None:
    gated = np.pad(reading + noise(reading, 8), 2 * RATE)
    assert "noisy" in flaws(measure(clip_of(gated)))


def test_a_quiet_recording(reading: Samples) -> None:
    quality = measure(clip_of(reading * 0.05))
    assert flaws(quality) == {"quiet": "warning"}
    assert quality.loudness_lufs == pytest.approx(-24.6 - 26, abs=0.5)


def test_telephone_sound_also_when_a_higher_rate_hides_it() -> None:
    narrow = fixture("austen-0870-8k.wav")
    assert flaws(measure(narrow)) == {"narrow_band": "warning"}
    raised = measure(clip_of(soxr.resample(narrow.samples, 8_000, 44_100), 44_100))
    assert flaws(raised) == {"narrow_band": "warning"}
    assert raised.rate == 44_100


def test_every_flaw_has_a_sentence_that_says_what_to_do() -> None:
    assert set(MESSAGES) == {
        "no_speech",
        "too_short",
        "short",
        "clipped",
        "music",
        "noisy",
        "quiet",
        "narrow_band",
    }
    assert all(str(sentence).count(".") >= 2 for sentence in MESSAGES.values())


def test_numbers_are_plain_so_that_they_can_be_stored() -> None:
    quality = measure(fixture("austen-0870.wav"))
    for name in (
        "seconds",
        "speech_seconds",
        "clipping",
        "signal_to_noise_db",
        "steadiness",
        "loudness_lufs",
        "bandwidth_hz",
    ):
        assert type(getattr(quality, name)) is float


def test_speech_is_found_where_it_is(reading: Samples) -> None:
    padded = np.concatenate([np.zeros(RATE), reading, np.zeros(2 * RATE)]).astype(np.float32)
    frames = np.flatnonzero(find_speech(padded, RATE).speech) * 0.03
    assert frames[0] == pytest.approx(1.0, abs=0.15)
    assert frames[-1] == pytest.approx(7.95, abs=0.15)
    assert find_speech(np.zeros(0, np.float32), RATE).seconds == 0.0


def test_loudness_is_that_of_the_standard() -> None:
    """BS.1770: a 997 Hz sine at full scale in one channel reads -3.01 LKFS."""
    for rate in (16_000, 24_000, 48_000):
        sine = np.sin(2 * np.pi * 997 * np.arange(5 * rate) / rate).astype(np.float32)
        for level in (-10, -20, -40):
            measured = measure_loudness(sine * np.float32(10 ** (level / 20)), rate)
            assert measured.lufs == pytest.approx(-3.01 + level, abs=0.1)
            assert measured.peak == pytest.approx(10 ** (level / 20), rel=0.02)


def test_loudness_of_silence_and_of_a_moment() -> None:
    assert measure_loudness(np.zeros(24_000, np.float32), 24_000).lufs == SILENCE_LUFS
    assert measure_loudness(np.zeros(0, np.float32), 24_000).peak == 0.0
    sine = 0.1 * np.sin(2 * np.pi * 997 * np.arange(2_400) / 24_000).astype(np.float32)
    assert measure_loudness(sine, 24_000).lufs == pytest.approx(-23.0, abs=0.3)


def test_a_peak_between_samples_counts() -> None:
    """A sine at a quarter of the rate, sampled beside its crests: the samples reach 0.707, the wave 1.0."""
    sine = np.sin(np.pi / 2 * np.arange(48_000) + np.pi / 4).astype(np.float32)
    assert np.abs(sine).max() < 0.71
    assert measure_loudness(sine, 48_000).peak == pytest.approx(1.0, abs=0.08)
