"""Texts become segments: whole sentences of a size that engines speak well, and nothing lost."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesis.text.characters import weigh
from synthesis.text.clean import is_speakable
from synthesis.text.segmenting import PAUSES, Segment, split
from synthesis.text.sentences import sentences

STORY = (
    "It was a dark and stormy night; the rain fell in torrents, except at occasional intervals, when it was "
    "checked by a violent gust of wind which swept up the streets (for it is in London that our scene lies), "
    "rattling along the house-tops, and fiercely agitating the scanty flame of the lamps that struggled "
    "against the darkness."
)


def texts(text: str, *, language: str = "en", limit: int = 200) -> list[str]:
    return [segment.text for segment in split(text, language=language, limit=limit)]


def solid(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello there. How are you? Fine!", ["Hello there.", "How are you?", "Fine!"]),
        ("Dr. Smith met Mrs. Jones. They talked.", ["Dr. Smith met Mrs. Jones.", "They talked."]),
        (
            "He came at 3 p.m. on Monday. She left at 4 p.m. The end.",
            ["He came at 3 p.m. on Monday.", "She left at 4 p.m.", "The end."],
        ),
        (
            "The U.S. Army came. I live in the U.S. He does not.",
            ["The U.S. Army came.", "I live in the U.S.", "He does not."],
        ),
        (
            "Bring fruit, e.g. apples, i.e. food. Pens, paper, etc. are here.",
            ["Bring fruit, e.g. apples, i.e. food.", "Pens, paper, etc. are here."],
        ),
        (
            "J. R. R. Tolkien wrote it. Plan B. The end.",
            ["J. R. R. Tolkien wrote it.", "Plan B.", "The end."],
        ),
        (
            "It costs $3.50 or 1,299.00. Pi is 3.14. So what?",
            ["It costs $3.50 or 1,299.00.", "Pi is 3.14.", "So what?"],
        ),
        (
            "Use Python 3.11.4 or v2.0. See https://a.org/x.html?y=1.2! Or mail me@b.co.uk. Good.",
            ["Use Python 3.11.4 or v2.0.", "See https://a.org/x.html?y=1.2!", "Or mail me@b.co.uk.", "Good."],
        ),
        (
            "No. I will not. See No. 5 and Fig. 2. Done.",
            ["No.", "I will not.", "See No. 5 and Fig. 2.", "Done."],
        ),
        (
            "Well... I never. Wait...what? Hm… maybe. . . . No.",
            ["Well...", "I never.", "Wait...what?", "Hm… maybe. . . .", "No."],
        ),
        (
            '"Really?" she asked. "Yes." He left. \'Go!\' (It was late.) The end.',
            ['"Really?" she asked.', '"Yes."', "He left.", "'Go!'", "(It was late.)", "The end."],
        ),
        ("“Who is it?!” “Me.” Then silence.", ["“Who is it?!”", "“Me.”", "Then silence."]),
        ("1. First item. 2. Second item.", ["1. First item.", "2. Second item."]),
        ("hello there. how are you. i am fine.", ["hello there.", "how are you.", "i am fine."]),
        (
            "Am 3. Oktober war es kalt. Dr. Kohl, z.B. er, kam.",
            ["Am 3. Oktober war es kalt.", "Dr. Kohl, z.B. er, kam."],
        ),
        ("« Bonjour ! » dit-il. « Ça va ? » Oui.", ["« Bonjour ! » dit-il.", "« Ça va ? »", "Oui."]),
    ],
)
def test_english_and_its_neighbours(text: str, expected: list[str]) -> None:
    language = "de" if "Oktober" in text else "en"
    assert list(sentences(text, language=language)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今天天气很好。我们去公园吧！好吗？", ["今天天气很好。", "我们去公园吧！", "好吗？"]),
        ("他说：“你好吗？”然后走了。", ["他说：“你好吗？”", "然后走了。"]),
        ("“走吧。”他说，“好！”，我答。", ["“走吧。”", "他说，“好！”，我答。"]),
        ("我……我不知道。真的……？！是的。", ["我……我不知道。", "真的……？！", "是的。"]),
        ("圆周率是3.14。版本v1.2.3发布了。", ["圆周率是3.14。", "版本v1.2.3发布了。"]),
        ("（他走了。）《书名！》很好。", ["（他走了。）", "《书名！》", "很好。"]),
        ('他说:"你好!"然后走了.再见!', ['他说:"你好!"', "然后走了.", "再见!"]),
        ("1.苹果 2.香蕉。用Python.然后好。", ["1.苹果 2.香蕉。", "用Python.", "然后好。"]),
        ("請看「這裡。」好嗎？『是的！』", ["請看「這裡。」", "好嗎？", "『是的！』"]),
    ],
)
def test_chinese(text: str, expected: list[str]) -> None:
    assert list(sentences(text, language="zh")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("今日は晴れです。散歩に行きましょう！", ["今日は晴れです。", "散歩に行きましょう！"]),
        (
            "「行くぞ。」と彼は言った。「はい。」彼女は答えた。",
            ["「行くぞ。」と彼は言った。", "「はい。」", "彼女は答えた。"],
        ),
        ("これは3.5です｡本当？！　はい。", ["これは3.5です｡", "本当？！", "はい。"]),
        ("３．１４です．終わり。", ["３．１４です．", "終わり。"]),
    ],
)
def test_japanese(text: str, expected: list[str]) -> None:
    assert list(sentences(text, language="ja")) == expected


def test_short_sentences_are_merged_and_long_enough_ones_are_not() -> None:
    assert texts("Yes. No. Maybe so. I do not know at all.") == ["Yes. No. Maybe so. I do not know at all."]
    assert texts("好。走吧。", language="zh") == ["好。走吧。"]
    long = [
        "This sentence is long enough to stand on its own here.",
        "And this one is certainly long enough as well.",
    ]
    assert texts(" ".join(long)) == long
    assert texts(f"{long[0]} Yes.") == [f"{long[0]} Yes."]


def test_paragraphs_pause_longer_and_the_end_not_at_all() -> None:
    segments = split(f"A short heading of the text\n\n{STORY[:62]}.\nAnother line.", language="en", limit=200)
    assert [segment.kind for segment in segments] == ["paragraph", "paragraph", "end"]
    assert [segment.pause_after for segment in segments] == [PAUSES["paragraph"], PAUSES["paragraph"], 0.0]


def test_lines_that_an_editor_broke_are_joined_and_deliberate_breaks_are_not() -> None:
    wrapped = "This is a line that some editor has broken at\nits own width, and it goes on here."
    assert texts(wrapped) == [wrapped.replace("\n", " ")]
    chinese = "这是一行很长很长的文字编辑器在这里把它断开了因为它的宽度只有这么多\n所以后面还要继续读下去。"
    assert texts(chinese, language="zh", limit=400) == [chinese.replace("\n", "")]
    poem = "Roses are red of course\nViolets are blue as well\nSugar is sweet as honey"
    assert texts(poem) == poem.split("\n")
    assert texts("The list of things to buy in town today, in order\n- Apples and pears\n- Oranges too") == [
        "The list of things to buy in town today, in order",
        "- Apples and pears",
        "- Oranges too",
    ]


def test_a_tiny_paragraph_joins_the_sentence_before_it() -> None:
    assert texts(
        "他终于决定要离开这座城市了。\n\n“好。”\n\n然后他就真的走了，再也没有回来。", language="zh"
    ) == [
        "他终于决定要离开这座城市了。“好。”",
        "然后他就真的走了，再也没有回来。",
    ]


def test_a_long_sentence_is_cut_at_its_clauses() -> None:
    segments = split(STORY, language="en", limit=120)
    assert all(weigh(segment.text) <= 120 for segment in segments)
    assert [segment.kind for segment in segments] == ["clause"] * (len(segments) - 1) + ["end"]
    assert all(segment.text[-1] in ",;)." for segment in segments)


def test_the_first_segment_is_short_so_that_sound_starts_early() -> None:
    first = split(STORY, language="en", limit=400)[0]
    assert weigh(first.text) <= 80
    assert first.kind == "clause"


def test_without_punctuation_english_is_cut_between_words_in_even_parts() -> None:
    words = ("we walked along the river and looked at the boats because it was warm " * 8).strip()
    segments = texts(words)
    assert " ".join(segments) == words
    assert all(60 < len(segment) <= 200 for segment in segments)


def test_without_punctuation_chinese_is_cut_near_the_limit_but_never_in_a_number_or_word() -> None:
    text = "他在二零二三年花了1234567元买了MacBookPro然后去了北京" * 20
    segments = texts(text, language="zh")
    assert "".join(segments) == text
    for segment in segments:
        assert len(segment) >= 30
        assert weigh(segment) <= 200
        for whole in ("1234567元", "MacBookPro", "二零二三年"):
            assert segment.count(whole[1:-1]) == segment.count(whole)


def test_nothing_is_cut_inside_what_one_sees_as_one_character() -> None:
    for unit in ("e\u0301", "👨‍👩‍👧", "👍🏽", "か\u3099", "ไม่", "각", "きゃ", "1,000 ", "don't "):
        text = unicodedata.normalize("NFC", "a" + unit * 300)
        unit = unicodedata.normalize("NFC", unit).strip()
        segments = texts(text, language="en", limit=50)
        assert solid("".join(segments)) == solid(text)
        for segment in segments:
            assert segment.endswith((unit, "a"))


def test_a_row_of_flags_stays_whole() -> None:
    text = "We have been to all of these: " + "🇨🇳🇫🇷🇯🇵🇩🇪" + " and liked them very much indeed"
    assert sum("🇨🇳🇫🇷🇯🇵🇩🇪" in segment for segment in texts(text, limit=40)) == 1


def test_a_word_longer_than_the_limit_is_cut_as_a_last_resort() -> None:
    assert [len(segment) for segment in texts("a" * 500)] == [167, 166, 167]


def test_what_cannot_be_spoken_goes_with_its_neighbour() -> None:
    assert texts(
        "***\n\nHello there, my friends of old.\n\n— — —\n\n😀\n\nGood night, and sleep well now.\n\n!!!"
    ) == [
        "*** Hello there, my friends of old. — — — 😀",
        "Good night, and sleep well now. !!!",
    ]
    assert len(texts("Hi" + "!" * 5000)) == 1
    assert texts("!!!") == []


def test_a_limit_that_no_sentence_fits_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least"):
        split("Hello", language="en", limit=5)


SIGNS = st.sampled_from(
    [*" \n\t.,!?;:'\"()-…—。，！？；：“”「」、·/%@*", "...", "\n\n", ". ", "。”", " “", "\u00a0"]
)
WORDS = st.sampled_from(
    [
        "Hello",
        "a",
        "I",
        "Dr",
        "e.g",
        "3.14",
        "1,000",
        "v2.0.1",
        "https://a.b/c?d=e",
        "你",
        "天气",
        "三",
        "の",
        "です",
        "ー",
        "é",
        "e\u0301",
        "👍🏽",
        "👨‍👩‍👧",
        "🇨🇳",
        "안녕",
        "Привет",
        "ไม่",
        "don't",
        "U.S",
        "😀",
        "x" * 70,
    ]
)
TEXTS = st.lists(st.one_of(SIGNS, WORDS, st.text(max_size=5)), max_size=80).map("".join)


def assert_sound(text: str, segments: list[Segment], limit: int) -> None:
    assert solid("".join(segment.text for segment in segments)) == solid(text)
    for segment in segments:
        assert is_speakable(segment.text)
        assert segment.text == segment.text.strip()
        assert segment.pause_after == PAUSES[segment.kind]
        assert segment.kind != "end" or segment is segments[-1]
    assert segments[-1].kind == "end"


@settings(max_examples=300, deadline=None)
@given(text=TEXTS, language=st.sampled_from(["zh", "en-US", "ja", "de"]), limit=st.integers(20, 250))
def test_every_character_is_in_some_segment_in_order(text: str, language: str, limit: int) -> None:
    segments = split(text, language=language, limit=limit)
    if not is_speakable(text):
        assert segments == []
        return
    assert_sound(text, segments, limit)


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["hello", "你好", "3.14", "です", "。", ". ", "，", ", ", " ", "\n", "! "]),
        max_size=120,
    ),
    limit=st.integers(20, 250),
)
def test_speech_never_passes_the_limit(parts: list[str], limit: int) -> None:
    for segment in split("".join(parts), language="zh", limit=limit):
        # Marks that were attached may pass it; what is spoken may not.
        assert weigh(segment.text.strip("。.，, !")) <= limit


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "。",
        ".",
        '"',
        '!" ',
        "a\n",
        "(",
        ".)",
        "e\u0301",
        "，",
        "a b. ",
        "你好。",
        "\n",
        "👍🏽",
        "1,",
        '"a." ',
        "…… ",
        "a.'",
        "\u00a0.",
        "U.S. ",
        "x\u0301\u0301\u0301\u0301",
        "a\n\n",
        "“",
        ". . ",
        STORY,
        "我们去公园吧",
    ],
)
def test_twenty_thousand_characters_take_no_time(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    began = time.process_time()
    segments = split(text, language="zh", limit=200)
    assert time.process_time() - began < 2.0
    assert not segments or solid("".join(segment.text for segment in segments)) == solid(text)
