"""Dialogues as people write them: lines, tables, subtitles."""

from __future__ import annotations

from synthesis.text.dialogue import Line, read


def test_lines():
    text = "Anna: Good morning!\n\n小本：早上好。\nAnd a line that goes on.\nIt is 5.30: time to go."
    assert read(text) == [
        Line("Anna", "Good morning!"),
        Line("小本", "早上好。"),
        Line("小本", "And a line that goes on."),
        Line("小本", "It is 5.30: time to go."),
    ]


def test_nobody_is_named():
    assert read("Once upon a time.\r\nThere was a king.") == [
        Line("", "Once upon a time."),
        Line("", "There was a king."),
    ]


def test_table():
    text = (
        '\ufeffSpeaker,Text,Pause\nAnna,"Good morning, Ben: how are you?",1.5\nBen,Fine.,\n,,\nAnna,Good.,99'
    )
    assert read(text) == [
        Line("Anna", "Good morning, Ben: how are you?", 1.5),
        Line("Ben", "Fine.", None),
        Line("Anna", "Good.", 10.0),
    ]
    assert read("角色;台词\n甲;你好\n乙;再见") == [Line("甲", "你好"), Line("乙", "再见")]
    assert read("speaker\ttext\nA\tone") == [Line("A", "one")]


def test_subtitles():
    text = (
        "1\n00:00:01,000 --> 00:00:02,500\n<i>Anna: Good</i>\nmorning!\n\n"
        "2\n00:00:03,250 --> 00:00:04,000\nBen: Is it?\n\n3\n00:10:00,000 --> 00:10:01,000\nYes.\n"
    )
    assert read(text) == [
        Line("Anna", "Good morning!", 0.75),
        Line("Ben", "Is it?", 10.0),
        Line("Ben", "Yes.", 0.0),
    ]


def test_nothing():
    assert read("") == read(" \n\n") == []
    assert read("speaker,text\n") == []
