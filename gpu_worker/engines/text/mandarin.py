"""Mandarin text to phonemes: numbers and signs in words, words by jieba, pinyin by pypinyin, symbols by
misaki.

wetext (the normaliser that CosyVoice itself uses) reads numbers, dates, times, money, units and telephone
numbers; `_RULES` put what it misreads into a form that it reads well.
"""

from __future__ import annotations

import logging
import re
import tempfile
import unicodedata
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from gpu_worker.engines.base import EngineUnavailable

_DIGITS = "零一二三四五六七八九"
_CURRENCIES = {"￥": "元", "¥": "元", "$": "美元", "€": "欧元", "£": "英镑"}

_SIGNS = str.maketrans(
    {
        "～": "~",
        "〜": "~",
        "²": "^2",
        "³": "^3",
        "㎡": "平方米",
        "㎥": "立方米",
        "㎞": "公里",
        "㎏": "千克",
        "№": "第",
        # Written for 的 in advertisements, and read so.
        "の": "的",
        "℃": "摄氏度",
        "℉": "华氏度",
        "·": " ",
        "•": " ",
        "→": "，",
        "‘": "“",
        "’": "”",
        "—": "—",
    }
)


def _spell(digits: str) -> str:
    return "".join(_DIGITS[int(digit)] if digit.isdecimal() else digit for digit in digits)


def _cardinal(number: str) -> str:
    """A number of at most four digits in words; a longer one digit by digit. (wetext says 两 for some twos.)"""
    if len(number) > 4:
        return _spell(number)
    value = int(number)
    if value < 10:
        return _DIGITS[value]
    unit, name = next((unit, name) for unit, name in ((1000, "千"), (100, "百"), (10, "十")) if value >= unit)
    above, below = divmod(value, unit)
    words = f"{'' if value < 20 else _DIGITS[above]}{name}"
    if not below:
        return words
    rest = _cardinal(str(below))
    gap = "零" if below < unit // 10 else ""
    # 110 is 一百一十, where 10 alone is 十.
    return f"{words}{gap}{'一' if 10 <= below < 20 else ''}{rest}"


def _money(found: re.Match[str]) -> str:
    amount = re.sub(r"\.0+$", "", found["amount"])
    return f"{amount}{found['scale']}{_CURRENCIES[found['sign']]}"


def _version(found: re.Match[str]) -> str:
    parts = found[0].split(".")
    # An address of four numbers is read digit by digit.
    read = _spell if len(parts) == 4 else _cardinal
    return "点".join(map(read, parts))


def _ratio(found: re.Match[str]) -> str:
    above, below = found[1], found[2]
    return f"{above}比{below}" if int(above) >= int(below) else found[0]


_Replacement = str | Callable[[re.Match[str]], str]

#: In order. Pattern → what wetext reads well, or the Chinese words themselves.
_RULES: tuple[tuple[re.Pattern[str], _Replacement], ...] = (
    # 1,234,567: it reads a comma as a pause.
    (re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])"), lambda found: found[0].replace(",", "")),
    # Mobile numbers in groups, with or without the country's code.
    (re.compile(r"\+86[ -]?(?=\d)"), "加八六，"),
    (re.compile(r"(?<!\d)(1[3-9]\d)[ -](\d{4})[ -](\d{4})(?!\d)"), r"\1\2\3"),
    # Money, also where sign and word are both written: ￥3.50元, $5万.
    (
        re.compile(
            r"(?P<sign>[￥¥$€£])\s?(?P<amount>\d+(?:\.\d+)?)(?P<scale>[百千万亿]*)(?:元|块钱?|美元|欧元|英镑)?"
        ),
        _money,
    ),
    (re.compile(r"(?<![\d.])(?!\d{4}\.\d{1,2}\.\d{1,2}(?!\d))\d+(?:\.\d+){2,}(?![\d.]*\d)"), _version),
    # A list, where it sees a range of numbers: 1，2月 as 十二月.
    (re.compile(r"(?<=\d)，(?=\d)"), "， "),
    (re.compile(r"%\s?[-~—]\s?(?=\d)"), "%到"),
    # COVID-19, GPT-4: a hyphen, no minus. T+1: said as a plus.
    (re.compile(r"(?<=[A-Za-z])-(?=\d)"), " "),
    (re.compile(r"(?<=[A-Za-z])\+(?=\d)"), "加"),
    (re.compile(r"(?<=\d)\s?[xX×*]\s?(?=\d)"), "乘"),
    (re.compile(r"(?<=\d)\^2(?!\d)"), "的平方"),
    (re.compile(r"(?<=\d)\^(\d+)"), r"的\1次方"),
    (re.compile(r"(?<=m)\^2"), "²"),
    (re.compile(r"(?<=m)\^3"), "³"),
    (re.compile(r"(?<=\d)mL\b"), "ml"),
    (re.compile(r"(?<![\d/.])(\d+)/(\d+)(?![\d/.])"), _ratio),
    # 2月2日 is 二月二日, and 2点 is 两点: it says 两日 and 二点.
    (re.compile(r"(?<!\d)\d{1,2}(?=[日号])"), lambda found: _cardinal(found[0])),
    (re.compile(r"(?<![\d.:])2点(?!\d)"), "两点"),
    (re.compile(r"(?<![\d:])0:(?=[0-5]\d(?!\d))"), "00:"),
    # Long numbers and those that begin with zero are ids: digit by digit. (11 digits: a mobile number, left
    # to it.)
    (re.compile(r"(?<![\d.])\d{12,}(?![\d.])"), lambda found: _spell(found[0])),
    (re.compile(r"(?<![\d.:/-])0\d+(?![\d.:/-])"), lambda found: _spell(found[0])),
)

_PLUS = re.compile(r"(?<=[\u4e00-\u9fff])\+|(?<![+A-Za-z])\+(?=[A-Za-z\u4e00-\u9fff])")
#: Signs that are words, once the numbers are.
_SPOKEN_SIGNS = {
    "=": "等于",
    "&": "和",
    "@": "艾特",
    "%": "百分号",
    "°": "度",
    "±": "正负",
    "≈": "约等于",
    "≠": "不等于",
    "≤": "小于等于",
    "≥": "大于等于",
    "÷": "除以",
    "×": "乘",
    "￥": "元",
    "¥": "元",
    "$": "美元",
    "€": "欧元",
    "£": "英镑",
}
#: misaki's `ZHG2P.retone`: tones as arrows, the vowels of zi and zhi as one.
_KOKORO_SYMBOLS = (
    ("˧˩˧", "↓"),
    ("˧˥", "↗"),
    ("˥˩", "↘"),
    ("˥", "→"),
    ("\u027b\u0329", "ɨ"),
    ("\u0279\u0329", "ɨ"),
)
_PUNCTUATION = str.maketrans(
    {
        "、": ",",
        "，": ",",
        "。": ".",
        "．": ".",
        "！": "!",
        "：": ":",
        "；": ";",
        "？": "?",
        "«": "“",
        "»": "”",
        "《": "“",
        "》": "”",
        "〈": "“",
        "〉": "”",
        "「": "“",
        "」": "”",
        "『": "“",
        "』": "”",
        "【": "“",
        "】": "”",
        "（": "(",
        "）": ")",
        "［": "(",
        "］": ")",
        "[": "(",
        "]": ")",
        "…": "…",
        "｡": ".",
        "､": ",",
    }
)
_OPENING, _CLOSING = "“(", ",.!?:;…”)"
_HAN_RUN = re.compile("[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")


class Mandarin:
    """Phonemes in misaki's alphabet for Kokoro v1.0. Loads dictionaries when made (1.5 s, 120 MB)."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():
                # jieba warns about its own escapes, and about pkg_resources.
                warnings.simplefilter("ignore")
                import jieba
                from misaki.transcription import pinyin_to_ipa
                from wetext import Normalizer
        except ImportError as error:
            raise EngineUnavailable(
                f"{error.name} is not installed; install the project with its extra 'cpu'"
            ) from error
        # It writes each first use to the log, and words of the text at the level of debugging.
        jieba.setLogLevel(logging.ERROR)
        self._words = jieba.Tokenizer()
        # jieba keeps its dictionary in the shared temporary folder and would load what anybody put there.
        with tempfile.TemporaryDirectory(prefix="chorus-jieba-") as private:
            self._words.tmp_dir = private
            self._words.initialize()
        self._wetext: Any = Normalizer(lang="zh", operator="tn", traditional_to_simple=True)
        self._pinyin_to_ipa: Any = pinyin_to_ipa
        self._ipa = lru_cache(maxsize=4096)(self._symbols)

    def normalise(self, text: str) -> str:
        """`text` with its numbers, dates, money, units and signs in Chinese words; other alphabets as they
        were.
        """
        text = "".join(_number_sign(character) for character in text.translate(_SIGNS))
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        text = self._wetext.normalize(text)
        # What it left: a digit here, a sign there.
        text = re.sub(r"\d+", lambda found: _spell(found[0]), text)
        text = _PLUS.sub("加", text)
        return "".join(_SPOKEN_SIGNS.get(character, character) for character in text)

    def __call__(self, text: str) -> str:
        """The phonemes of normalised `text` in Han and punctuation; what is in another script is left out."""
        symbols = []
        for character_or_run in _runs(text):
            if _HAN_RUN.fullmatch(character_or_run):
                symbols.append(" ".join(map(self._word, self._words.lcut(character_or_run))))
            else:
                mark = character_or_run.translate(_PUNCTUATION)
                symbols.append(f" {mark}" if mark in _OPENING else f"{mark} " if mark in _CLOSING else mark)
        return re.sub(r" +(?=[,.!?:;…”)])|(?<=[“(]) +| +(?= )", "", "".join(symbols))

    def _symbols(self, pinyin: str) -> str:
        """One syllable in Kokoro's symbols. (`misaki.zh` does this, and imports packages that Python 3.12 broke.)"""
        ipa = "".join(self._pinyin_to_ipa(pinyin)[0])
        for theirs, ours in _KOKORO_SYMBOLS:
            ipa = ipa.replace(theirs, ours)
        return ipa

    def _word(self, word: str) -> str:
        from pypinyin import Style, lazy_pinyin

        syllables = lazy_pinyin(word, style=Style.TONE3, neutral_tone_with_five=True)
        return "".join(map(self._syllable, syllables)).replace("\u032f", "")

    def _syllable(self, pinyin: str) -> str:
        if not pinyin.isascii():
            # A rare character that pypinyin does not know comes back as itself; Unicode knows how it is read.
            from anyascii import anyascii

            pinyin = f"{anyascii(pinyin).lower().strip()}5"
        try:
            return self._ipa(pinyin)
        except Exception:  # noqa: BLE001 - it raises whatever it stumbles over, for what is no syllable
            return ""


def _number_sign(character: str) -> str:
    """① as "1、", Ⅲ as "3", full-width forms as plain ones; everything else as it is."""
    code = ord(character)
    if 0x2460 <= code <= 0x249B or 0x2776 <= code <= 0x2793:
        return f"{int(unicodedata.numeric(character))}、"
    if 0x2160 <= code <= 0x217F:
        return str(int(unicodedata.numeric(character)))
    if 0xFF10 <= code <= 0xFF5A and character.isalnum():
        return unicodedata.normalize("NFKC", character)
    return character


def _runs(text: str) -> list[str]:
    """Runs of Han, and every other character alone."""
    return re.findall(f"{_HAN_RUN.pattern}|.", text, re.DOTALL)
