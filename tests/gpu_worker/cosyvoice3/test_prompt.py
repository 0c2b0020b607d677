"""From what is given to the mode, and to the exact words that the model reads."""

from __future__ import annotations

import pytest

from gpu_worker.engines.cosyvoice3.prompt import RefusedError, katakana, plan
from tests.gpu_worker.cosyvoice3.contract import job, voice

ZERO_SHOT = "You are a helpful assistant.<|endofprompt|>"


def test_zero_shot_with_a_transcript() -> None:
    planned = plan(job(text="收到礼物。", voice=voice(transcript="希望你以后能够做的比我还好呦。")))
    assert planned.mode == "zero_shot"
    assert planned.before == f"{ZERO_SHOT}希望你以后能够做的比我还好呦。"
    assert planned.text == "收到礼物。"
    assert planned.heard


def test_cross_lingual_without_a_transcript() -> None:
    planned = plan(job(voice=voice(transcript=" ")))
    assert (planned.mode, planned.before, planned.heard) == ("cross_lingual", ZERO_SHOT, False)


def test_cross_lingual_in_another_language_than_the_transcripts() -> None:
    given = voice(transcript="希望", language="zh")
    assert plan(job(text="Hello.", language="en", voice=given)).mode == "cross_lingual"
    assert plan(job(language="zh-CN", voice=given)).mode == "zero_shot"


def test_instruct_with_an_instruction_whatever_else_is_given() -> None:
    planned = plan(job(instruction="dialect-guangdong"))
    assert planned.mode == "instruct"
    assert planned.before == "You are a helpful assistant. 请用广东话表达。<|endofprompt|>"
    assert not planned.heard


def test_words_of_ones_own_become_a_sentence() -> None:
    assert plan(job(instruction="像讲故事一样")).before.endswith(" 像讲故事一样。<|endofprompt|>")
    assert plan(job(instruction="Whisper")).before.endswith(" Whisper.<|endofprompt|>")
    assert plan(job(instruction="Really?")).before.endswith(" Really?<|endofprompt|>")


def test_conversion_with_a_recording() -> None:
    assert plan(job(text="", source_audio=lambda: b"")).mode == "conversion"


def test_a_span_that_its_segment_leaves_open_is_closed() -> None:
    assert plan(job(text="<strong>很重要")).text == "<strong>很重要</strong>"


def test_line_breaks_are_spaces() -> None:
    assert plan(job(text="第一行\n第二行", language="zh")).text == "第一行 第二行"


def test_a_tag_alone_says_something() -> None:
    assert plan(job(text="[laughter]")).text == "[laughter]"
    with pytest.raises(RefusedError) as refused:
        plan(job(text="[。]"))
    assert refused.value.code == "nothing_to_speak"


class TestJapanese:
    """The model reads Japanese as katakana, words apart."""

    def test_the_example_of_the_authors(self) -> None:
        pytest.importorskip("pyopenjtalk")
        assert katakana("歴史的世界においては、過去は単に過ぎ去ったものではない。") == (
            "レキシ テキ セカイ ニ オイ テ ワ、 カコ ワ タンニ スギサッ タ モノ デ ワ ナイ。"
        )

    def test_katakana_stays_as_it_is(self) -> None:
        assert katakana("レキシ テキ セカイ。") == "レキシ テキ セカイ。"

    def test_tags_and_latin_words_are_not_spelt_out(self) -> None:
        pytest.importorskip("pyopenjtalk")
        assert katakana("[breath]雨が<strong>強く</strong>降る Python") == (
            "[breath] アメ ガ <strong> ツヨク </strong> フル Python"
        )

    def test_the_transcript_as_well(self) -> None:
        pytest.importorskip("pyopenjtalk")
        given = job(text="雨。", language="ja", voice=voice(transcript="今日は", language="ja"))
        assert plan(given).before == f"{ZERO_SHOT}キョー ワ"

    def test_without_the_reader_it_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "pyopenjtalk", None)
        with pytest.raises(RefusedError) as refused:
            katakana("雨")
        assert refused.value.code == "language_not_supported"
