"""Dialogues as people write them: lines, tables, subtitles."""

from __future__ import annotations

from synthesis.text.dialogue import Line, Problem, problems, read


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


def test_what_cannot_be_meant_is_told_by_its_line():
    assert problems("\n\nAnna: Good morning!\n\nBen：\nAnna:") == [
        Problem(5, "silent", "Ben"),
        Problem(6, "silent", "Anna"),
    ]
    assert problems("Anna:") == [Problem(1, "silent", "Anna")]
    table = 'speaker,text,pause\nAnna,"Good\nmorning",1\nBen\n,,\nBen,Fine.,x\nBen,,2\nBen,Yes.,nan'
    assert problems(table) == [
        Problem(4, "silent", "Ben"),
        Problem(6, "pause", "x"),
        Problem(7, "silent", "Ben"),
        Problem(8, "pause", "nan"),
    ]
    assert read(table) == [Line("Anna", "Good\nmorning", 1.0)]
    cue = "1\n00:00:01,000 --> 00:00:02,000\nAnna: Good!\n\n2\n00:00:03,000 --> 00:00:04,000\nBen:\n"
    assert problems(cue) == [Problem(5, "silent", "Ben")]
    assert problems("Anna: Good morning.\nAnd then:\tyes.") == problems("") == []


def test_no_names():
    assert read("Anna: Look:\nhttp://example.org is a page\n5:30 is early.\nhttps://example.org") == [
        Line("Anna", "Look:"),
        Line("Anna", "http://example.org is a page"),
        Line("Anna", "5:30 is early."),
        Line("Anna", "https://example.org"),
    ]
    assert read("1: Hello.\n2: Hello, 1.") == [Line("1", "Hello."), Line("2", "Hello, 1.")]


def test_lines_know_where_they_stand():
    assert [line.line for line in read("\n\nAnna: Good morning!\n\nBen: Good morning.\nAnd more.")] == [
        3,
        5,
        6,
    ]
    assert [line.line for line in read('role,text\nAnna,"Two\nlines"\n\nBen,Yes.')] == [2, 5]
    srt = "1\n00:00:01,000 --> 00:00:02,000\nAnna: Hello.\n\n2\n00:00:03,000 --> 00:00:04,000\nBen: Hello."
    assert [line.line for line in read(srt)] == [1, 5]
