"""Hibari, the fast engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_worker.engines import create_engine, load_engine
from gpu_worker.engines.base import (
    Audio,
    Engine,
    EngineUnavailable,
    Event,
    Failed,
    Finished,
    SegmentJob,
    VoiceSpec,
)
from gpu_worker.engines.pieces import LEAD_SECONDS, TAIL_SECONDS
from synthesis.engines import ENGINES
from tests.gpu_worker.speech import events, job, sound

RATE = 24_000


@pytest.fixture(scope="module")
def hibari() -> Engine:
    return load_engine("hibari")


def say(text: str, **options: Any) -> SegmentJob:
    return job(text, preset="heart", language="en-US", **options)


def test_it_is_what_is_declared(hibari):
    assert hibari.capabilities is ENGINES["hibari"]


def test_loading_again_does_nothing(hibari):
    before = sound(hibari, say("Hello."))
    hibari.load()
    hibari.free_memory()
    assert np.array_equal(sound(hibari, say("Hello.")), before)


def test_sound_has_a_sensible_length_and_level(hibari):
    samples = sound(hibari, say("The quick brown fox jumps over the lazy dog."))
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert 1.8 * RATE < len(samples) < 4 * RATE
    assert 0.1 < np.abs(samples).max() <= 1.0


def test_silence_at_the_ends_is_always_the_same(hibari):
    for text in ("Hi!", "She sells sea shells by the sea shore.", "No"):
        samples = np.abs(sound(hibari, say(text)))
        assert not samples[: round(LEAD_SECONDS * RATE)].any()
        assert not samples[-round(TAIL_SECONDS * RATE) :].any()
        loud = np.flatnonzero(samples > 0.01)
        assert loud[0] < 0.15 * RATE
        assert len(samples) - loud[-1] < 0.35 * RATE


def test_the_same_seed_gives_the_same_samples_alone_or_in_a_batch(hibari):
    alone = sound(hibari, say("One, two, three.", seed=7))
    assert np.array_equal(sound(hibari, say("One, two, three.", seed=7)), alone)
    assert not np.array_equal(sound(hibari, say("One, two, three.", seed=8)), alone)
    happened = events(hibari, say("Other words.", key="a"), say("One, two, three.", key="b", seed=7))
    batched = np.concatenate([e.samples for e in happened if isinstance(e, Audio) and e.key == "b"])
    assert np.array_equal(batched, alone)


@pytest.mark.parametrize(("speed", "factor"), [(0.5, 2.0), (2.0, 0.5)])
def test_speed_changes_the_length(hibari, speed, factor):
    text = "It is a truth universally acknowledged, that he must be in want of a wife."
    normal = len(sound(hibari, say(text)))
    assert len(sound(hibari, say(text, speed=speed))) == pytest.approx(normal * factor, rel=0.25)


@pytest.mark.parametrize("text", ["", "   ", "...", "?!", "😀🎉", "\u200b", "—"])
def test_nothing_to_speak_is_said_so(hibari, text):
    (event,) = events(hibari, say(text))
    assert isinstance(event, Failed)
    assert (event.code, event.retryable) == ("nothing_to_speak", False)


def test_what_it_cannot_do_is_refused_and_batch_mates_go_on(hibari):
    wrong_language = job("你好", preset="heart", language="zh", key="a")
    wrong_voice = job("Hello", preset="zf_xiaoxiao", language="en-US", key="b")
    happened = events(hibari, wrong_language, wrong_voice, say("Hello.", key="c"))
    assert [event.code for event in happened if isinstance(event, Failed)] == [
        "language_not_supported",
        "voice_not_available",
    ]
    assert happened[-1] == Finished("c")


def test_a_cloned_voice_speaks_with_its_nearest_preset(hibari):
    clone = VoiceSpec(key="voice:1", language="en-US", preset="heart", prompt_audio=lambda: b"")
    cloned = sound(hibari, SegmentJob(key="x", text="Hello.", voice=clone, language="en-US"))
    assert np.array_equal(cloned, sound(hibari, say("Hello.")))


def test_a_long_segment_comes_in_pieces_and_cancel_stops_between_them(hibari):
    text = "and so the story goes on without a pause " * 40
    happened = events(hibari, say(text))
    pieces = [event for event in happened if isinstance(event, Audio)]
    assert len(pieces) > 2
    assert happened[-1] == Finished("segment")

    heard: list[Event] = []
    for event in hibari.synthesise([say(text, cancelled=lambda: len(heard) >= 2), say("Hello.", key="next")]):
        heard.append(event)
    assert Finished("segment") not in heard
    assert heard[-1] == Finished("next")
    assert len([event for event in heard if event.key == "segment"]) == 2


def test_an_engine_that_does_not_exist():
    with pytest.raises(EngineUnavailable, match="CHORUS_ENGINE"):
        create_engine("nope")
