"""What an engine is given: the words as they are, and no thousand marks."""

from __future__ import annotations

import pytest

from synthesis.text.spoken import spoken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("No!!!!!!", "No!!!"),
        ("Hi" + "!" * 3000, "Hi!!!"),
        ("等等……………", "等等………"),
        ("What?!?!?!?!?!?!?!?!?!", "What?!?!?!?!?!?!"),
        ("😀" * 50 + " fine", "😀😀😀 fine"),
        ("1000000 and aaaaah", "1000000 and aaaaah"),
        ("(He said: “Well…”)", "(He said: “Well…”)"),
        ("[breath]<strong>word</strong>", "[breath]<strong>word</strong>"),
    ],
)
def test_long_runs_are_shortened_and_words_never(text, expected):
    assert spoken(text) == expected
