"""Web and e-mail addresses, as people say them."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "zh", "ja"]

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}\.)+[A-Za-z]{{2,}}"
_REST = r"(?::\d{2,5})?(?:[/?#][A-Za-z0-9._~:/?#@!$&'()*+;=%-]*)?"
#: Without a scheme or www, only endings that nothing else has: "end.So" is a missing space, not an address.
_ENDINGS = r"(?:com|org|net|io|ai|dev|cn|uk|de|fr|jp|eu|edu|gov|app|info|xyz)"
_ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9@])(?:"
    rf"(?P<mail>[A-Za-z0-9._%+-]+@{_HOST})"
    rf"|(?:https?|ftp)://(?P<url>(?:{_HOST}|localhost|\d+(?:\.\d+){{3}}){_REST})"
    rf"|(?P<www>www\.{_HOST}{_REST})"
    rf"|(?P<bare>(?:{_LABEL}\.)+{_ENDINGS}(?![A-Za-z0-9-]|\.[A-Za-z]){_REST})"
    rf")",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?'()/"

_SIGNS: dict[Language, dict[str, str]] = {
    "en": {
        ".": "dot",
        "/": "slash",
        "-": "dash",
        "_": "underscore",
        ":": "colon",
        "?": "question mark",
        "=": "equals",
        "&": "and",
        "#": "hash",
        "@": "at",
        "%": "percent",
        "+": "plus",
        "~": "tilde",
    },
    "zh": {
        ".": "点",
        "/": "斜杠",
        "-": "杠",
        "_": "下划线",
        ":": "冒号",
        "?": "问号",
        "=": "等于",
        "&": "和",
        "#": "井号",
        "@": "艾特",
        "%": "百分号",
        "+": "加",
        "~": "波浪号",
    },
    "ja": {
        ".": "ドット",
        "/": "スラッシュ",
        "-": "ハイフン",
        "_": "アンダーバー",
        ":": "コロン",
        "?": "はてな",
        "=": "イコール",
        "&": "アンド",
        "#": "シャープ",
        "@": "アットマーク",
        "%": "パーセント",
        "+": "プラス",
        "~": "チルダ",
    },
}
#: Parts of addresses that are spelled, not read as words.
_SPELLED = frozenset(
    {"www", "html", "htm", "php", "io", "cn", "uk", "de", "fr", "jp", "eu", "xyz", "api", "id"}
)
_DIGITS: dict[Language, str] = {"en": "0123456789", "zh": "零一二三四五六七八九", "ja": "0123456789"}


def spoken(text: str, language: Language) -> str:
    """`text` with each address written out: "a.b@example.com" → "a dot b at example dot com".

    The scheme ("https://") and a slash at the end are not said, as nobody says them; every other sign is.
    """
    return _ADDRESS.sub(lambda found: _expand(found, language), text)


def _expand(found: re.Match[str], language: Language) -> str:
    address = found["mail"] or found["url"] or found["www"] or found["bare"]
    kept = address.rstrip(_TRAILING)
    trailing = address[len(kept) :].lstrip("/")
    words = [_part(part, language) for part in re.findall(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]", kept)]
    return " ".join(word for word in words if word) + trailing


def _part(part: str, language: Language) -> str:
    if part.isdigit():
        # A port or an id is read digit by digit.
        return " ".join(_DIGITS[language][int(digit)] for digit in part)
    if not part.isalpha():
        return _SIGNS[language].get(part, "")
    lowered = part.lower()
    if len(part) > 1 and (lowered in _SPELLED or not re.search(r"[aeiouy]", lowered)):
        return " ".join(part.upper())
    return part
