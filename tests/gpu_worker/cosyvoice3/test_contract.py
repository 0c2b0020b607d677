"""The contract on the fake of the official API, and the traps that only a fake can spring at will."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from gpu_worker.engines.base import Audio, Failed, Finished, VoiceSpec
from gpu_worker.engines.cosyvoice3 import CosyVoice3, run
from gpu_worker.engines.cosyvoice3.run import EngineBrokenError, nth_seed
from gpu_worker.engines.cosyvoice3.settings import Settings
from gpu_worker.processes import rss_bytes
from tests.gpu_worker.cosyvoice3 import fake
from tests.gpu_worker.cosyvoice3.contract import LONG, Contract, job, say, sound_of, voice


@pytest.fixture
def engine() -> CosyVoice3:
    made = CosyVoice3(Settings(checks=False), loader=fake.load)
    made.load()
    return made


@pytest.fixture
def strict() -> CosyVoice3:
    """An engine that checks what it says."""
    made = CosyVoice3(Settings(), loader=fake.load)
    made.load()
    return made


class TestOnTheFake(Contract):
    """Every promise, without torch."""


class TestTheFakeHasTheTraps:
    """Used as a demo uses it, the fake fails as the official code does (see `test_official.py`)."""

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_without_the_special_token_a_stream_hangs(self) -> None:
        upstream = fake.load(Settings())
        text = upstream.frontend._extract_text_token("你好")[0]
        finished = threading.Event()

        def listen() -> None:
            with contextlib.suppress(RuntimeError):
                list(upstream.model.tts(text=text, stream=True))
            finished.set()

        threading.Thread(target=listen, daemon=True).start()
        assert not finished.wait(0.5)
        for this in upstream.model.llm_end_dict:
            upstream.model.llm_end_dict[this] = True
        assert finished.wait(5)
        assert upstream.model.tts_speech_token_dict, "an error leaves its state behind"

    def test_a_kept_speaker_is_deaf_to_instructions(self) -> None:
        frontend = fake.load(Settings()).frontend
        import io

        frontend.spk2info["kept"] = frontend.frontend_zero_shot(
            "", "old", io.BytesIO(fake.clip(0)), 24_000, ""
        )
        told = frontend.frontend_instruct2("你好", "new<|endofprompt|>", None, 24_000, "kept")
        assert np.array_equal(told["prompt_text"], frontend._extract_text_token("old")[0])

    def test_an_early_end_leaves_state_behind(self) -> None:
        model = fake.load(Settings()).model
        text = np.array([[fake.END, *range(100, 140)]], np.int32)
        stream = model.tts(text=text, stream=True, flow_embedding=np.ones((1, 192), np.float32))
        next(stream)
        stream.close()
        assert len(model.tts_speech_token_dict) == 1

    def test_the_first_long_stream_changes_the_later_ones(self) -> None:
        model = fake.load(Settings()).model
        text = np.array([[fake.END, *range(100, 140)]], np.int32)
        firsts = [
            next(iter(list(model.tts(text=text, stream=True, flow_embedding=np.ones((1, 192), np.float32)))))
            for _ in range(2)
        ]
        assert firsts[1]["tts_speech"].shape[1] > 2 * firsts[0]["tts_speech"].shape[1]


# -- Checks of the sound, and other seeds


def test_a_bad_segment_is_spoken_again_with_another_seed(strict: CosyVoice3) -> None:
    model = strict.upstream.model.llm
    lengths = itertools.chain([1], itertools.repeat(30))
    model.length = lambda text: next(lengths)
    assert len(say(strict)) > 24_000
    assert model.calls == 2


@pytest.mark.parametrize(
    ("length", "code"), [(0, "sound_empty"), (2, "sound_too_short"), (5_000, "sound_too_long")]
)
def test_a_segment_that_stays_bad_fails_with_the_reason(strict: CosyVoice3, length: int, code: str) -> None:
    model = strict.upstream.model.llm
    model.length = lambda text: length
    events = list(strict.synthesise([job()]))
    assert [type(event) for event in events] == [Failed]
    assert isinstance(events[0], Failed)
    assert events[0].code == code
    assert model.calls == 3
    assert not events[0].retryable


def test_endless_speech_is_ended_long_before_the_models_own_limit(strict: CosyVoice3) -> None:
    said = []

    def count(number: int, text: str) -> None:
        said.append(number)

    strict.upstream.model.llm.before_token = count
    strict.upstream.model.llm.length = lambda text: 100_000
    list(strict.synthesise([job(text="你好。")]))
    assert max(said) < 25 * 8


def test_the_same_thing_again_and_again_is_ended(strict: CosyVoice3) -> None:
    model = strict.upstream.model.llm
    model.before_token = lambda number, text: 500 + number % 12
    model.length = lambda text: 400
    events = list(strict.synthesise([job(text=LONG)]))
    assert [event.code for event in events if isinstance(event, Failed)] == ["sound_repeats"]


def test_a_stream_that_goes_wrong_says_so_at_the_end(strict: CosyVoice3) -> None:
    model = strict.upstream.model.llm
    model.length = lambda text: 5_000
    model.before_token = lambda number, text: time.sleep(0.001)
    events = list(strict.synthesise([job(stream=True)]))
    assert isinstance(events[0], Audio)
    assert [event.code for event in events if isinstance(event, Failed)] == ["sound_too_long"]
    assert model.calls == 1, "what was heard cannot be taken back"


def test_seeds_of_later_tries_are_others_and_in_range() -> None:
    seeds = {nth_seed(seed, attempt) for seed in (0, 1, 2**31, 2**63 - 1) for attempt in range(10)}
    assert len(seeds) == 40
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert nth_seed(42, 0) == 42


# -- Memory


def test_out_of_memory_is_survived_by_halves(engine: CosyVoice3) -> None:
    def small(tokens: int) -> None:
        if tokens > 60:
            raise fake.FakeOutOfMemory

    engine.upstream.model.before_sound = small
    sound = say(engine, text=LONG)
    assert len(sound) > 0.9 * len(LONG) * fake.TOKENS_PER_CHARACTER * fake.SAMPLES_PER_TOKEN
    assert engine.upstream.runtime.releases > 0  # type: ignore[attr-defined]


def test_out_of_memory_again_fails_that_job_alone(engine: CosyVoice3) -> None:
    def none(tokens: int) -> None:
        if tokens > 30:
            raise fake.FakeOutOfMemory

    engine.upstream.model.before_sound = none
    events = list(engine.synthesise([job("bad", text=LONG), job("good", text="你好。")]))
    assert [(event.key, event.code, event.retryable) for event in events if isinstance(event, Failed)] == [
        ("bad", "out_of_memory", True)
    ]
    assert Finished("good") in events


def test_a_conversion_is_halved_as_well(engine: CosyVoice3) -> None:
    def small(tokens: int) -> None:
        if tokens > 60:
            raise fake.FakeOutOfMemory

    engine.upstream.model.before_sound = small
    assert len(say(engine, source_audio=lambda: fake.clip(4))) > 2.9 * fake.RATE


# -- The end of the process


def test_a_lost_device_ends_the_engine(engine: CosyVoice3) -> None:
    def lost(tokens: int) -> None:
        raise fake.FakeDeviceLost

    engine.upstream.model.before_sound = lost
    with pytest.raises(EngineBrokenError):
        list(engine.synthesise([job(), job("b")]))


def test_a_thread_that_cannot_be_reached_ends_the_engine(
    engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "GRACE", 0.2)
    monkeypatch.setattr("gpu_worker.engines.cosyvoice3.engine.GRACE", 0.2)
    object.__setattr__(engine.settings, "timeout", 0.3)
    release = threading.Event()
    engine.upstream.model.llm.before_token = lambda number, text: release.wait(30) and None  # type: ignore[func-returns-value]
    started = time.monotonic()
    with pytest.raises(EngineBrokenError):
        list(engine.synthesise([job()]))
    assert time.monotonic() - started < 5
    release.set()


def test_an_error_of_the_front_end_fails_the_job_alone(
    engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontend = engine.upstream.frontend
    good = frontend.frontend_zero_shot

    def stumble(*arguments: Any) -> Any:
        monkeypatch.setattr(frontend, "frontend_zero_shot", good)
        raise ValueError("zero-size array")

    monkeypatch.setattr(frontend, "frontend_zero_shot", stumble)
    events = list(engine.synthesise([job("bad", voice=voice(1)), job("good", voice=voice(2))]))
    assert [(event.key, event.code) for event in events if isinstance(event, Failed)] == [
        ("bad", "engine_error")
    ]
    assert Finished("good") in events


def test_what_a_callback_raises_reaches_the_caller(engine: CosyVoice3) -> None:
    def away() -> bytes:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        list(engine.synthesise([job(voice=VoiceSpec(key="x", language="zh", prompt_audio=away))]))


def test_callbacks_run_in_the_thread_that_iterates(engine: CosyVoice3) -> None:
    threads: set[int] = set()

    def here(*_: object) -> None:
        threads.add(threading.get_ident())

    def cancelled() -> bool:
        here()
        return False

    given = voice(1, features=here, store_features=here)
    list(engine.synthesise([job(voice=given, cancelled=cancelled)]))
    assert threads == {threading.get_ident()}


def test_no_user_text_in_the_log(engine: CosyVoice3, caplog: pytest.LogCaptureFixture) -> None:
    def quote(number: int, text: str) -> None:
        raise RuntimeError(text)

    engine.upstream.model.llm.before_token = quote
    with caplog.at_level(logging.DEBUG):
        list(engine.synthesise([job(text="秘密的话。")]))
    assert "RuntimeError" in caplog.text
    assert "秘密" not in caplog.text


# -- Declarations


def test_batch_is_what_the_machine_allows() -> None:
    assert CosyVoice3(Settings(concurrency=4), loader=fake.load).capabilities.batch == 4


def test_a_language_that_it_does_not_speak_is_refused(engine: CosyVoice3) -> None:
    (event,) = engine.synthesise([job(language="pt")])
    assert isinstance(event, Failed)
    assert event.code == "language_not_supported"


def test_regions_of_a_language_are_spoken(engine: CosyVoice3) -> None:
    assert len(say(engine, language="en-US", text="Hello"))


def test_the_clip_of_the_checkout_is_a_voice(engine: CosyVoice3) -> None:
    assert len(say(engine, voice=VoiceSpec(key="preset", language="zh", preset="cosyvoice-sample")))


def test_a_preset_of_another_engine_is_refused(engine: CosyVoice3) -> None:
    (event,) = engine.synthesise([job(voice=VoiceSpec(key="p", language="zh", preset="zf_xiaoxiao"))])
    assert isinstance(event, Failed)
    assert event.code == "voice_not_available"


def test_memory_stays_flat_over_calls(engine: CosyVoice3) -> None:
    """Early ends and successes in turn: nothing on the model grows, nor does the process."""
    after_a_hundred = 0
    for number in range(1000):
        if number == 100:
            after_a_hundred = rss_bytes(os.getpid())
        events = engine.synthesise([job(text="你好。", stream=bool(number % 2), seed=number)])
        if number % 3 == 0:
            next(events)
            events.close()  # type: ignore[attr-defined]
        else:
            sound_of(list(events))
    assert vars(engine.upstream.model)["tts_speech_token_dict"] == {}
    # As much as the allocator may hold on to; a call that kept its sound would add 100 MB.
    assert rss_bytes(os.getpid()) - after_a_hundred < 20 * 2**20
