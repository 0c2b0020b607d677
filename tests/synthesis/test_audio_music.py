"""Music behind a voice is found, and none where there is none: real readings, generated music."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from synthesis.audio.decode import Clip, decode
from synthesis.audio.music import steadiness
from synthesis.audio.quality import measure

ROOT = Path(__file__).parents[2]
SPEECH = ROOT / "tests" / "fixtures" / "speech"
SAMPLES = ROOT / "synthesis" / "samples" / "kokoro"
#: What `quality` takes for music.
MUSICAL = 2.1
#: A to G: four chords as MIDI notes.
CHORDS = ((57, 60, 64), (53, 57, 60), (48, 52, 55), (55, 59, 62))


def _note(pitch: int, seconds: float, rate: int, decay: float) -> np.ndarray:
    """A tone of six harmonics that is struck and fades, as strings do."""
    time = np.arange(round(seconds * rate)) / rate
    frequency = 440 * 2 ** ((pitch - 69) / 12)
    wave = sum(np.sin(2 * np.pi * frequency * n * time + n) / n**1.2 for n in range(1, 7))
    return wave * np.minimum(1, time / 0.01) * np.exp(-time / decay) * np.minimum(1, (seconds - time) / 0.02)


def _tune(length: int, rate: int, notes: list[tuple[float, int, float, float]]) -> np.ndarray:
    """`notes`: when, pitch, seconds, decay."""
    sound = np.zeros(length + 5 * rate)
    for start, pitch, seconds, decay in notes:
        if start * rate < length:
            wave = _note(pitch, seconds, rate, decay)
            sound[round(start * rate) :][: len(wave)] += wave
    return sound[:length]


def chords(length: int, rate: int) -> np.ndarray:
    """A held chord every two seconds."""
    return _tune(
        length, rate, [(2.0 * bar, pitch, 2.2, 8.0) for bar in range(12) for pitch in CHORDS[bar % 4]]
    )


def arpeggio(length: int, rate: int) -> np.ndarray:
    """Plucked, four notes a second."""
    notes = [
        (step / 4, CHORDS[step // 8 % 4][step % 3] + 12 * (step // 3 % 2), 0.8, 0.35) for step in range(96)
    ]
    return _tune(length, rate, notes)


def melody(length: int, rate: int) -> np.ndarray:
    """A piano's, of half notes and quarters, with chords below."""
    random = np.random.default_rng(5)
    notes, time = [], 0.0
    while time < 24:
        lasts = float(random.choice([0.25, 0.5, 0.5, 1.0]))
        notes.append((time, int(random.choice([60, 62, 64, 65, 67, 69, 71, 72])), lasts + 0.8, 0.7))
        time += lasts
    notes += [(2.0 * bar, pitch - 12, 2.0, 0.9) for bar in range(12) for pitch in CHORDS[bar % 4]]
    return _tune(length, rate, notes)


def fan(length: int, rate: int) -> np.ndarray:
    """Tones that stay, in noise."""
    time = np.arange(length) / rate
    tones = sum(np.sin(2 * np.pi * frequency * time) for frequency in (117, 234, 351, 468, 585, 820))
    return tones + np.random.default_rng(1).normal(0, 1, length)


def behind(clip: Clip, sound: np.ndarray, decibels_below: float) -> Clip:
    """`clip` with `sound` so far below its mean power."""
    sound = sound / sound.std() * clip.samples.std() * 10 ** (-decibels_below / 20)
    return Clip((clip.samples + sound).astype(np.float32), clip.rate, "wav", "pcm_s16le", 1)


def _read(path: Path) -> Clip:
    return decode(path.read_bytes())


#: Men and women, in three languages.
VOICES = [
    SPEECH / "austen-0870.wav",
    SPEECH / "austen-0890.wav",
    SAMPLES / "af_sky.mp3",
    SAMPLES / "bm_george.mp3",
    SAMPLES / "jf_nezumi.mp3",
    SAMPLES / "zf_xiaobei.mp3",
    SAMPLES / "zm_yunjian.mp3",
]


@pytest.mark.parametrize("path", VOICES, ids=lambda path: path.stem)
@pytest.mark.parametrize("music", [chords, arpeggio, melody, fan])
def test_music_behind_a_voice(path: Path, music: Callable[[int, int], np.ndarray]) -> None:
    clip = _read(path)
    found = steadiness(behind(clip, music(len(clip.samples), clip.rate), 10).samples, clip.rate)
    assert found > MUSICAL + 0.1


@pytest.mark.parametrize(
    "path", [*sorted(SPEECH.glob("austen-*")), *sorted(SAMPLES.glob("*.mp3"))], ids=lambda path: path.name
)
def test_a_voice_alone_is_no_music(path: Path) -> None:
    clip = _read(path)
    assert steadiness(clip.samples, clip.rate) < MUSICAL - 0.2


@pytest.mark.parametrize("decibels", [20, 10, 5])
def test_noise_is_no_music(decibels: float) -> None:
    clip = _read(SPEECH / "austen-0870.wav")
    noise = np.random.default_rng(1).normal(0, 1, len(clip.samples))
    assert steadiness(behind(clip, noise, decibels).samples, clip.rate) < MUSICAL - 0.5


def test_it_is_said_in_words_and_once() -> None:
    clip = _read(SPEECH / "austen-0870.wav")
    found = measure(behind(clip, chords(len(clip.samples), clip.rate), 8)).flaws
    # The pauses are full of it, which would seem noisy; one advice is enough.
    assert [(flaw.code, flaw.severity) for flaw in found] == [("music", "warning")]
    assert "music in the background" in str(found[0].sentence)


def test_what_is_too_short_to_tell_and_silence() -> None:
    assert steadiness(np.zeros(1000, np.float32), 16_000) == 0.0
    assert steadiness(np.zeros(0, np.float32), 16_000) == 0.0
    assert steadiness(np.zeros(5 * 16_000, np.float32), 16_000) == 0.0
