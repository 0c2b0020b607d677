"""From written text to phonemes: numbers, signs and languages inside each other."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_worker.engines import pieces
from gpu_worker.engines.text import addresses, script
from gpu_worker.engines.text.english import English, normalise
from gpu_worker.engines.text.mandarin import Mandarin
from gpu_worker.engines.text.mixed import Phonemizer


@pytest.fixture(scope="module")
def phonemes() -> Phonemizer:
    return Phonemizer()


@pytest.fixture(scope="module")
def mandarin(phonemes) -> Mandarin:
    return phonemes._mandarin


@pytest.fixture(scope="module")
def english(phonemes) -> English:
    return phonemes._american


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2026年11月30日", "二零二六年十一月三十日"),
        ("2026-11-30", "二零二六年十一月三十日"),
        ("2月2日下午2点", "二月二日下午两点"),
        ("上午10:30", "上午十点三十分"),
        ("8:05", "八点零五分"),
        ("￥3.50", "三点五零元"),
        ("价格￥1,299.00元", "价格一千二百九十九元"),
        ("$5万", "五万美元"),
        ("50%", "百分之五十"),
        ("5%-10%", "百分之五到百分之十"),
        ("1,234人", "一千二百三十四人"),
        ("-5℃", "负五摄氏度"),
        ("120km/h", "每小时一百二十公里"),
        ("20㎡和3m²", "二十平方米和三平方米"),
        ("第3名", "第三名"),
        ("2个苹果", "两个苹果"),
        ("3~5天", "三到五天"),
        ("1/2", "二分之一"),
        ("3:2获胜", "三比二获胜"),
        ("7×24小时", "七乘二十四小时"),
        ("2+3=5", "二加三等于五"),
        ("13812345678", "幺三八幺二三四五六七八"),
        ("+86 138 1234 5678", "加八六，幺三八幺二三四五六七八"),
        ("验证码0086", "验证码零零八六"),
        ("身份证110101199003071234", "身份证一一零一零一一九九零零三零七一二三四"),
        ("v2.0.1", "v二点零点一"),
        ("192.168.0.1", "一九二点一六八点零点一"),
        ("COVID-19和GPT-4", "COVID 十九和GPT 四"),
        ("①打开Ⅲ期", "一、打开三期"),
        ("繁體中文１２３", "繁体中文一百二十三"),
        ("A股T+1，2月", "A股T加一， 二月"),
    ],
)
def test_chinese_numbers(mandarin, written, said):
    assert mandarin.normalise(written) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("$3.50", "three dollars and fifty cents"),
        ("£20", "twenty pounds"),
        ("Dr. Smith", "doctor Smith"),
        ("1,234", "one thousand two hundred thirty four"),
        ("the 3rd", "the third"),
        ("10:30", "ten thirty"),
        ("50%", "fifty percent"),
        ("in 2026", "in twenty twenty six"),
        ("12/25/2024", "December twenty fifth, twenty twenty four"),
        ("5kg", "five kilograms"),
        ("-5°C", "minus five degrees Celsius"),
        ("3–5 days", "three to five days"),
        ("4 × 2", "four times two"),
        ("room 007", "room zero zero seven"),
        ("version 2.0.1", "version two point zero point one"),
        ("[docs]", "(docs)"),
        ("α-particles", "alpha-particles"),
    ],
)
def test_english_numbers(english, written, said):
    def heard(text: str) -> str:
        return english(text).translate(str.maketrans("", "", "ˈˌ, "))

    assert heard(written) == heard(said)


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        (
            "en",
            "See https://example.com/a-b?c=1.",
            "See example dot com slash a dash b question mark c equals 1.",
        ),
        ("en", "Mail a.b@example.com!", "Mail a dot b at example dot com!"),
        ("en", "www.gov.uk/ (site)", "W W W dot gov dot U K (site)"),
        ("en", "It ended.So what? 3.14 e.g. this", "It ended.So what? 3.14 e.g. this"),
        ("zh", "发到a@example.com，谢谢", "发到a 艾特 example 点 com，谢谢"),
        ("zh", "访问http://127.0.0.1:8080。", "访问一 二 七 点 零 点 零 点 一 冒号 八 零 八 零。"),
        ("ja", "example.com を見て", "example ドット com を見て"),
    ],
)
def test_addresses(language, written, said):
    assert addresses.spoken(written, language) == said


def test_passages_keep_every_character_and_find_the_language():
    text = "他说：“He paid $3.50 for 2 cups.”然后用iPhone 15走了。"
    parts = script.passages(text, "zh")
    assert "".join(part for _, part in parts) == text
    assert ("en", "He paid $3.50 for 2 cups.") in parts
    assert [language for language, _ in parts] == ["zh", "en", "zh"]

    assert script.passages("On 2026年11月30日 in 東京 and すごい!", "en") == [
        ("en", "On "),
        ("zh", "2026年11月30日"),
        ("en", " in "),
        ("zh", "東京"),
        ("en", " and "),
        ("ja", "すごい"),
        ("en", "!"),
    ]


def test_english_inside_chinese_is_english(phonemes, english):
    spoken = phonemes("我用Python写程序", "zh")
    assert english("Python") in spoken
    assert phonemes("A股", "zh").startswith("ˈA "), "a letter alone is its name, not the article"
    assert english("Hello, my friend!") in phonemes("她说：“Hello, my friend!”", "zh")


@pytest.mark.parametrize("sentence", ["Chapter 2.", "Call 911 now!", "It starts at 10:30."])
def test_a_short_english_sentence_in_chinese_is_english_with_its_numbers(phonemes, english, sentence):
    assert english(sentence) in phonemes(f"我们先听一段英文。{sentence} 接下来用中文。", "zh")
    # A name with a number is no sentence: people say the number in Chinese.
    assert english("15") not in phonemes("他买了iPhone 15。然后走了。", "zh")


def test_chinese_inside_english_is_chinese(phonemes, mandarin):
    spoken = phonemes("I live in 北京 now.", "en-US")
    assert mandarin("北京") in spoken
    assert phonemes("On 2026年11月30日.", "en-US").endswith(mandarin("二零二六年十一月三十日") + ".")


def test_accents_differ(phonemes):
    assert phonemes("bath", "en-GB") != phonemes("bath", "en-US")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("4月1日", "しがつついたち"),
        ("3.14", "さんてんいちよん"),
        ("50%", "ごじゅっパーセント"),
        ("¥3,500", "さんぜんごひゃくえん"),
        ("２つ", "ふたつ"),
        ("AI", "エーアイ"),
    ],
)
def test_japanese_numbers(phonemes, written, said):
    def sounds(text: str) -> str:
        return phonemes(text, "ja").replace(" ", "").replace("ɴ", "n")

    assert sounds(written) == sounds(said)


def test_english_inside_japanese(phonemes, english):
    assert english("CosyVoice") in phonemes("CosyVoiceを使う", "ja")
    assert english("Google") not in phonemes("Googleを使う", "ja"), "it has a Japanese reading"


def test_other_alphabets_are_read_somehow(phonemes):
    for language in ("zh", "en-US", "en-GB", "ja"):
        assert any(map(str.isalpha, phonemes("Москва", language)))
        assert any(map(str.isalpha, phonemes("서울", language)))


def test_every_symbol_is_one_that_the_model_knows(phonemes, mandarin):
    from gpu_worker.engines.runtime import models_dir

    known = set(json.loads((models_dir() / "kokoro/vocabulary.json").read_text("utf-8"))["vocab"])
    texts = [
        (
            "zh",
            "“你好”，（世界）！《红楼梦》……——他说：「嗯，好的；行吗？」儿子、花儿、女士、月亮、远、绿、鹅、二、日、字、思。",
        ),
        ("en-GB", "“Hello” (there) — it's a lovely day… isn't it? Yes; no: maybe!"),
        ("ja", "「きゃあ」（笑）、ちょっと待って！ヴァイオリンとファッション、ゐゑを、すごーい。"),
    ]
    for language, text in texts:
        assert set(phonemes(text, language)) <= known, language


@given(st.text(max_size=40), st.sampled_from(["zh", "en-US", "en-GB", "ja"]))
@settings(max_examples=60, deadline=None)
def test_no_text_is_too_strange(phonemes, text, language):
    assert isinstance(phonemes(text, language), str)


@given(st.text("abc ,.!?”—", max_size=300), st.integers(5, 60))
def test_pieces_hold_everything(text, limit):
    parts = pieces.split(text, limit)
    assert "".join(parts) == text
    assert all(0 < len(part) <= limit for part in parts)


def test_pieces_are_cut_at_the_best_place():
    assert pieces.split("one two three. four five, six seven", 20) == [
        "one two three. ",
        "four five, six seven",
    ]
    assert pieces.split("one two, three four five", 15) == ["one two, ", "three four five"]
    assert pieces.split("one two three four", 10) == ["one two ", "three four"]
    assert pieces.split("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]


def test_dictionaries_leave_nothing_in_the_shared_folder_and_say_nothing(
    tmp_path, monkeypatch, capfd, caplog
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with caplog.at_level(logging.DEBUG):
        Mandarin()("你好")
    assert list(Path(tmp_path).iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if record.name.startswith("jieba")]


def test_normalising_keeps_what_it_does_not_know():
    assert normalise("Plain words, nothing else.") == "Plain words, nothing else."
