"""What our engine promises, whatever is under it: run on the fake everywhere, and on the official code where
it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpu_worker.engines.base import Audio, Event, Failed, Finished, Samples, SegmentJob, VoiceSpec
from gpu_worker.engines.cosyvoice3 import CosyVoice3
from gpu_worker.engines.cosyvoice3.calls import CALL_STATE, Call, inputs_for
from gpu_worker.engines.cosyvoice3.prompt import END, PREFIX, plan
from tests.gpu_worker.cosyvoice3.fake import clip

TEXT = "收到礼物。"
LONG = "收到好友从远方寄来的生日礼物，心中充满了快乐。"


def voice(number: int = 0, *, transcript: str = "你好吗", language: str = "zh", **others: Any) -> VoiceSpec:
    """A voice of its own for each number."""
    return VoiceSpec(
        key=f"version-{number}",
        language=language,
        transcript=transcript,
        prompt_audio=lambda: clip(number),
        **others,
    )


def job(key: str = "a", **fields: Any) -> SegmentJob:
    """A short Chinese segment unless `fields` say otherwise."""
    return SegmentJob(**{"key": key, "text": TEXT, "voice": voice(), "language": "zh", "seed": 7, **fields})


def sound_of(events: list[Event], key: str = "a") -> Samples:
    """What was said for `key`, which must have been finished."""
    assert Finished(key) in events, events
    return np.concatenate(
        [event.samples for event in events if isinstance(event, Audio) and event.key == key]
    )


def say(engine: CosyVoice3, **fields: Any) -> Samples:
    """The sound of one job."""
    return sound_of(list(engine.synthesise([job(**fields)])))


def leftovers(engine: CosyVoice3) -> list[Any]:
    """What calls have left behind on upstream's model."""
    return [
        getattr(engine.upstream.model, name) for name in CALL_STATE if getattr(engine.upstream.model, name)
    ]


def threads_gone(name: str = "llm_job", within: float = 5.0) -> bool:
    """Whether no thread of a call is left after `within` seconds."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not [thread for thread in threading.enumerate() if name in thread.name or "job" in thread.name]:
            return True
        time.sleep(0.02)
    return False


class Contract:
    """Subclasses give the fixture `engine`: a loaded CosyVoice3 whose checks of the sound are off."""

    @pytest.fixture(autouse=True)
    def _nothing_stays(self, engine: CosyVoice3) -> Iterator[None]:
        """After each test: no state of a call on the model, no longer hops, no thread."""
        yield
        assert leftovers(engine) == []
        assert engine.upstream.model.token_hop_len == 25
        assert threads_gone()

    # -- Modes

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"voice": voice(transcript="")},
            {"instruction": "dialect-guangdong"},
            {"instruction": "像讲故事一样"},
            {"source_audio": lambda: clip(5)},
            {"text": "[breath]<strong>高管</strong>报道[j][ǐ]予好评。"},
            {
                "text": "Say [L][AY1][V] now.",
                "language": "en",
                "voice": voice(transcript="Hi", language="en"),
            },
        ],
        ids=["zero_shot", "cross_lingual", "instruct", "free_instruct", "conversion", "tags", "phonemes"],
    )
    @pytest.mark.parametrize("stream", [False, True])
    def test_speaks_in_every_mode(self, engine: CosyVoice3, fields: dict[str, Any], stream: bool) -> None:
        sound = say(engine, **fields, stream=stream)
        assert sound.dtype == np.float32
        assert sound.ndim == 1
        assert np.isfinite(sound).all()
        assert np.abs(sound).max() <= 1.0
        assert len(sound) > 0.1 * engine.capabilities.sample_rate

    def test_conversion_is_as_long_as_its_source(self, engine: CosyVoice3) -> None:
        call = Call(
            engine.upstream,
            {**_conversion(engine, seconds=3.0)},
            seed=0,
            speed=1.0,
            stream=False,
        )
        sound = np.concatenate(list(call.pieces()))
        assert len(sound) / engine.capabilities.sample_rate == pytest.approx(3.0, abs=0.1)

    def test_speed_shortens_and_lengthens(self, engine: CosyVoice3) -> None:
        usual, fast, slow = (say(engine, speed=speed) for speed in (1.0, 2.0, 0.5))
        assert len(fast) < 0.75 * len(usual)
        assert len(slow) > 1.5 * len(usual)

    # -- Traps

    def test_the_prefix_and_the_special_token_are_always_ours(self, engine: CosyVoice3) -> None:
        for given in (
            job(),
            job(voice=voice(transcript="")),
            job(instruction="angry"),
            job(instruction="轻轻地"),
        ):
            planned = plan(given)
            assert planned.before.startswith(PREFIX)
            assert planned.before.count(END) == 1
            assert END not in planned.text

    @pytest.mark.parametrize("words", ["你好<|endofprompt|>再见", "<|", "a |> b"])
    @pytest.mark.parametrize("field", ["text", "instruction", "transcript"])
    def test_special_tokens_of_users_are_refused(self, engine: CosyVoice3, field: str, words: str) -> None:
        given = job(voice=voice(transcript=words)) if field == "transcript" else job(**{field: words})
        (event,) = engine.synthesise([given])
        assert isinstance(event, Failed)
        assert event.code == "special_token"

    @pytest.mark.parametrize("text", ["", "  ", "。。，", "😀", "\n"])
    def test_nothing_to_say_is_an_answer_and_no_crash(self, engine: CosyVoice3, text: str) -> None:
        (event,) = engine.synthesise([job(text=text)])
        assert isinstance(event, Failed)
        assert (event.code, event.retryable) == ("nothing_to_speak", False)

    def test_an_instruction_is_heard_by_a_kept_voice(self, engine: CosyVoice3) -> None:
        plain, told, otherwise = (say(engine, instruction=word) for word in ("", "angry", "dialect-sichuan"))
        assert not np.array_equal(plain, told)
        assert not np.array_equal(told, otherwise)

    def test_features_are_worked_out_once_for_each_version(self, engine: CosyVoice3) -> None:
        read: list[int] = []

        def prompt_audio() -> bytes:
            read.append(1)
            return clip(3)

        spec = VoiceSpec(key="once", language="zh", prompt_audio=prompt_audio)
        for instruction in ("", "angry", ""):
            say(engine, voice=spec, instruction=instruction)
        assert len(read) == 1

    def test_the_first_piece_of_every_stream_is_as_early(self, engine: CosyVoice3) -> None:
        for _ in range(3):
            pieces = [
                event
                for event in engine.synthesise([job(text=LONG, stream=True)])
                if isinstance(event, Audio)
            ]
            assert len(pieces) > 1
            # 25 tokens, and up to 24 more that fill the prompt's last chunk.
            assert len(pieces[0].samples) <= 50 * engine.capabilities.sample_rate / 25

    def test_a_stream_says_what_its_pieces_say_together(self, engine: CosyVoice3) -> None:
        first, second = (say(engine, text=LONG, stream=True) for _ in range(2))
        assert np.array_equal(first, second)

    def test_speed_is_kept_when_a_stream_is_wanted(self, engine: CosyVoice3) -> None:
        assert np.array_equal(say(engine, speed=2.0, stream=True), say(engine, speed=2.0))

    def test_the_same_seed_gives_the_same_samples(self, engine: CosyVoice3) -> None:
        first, second, other = (say(engine, seed=seed) for seed in (3, 3, 4))
        assert np.array_equal(first, second)
        assert not np.array_equal(first, other)

    # -- Ends

    @pytest.mark.parametrize("stream", [False, True])
    def test_an_error_in_the_language_model_fails_the_job_alone(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        _fail_after(engine, monkeypatch, tokens=3)
        started = time.monotonic()
        events = list(engine.synthesise([job("bad", text="坏的", stream=stream), job("good", stream=stream)]))
        assert time.monotonic() - started < 60
        assert [event for event in events if isinstance(event, Failed)] == [
            Failed("bad", "engine_error", events[0].message, retryable=True)  # type: ignore[union-attr]
        ]
        assert Finished("good") in events

    @pytest.mark.parametrize("stream", [False, True])
    def test_a_cancelled_job_ends_without_a_word(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        speaking = _slowly(engine, monkeypatch)
        events = list(
            engine.synthesise([job("bad", text=LONG, cancelled=speaking.is_set, stream=stream), job("good")])
        )
        assert Finished("bad") not in events
        assert not any(isinstance(event, Failed) for event in events)
        assert Finished("good") in events

    def test_a_job_cancelled_before_its_turn_is_not_begun(self, engine: CosyVoice3) -> None:
        assert list(engine.synthesise([job(cancelled=lambda: True)])) == []

    @pytest.mark.parametrize("stream", [False, True])
    def test_closing_early_ends_everything(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        _slowly(engine, monkeypatch)
        events = engine.synthesise([job("a", stream=stream), job("b", text=LONG)])
        assert isinstance(next(events), Audio)
        events.close()  # type: ignore[attr-defined]
        monkeypatch.undo()
        assert threads_gone("speak")

    def test_a_segment_that_takes_too_long_fails(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _slowly(engine, monkeypatch, pause=0.2)
        object.__setattr__(engine.settings, "timeout", 0.6)
        try:
            events = list(engine.synthesise([job(text=LONG)]))
        finally:
            object.__setattr__(engine.settings, "timeout", 0.0)
        assert [(event.code, event.retryable) for event in events if isinstance(event, Failed)] == [
            ("engine_timeout", True)
        ]

    # -- Several at once

    @pytest.mark.parametrize("stream", [False, True])
    def test_eight_voices_at_once_say_what_they_say_alone(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, stream: bool
    ) -> None:
        jobs = [
            job(
                f"request-{number}",
                voice=voice(number),
                seed=100 + number,
                stream=stream,
                instruction="angry" if number % 2 else "",
            )
            for number in range(8)
        ]
        alone = {given.key: sound_of(list(engine.synthesise([given])), given.key) for given in jobs}
        _slowly(engine, monkeypatch, pause=0.002).set()
        object.__setattr__(engine.settings, "concurrency", 8)
        try:
            events = list(engine.synthesise(jobs))
        finally:
            object.__setattr__(engine.settings, "concurrency", 1)
        for given in jobs:
            assert np.array_equal(sound_of(events, given.key), alone[given.key]), given.key
        assert len({sound.tobytes() for sound in alone.values()}) == 8
        if stream:
            order = [event.key for event in events if isinstance(event, Audio)]
            assert order != sorted(order), "the streams should have been spoken beside each other"

    def test_a_failing_job_leaves_its_mates_alone(
        self, engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = say(engine, seed=5)
        _fail_after(engine, monkeypatch, tokens=2)
        object.__setattr__(engine.settings, "concurrency", 3)
        try:
            events = list(
                engine.synthesise([job("bad", text="坏的"), job("a", seed=5), job("empty", text="。")])
            )
        finally:
            object.__setattr__(engine.settings, "concurrency", 1)
        assert np.array_equal(sound_of(events), expected)
        assert {event.key for event in events if isinstance(event, Failed)} == {"bad", "empty"}


def _conversion(engine: CosyVoice3, *, seconds: float) -> dict[str, Any]:
    from gpu_worker.engines.cosyvoice3.calls import conversion_inputs
    from gpu_worker.engines.cosyvoice3.features import source_tokens

    source = source_tokens(engine.upstream, clip(5, seconds))
    return conversion_inputs(engine.upstream, source, engine.prepare(voice()))


def _fail_after(engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, *, tokens: int) -> None:
    """Let the language model break after some tokens, for the text 坏的 alone."""
    llm = engine.upstream.model.llm
    inference = llm.inference
    bad = np.asarray(engine.upstream.frontend._extract_text_token("坏的")[0].tolist())

    def failing(**arguments: Any) -> Iterator[int]:
        breaks = np.array_equal(np.asarray(arguments["text"].tolist()), bad)
        for number, token in enumerate(inference(**arguments)):
            if breaks and number == tokens:
                raise RuntimeError("secret words")
            yield token

    monkeypatch.setattr(llm, "inference", failing)


def _slowly(engine: CosyVoice3, monkeypatch: pytest.MonkeyPatch, *, pause: float = 0.01) -> threading.Event:
    """Let the language model take its time; the event is set once it has begun with the long text."""
    llm = engine.upstream.model.llm
    inference = llm.inference
    begun = threading.Event()

    def slow(**arguments: Any) -> Iterator[int]:
        for number, token in enumerate(inference(**arguments)):
            if arguments["text"].shape[1] > 20 and number == 5:
                begun.set()
            if begun.is_set():
                time.sleep(pause)
            yield token

    monkeypatch.setattr(llm, "inference", slow)
    return begun


__all__ = ["Contract", "inputs_for", "job", "say", "sound_of", "voice"]
