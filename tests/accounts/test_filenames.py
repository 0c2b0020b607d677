"""Names of downloads never become paths."""

from __future__ import annotations

import pytest

from accounts import filenames


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a/b 第一", "a b 第一"),
        ("第一章/..", "第一章"),
        ("../../etc/passwd", "etc passwd"),
        ("..\\..\\x", "x"),
        (" .hidden. ", "hidden"),
        ("A title\r\nwith\tlines", "A title with lines"),
        ("abc\u202egpj\x00", "abcgpj"),
        ('C:"<>|?*', "C"),
        ("//", ""),
        ("…", "…"),
        ("好" * 100, "好" * 40),
    ],
)
def test_safe(words, expected):
    assert filenames.safe(words) == expected


def test_name_and_header():
    assert filenames.name("a/b", "mp3", default="speech") == "a b.mp3"
    assert filenames.name("../", "mp3", default="speech") == "speech.mp3"
    assert filenames.attachment('a"b.mp3') == 'attachment; filename="a\\"b.mp3"'
