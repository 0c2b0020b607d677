"""The catalogue of instructions, and tags that are misspelt, left open or not known to the engine."""

from __future__ import annotations

import pytest

from accounts.errors import InvalidInput
from synthesis.instructions import (
    BY_KEY,
    CATALOGUE,
    GROUPS,
    KNOWN_TAGS,
    PHONEMES,
    PINYIN,
    balanced,
    check_tags,
    clean_instruction,
    instruction_prompt,
    pace_of,
    tags_in,
    without_tags,
)


class TestCatalogue:
    def test_has_what_the_authors_list(self) -> None:
        assert len(CATALOGUE) == 26
        assert len(BY_KEY) == len(CATALOGUE)
        assert sum(entry.group == "dialect" for entry in CATALOGUE) == 17
        assert {entry.group for entry in CATALOGUE} == set(GROUPS)

    def test_has_labels_in_both_languages(self) -> None:
        for entry in CATALOGUE:
            assert entry.english.isascii()
            assert all(character > "\u3400" for character in entry.chinese)
            assert str(entry.label)

    def test_prompts_are_whole_sentences_without_special_tokens(self) -> None:
        for entry in CATALOGUE:
            assert entry.prompt[-1] in "。.？"
            assert "<|" not in entry.prompt
            assert instruction_prompt(entry.key) == entry.prompt

    def test_knows_its_own_pace(self) -> None:
        assert pace_of("slowest") > 1 > pace_of("fastest")
        assert pace_of("in my own words") == 1.0


class TestFreeText:
    def test_becomes_one_line(self) -> None:
        assert clean_instruction("  speak \n softly ") == "speak softly"
        assert clean_instruction("") == ""
        assert clean_instruction("dialect-minnan") == "dialect-minnan"

    def test_single_words_are_no_keys(self) -> None:
        assert clean_instruction("whisper") == "whisper"
        assert clean_instruction("cheerful") == "cheerful"

    @pytest.mark.parametrize(
        ("value", "code"),
        [
            ("x" * 201, "instruction_too_long"),
            ("hello<|endofprompt|>", "instruction_special_token"),
            ("hello <｜endofprompt｜>", "instruction_special_token"),
            ("hello \x07", "instruction_control_characters"),
            ("hi\u200bdden", "instruction_control_characters"),
            ("dialect-sichaun", "instruction_unknown"),
            ("dialect-klingon", "instruction_unknown"),
            ("hapy", "instruction_unknown"),
        ],
    )
    def test_refuses(self, value: str, code: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            clean_instruction(value)
        assert (refused.value.code, refused.value.param) == (code, "instruction")
        assert str(refused.value)


class TestTags:
    def test_the_lists_are_complete(self) -> None:
        assert len(PHONEMES) == 84
        assert len(PINYIN) == 176
        assert len(KNOWN_TAGS) == 84 + 176 + 12 + 4

    @pytest.mark.parametrize(
        "text",
        [
            "[breath]因为他们那一辈人[breath]在乡里面住的要习惯一点，[laughter]",
            "<strong>很</strong>好，<laughter>真的</laughter>",
            "高管也通过电话对报道[j][ǐ]予好评。",
            "It was a [L][IY1][D] pipe.",
            "see [1] and [注释], 3 < 4 > 2, a<b",
        ],
    )
    def test_lets_pass(self, text: str) -> None:
        check_tags(text, supported=True)

    @pytest.mark.parametrize(
        ("text", "tag", "nearest"),
        [
            ("[breth]好", "[breth]", "[breath]"),
            ("[Laughter]好", "[Laughter]", "[laughter]"),
            ("[quick breath]好", "[quick breath]", "[quick_breath]"),
            ("<stong>好</strong>", "<stong>", "<strong>"),
            ("et al. [editor]", "[editor]", None),
            ("<break time='1s'/>", "<break time='1s'/>", None),
        ],
    )
    def test_refuses_what_is_misspelt(self, text: str, tag: str, nearest: str | None) -> None:
        with pytest.raises(InvalidInput) as refused:
            check_tags(text, supported=True)
        assert refused.value.code == "tag_unknown"
        assert refused.value.details["tag"] == tag
        assert refused.value.details.get("nearest") == nearest
        assert tag in str(refused.value)

    @pytest.mark.parametrize(
        "text",
        ["<strong>好", "好</strong>", "<strong><laughter>好</strong></laughter>", "</strong>好<strong>"],
    )
    def test_refuses_what_is_left_open(self, text: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            check_tags(text, supported=True)
        assert refused.value.code == "tag_not_closed"

    def test_refuses_all_where_the_engine_has_none(self) -> None:
        with pytest.raises(InvalidInput) as refused:
            check_tags("[breath]好", supported=False)
        assert refused.value.code == "tags_not_supported"
        check_tags("option [a] or [sic]", supported=False)

    def test_finds_and_removes(self) -> None:
        text = "[breath]很<strong>好</strong>[sic]"
        assert tags_in(text) == ["[breath]", "<strong>", "</strong>", "[sic]"]
        assert without_tags(text) == "很好[sic]"

    def test_closes_and_opens_again_across_segments(self) -> None:
        assert balanced(["a <strong>b", "c", "d</strong> e"]) == [
            "a <strong>b</strong>",
            "<strong>c</strong>",
            "<strong>d</strong> e",
        ]
