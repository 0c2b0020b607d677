"""Kokoro: does it say what was written, all of it, cleanly?"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gpu_worker.engines import create_engine, load_engine
from gpu_worker.engines.base import Audio, Engine, EngineUnavailable, Failed, Finished
from gpu_worker.engines.runtime import models_dir
from launcher.weights import prepare
from synthesis.engines import ENGINES
from synthesis.presets import PRESETS
from tests import asr
from tests.gpu_worker.speech import events, job, sound

RATE = 24_000


@pytest.fixture(scope="module")
def kokoro() -> Engine:
    prepare("kokoro", models_dir(), python=Path(sys.executable), log=print)
    return load_engine("kokoro")


def test_it_is_what_is_declared_and_has_every_preset(kokoro):
    assert kokoro.capabilities is ENGINES["kokoro"]
    presets = [preset for preset in PRESETS if preset.engine == "kokoro"]
    assert {preset.slug for preset in presets} == set(kokoro._voices)
    assert {preset.language for preset in presets} == set(kokoro.capabilities.languages)


@pytest.mark.parametrize(
    ("preset", "language", "written", "said"),
    [
        (
            "zf_xiaoxiao",
            "zh",
            "会议定在2026年11月30日上午10:30，一共有1,234人参加，比去年增加了50%。",
            "会议定在二零二六年十一月三十日上午十点三十分，一共有一千二百三十四人参加，比去年增加了百分之五十。",
        ),
        (
            "zm_yunyang",
            "zh",
            "他用英语说：“Good morning, my friend! Nice to meet you.”大家都笑了。",
            "他用英语说：“Good morning, my friend! Nice to meet you.”大家都笑了。",
        ),
        (
            "af_heart",
            "en-US",
            "It cost $3.50, and Dr. Smith sold 1,234 of them on the 3rd of May, about 50% more than in 2026.",
            "It cost three dollars and fifty cents, and doctor Smith sold one thousand two hundred thirty four of them "
            "on the third of May, about fifty percent more than in twenty twenty six.",
        ),
        (
            "bf_emma",
            "en-GB",
            "The theatre in London opens at half past seven, and the colour of its doors is grey.",
            "The theatre in London opens at half past seven, and the colour of its doors is grey.",
        ),
        (
            "jf_alpha",
            "ja",
            "2026年11月30日の午前10時30分に、東京の会議室で話しましょう。",
            "2026年11月30日の午前10時30分に、東京の会議室で話しましょう。",
        ),
    ],
)
def test_what_is_heard_is_what_was_written(kokoro, preset, language, written, said):
    heard = asr.transcribe(sound(kokoro, job(written, preset=preset, language=language)), RATE, language)
    rate = asr.wer(said, heard) if language.startswith("en") else asr.cer(said, heard)
    assert rate <= 0.10, heard


def test_more_than_the_model_takes_is_spoken_in_pieces_without_losing_a_word(kokoro):
    # One sentence without a pause: 545 phonemes, at a pace at which every word of it can be recognised.
    text = (
        "we walked along the river to the old stone bridge and then came slowly back again to the house " * 6
    )
    happened = events(kokoro, job(text, preset="af_heart", language="en-US"))
    pieces = [event.samples for event in happened if isinstance(event, Audio)]
    assert len(pieces) == 2
    assert happened[-1] == Finished("segment")
    for before, after in pairwise(pieces):
        # Both sides of a join are silent: no click.
        assert np.abs(before[-10:]).max() < 0.01
        assert np.abs(after[:10]).max() < 0.01
    samples = np.concatenate(pieces)
    assert np.abs(samples).max() <= 1.0
    assert asr.wer(text, asr.transcribe(samples, RATE, "en-US")) <= 0.05


def test_the_same_text_gives_the_same_samples_whatever_the_seed(kokoro):
    first = sound(kokoro, job("你好。", preset="zf_xiaoyi", language="zh", seed=1))
    assert np.array_equal(sound(kokoro, job("你好。", preset="zf_xiaoyi", language="zh", seed=2)), first)
    kokoro.free_memory()
    assert not np.array_equal(sound(kokoro, job("你好。", preset="zm_yunxi", language="zh")), first)


def test_speed(kokoro):
    slow, fast = (
        len(sound(kokoro, job("你好，再见。", preset="zf_xiaoxiao", language="zh", speed=speed)))
        for speed in (0.5, 2.0)
    )
    assert slow > 2 * fast


def test_cancelled_before_it_began(kokoro):
    assert events(kokoro, job("Hello.", preset="af_heart", language="en-US", cancelled=lambda: True)) == []


def test_what_cannot_be_spoken_is_said_so_and_batch_mates_go_on(kokoro):
    happened = events(
        kokoro,
        job("……", preset="zf_xiaoxiao", language="zh", key="a"),
        job("Bonjour", preset="af_heart", language="fr", key="b"),
        job("Hello.", preset="ff_siwis", language="en-US", key="c"),
        job("Hi.", preset="af_heart", language="en-US", key="d"),
    )
    assert [event.code for event in happened if isinstance(event, Failed)] == [
        "nothing_to_speak",
        "language_not_supported",
        "voice_not_available",
    ]
    assert happened[-1] == Finished("d")


def test_without_weights_it_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CHORUS_MODELS_DIR", str(tmp_path))
    with pytest.raises(EngineUnavailable, match=r"\./chorus up"):
        create_engine("kokoro").load()
