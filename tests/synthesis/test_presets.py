"""The catalogue of built-in voices, their samples, and which of them a recording is most like."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from gpu_worker.engines.base import Samples
from gpu_worker.engines.runtime import models_dir
from launcher.weights import prepare
from synthesis import nearest
from synthesis.engines import ENGINES
from synthesis.presets import CLONED, PRESETS, SAMPLES, Preset, find

BY_SLUG = {preset.slug: preset for preset in PRESETS if preset.engine == "kokoro"}


@pytest.fixture(scope="module", autouse=True)
def _encoder() -> None:
    prepare("kokoro", models_dir(), python=Path(sys.executable), log=print)


def heard(preset: Preset) -> tuple[Samples, int]:
    samples, rate = soundfile.read(io.BytesIO(preset.sample.read_bytes()), dtype="float32")
    return samples, rate


def test_names_are_unique_within_an_engine():
    for engine in {preset.engine for preset in PRESETS}:
        for field in ("slug", "name"):
            counted = Counter(getattr(preset, field).lower() for preset in PRESETS if preset.engine == engine)
            assert counted.most_common(1)[0][1] == 1


def test_languages_are_those_of_the_engine():
    for preset in (*PRESETS, *CLONED):
        assert preset.language in ENGINES[preset.engine].languages
        assert preset.style
        assert bool(preset.name_zh) == (preset.language == "zh")


def test_every_voice_has_a_short_sample_and_all_are_small():
    assert {path for path in SAMPLES.rglob("*") if path.is_file()} == {preset.sample for preset in PRESETS}
    assert sum(preset.sample.stat().st_size for preset in PRESETS) < 1_000_000
    for preset in PRESETS:
        samples, rate = heard(preset)
        assert rate == 24_000
        assert samples.ndim == 1
        assert 2.5 < len(samples) / rate < 8
        assert 0.1 < np.abs(samples).max() <= 1.0


def test_a_voice_is_nearest_to_itself():
    # Every third of them, of each language and gender: one takes 0.2 s.
    some = list(BY_SLUG.items())[::3]
    found = {slug: nearest.nearest_preset(*heard(preset), preset.language, "kokoro") for slug, preset in some}
    same = sum(slug == other for slug, other in found.items())
    same_gender = sum(BY_SLUG[slug].gender == BY_SLUG[other].gender for slug, other in found.items())
    assert same >= 0.9 * len(found)
    assert same_gender == len(found)


def test_only_voices_of_the_language_are_compared():
    sample = heard(BY_SLUG["af_heart"])
    for language in ("zh", "en-US", "en-GB", "ja"):
        assert BY_SLUG[nearest.nearest_preset(*sample, language, "kokoro")].language == language
    assert BY_SLUG[nearest.nearest_preset(*sample, "en", "kokoro")].language.startswith("en-")
    assert nearest.nearest_preset(*sample, "fr", "kokoro") in BY_SLUG
    assert nearest.nearest_preset(*sample, "en-US", "hibari") == "heart"


def test_very_short_and_silent_recordings_have_a_nearest_voice_too():
    for samples in (np.zeros(24_000, np.float32), np.zeros(10, np.float32)):
        assert nearest.nearest_preset(samples, 24_000, "zh", "kokoro") in BY_SLUG


def test_an_engine_without_presets():
    with pytest.raises(KeyError):
        nearest.nearest_preset(np.zeros(24_000, np.float32), 24_000, "zh", "cosyvoice3")


def test_without_the_encoder_a_voice_of_the_language_speaks(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("CHORUS_MODELS_DIR", str(tmp_path))
    assert nearest.nearest_preset(*heard(BY_SLUG["af_sky"]), "zh", "kokoro") == "zf_xiaoxiao"
    assert "speaker encoder is missing" in caplog.text


@pytest.mark.parametrize("slug", ["af_heart", "zf_xiaoxiao", "zm_yunyang"])
def test_what_is_cloned_says_its_words(slug: str) -> None:
    """CosyVoice3 speaks badly when a transcript is not what its recording says. A name may be misheard."""
    from tests import asr

    preset = find("cosyvoice3", slug)
    heard_words = asr.transcribe(*heard(preset), preset.language)
    wrong = (asr.cer if preset.language == "zh" else asr.wer)(preset.words, heard_words)
    assert wrong <= 0.12, heard_words
