"""What the command says: every sentence in Chinese too, each used, and none of it wider than the terminal."""

from __future__ import annotations

import argparse
import ast
import io
import re
from pathlib import Path

import pytest

import chorus_voice
from chorus_voice import chinese, main, progress, usage, words

FOLDER = Path(chorus_voice.__file__).parent


def _sentences():
    found = set(usage.BY)
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="_"), args=[ast.Constant(value=str(sentence))]):
                    found.add(sentence)
    return found


def test_each_has_its_chinese_and_none_is_left_over():
    of_argparse = {
        node.args[0].value
        for node in ast.walk(ast.parse(Path(argparse.__file__).read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "_"
        and isinstance(node.args[0], ast.Constant)
    }
    assert _sentences() - set(chinese.CHINESE) == set()
    left = set(chinese.CHINESE) - _sentences() - of_argparse
    # argparse's words differ a little from one Python to the next.
    assert all(re.match(r"usage|options|argument|invalid|ambiguous|ignored", one) for one in left), left


def test_placeholders_are_the_same():
    for english, translated in chinese.CHINESE.items():
        assert sorted(re.findall(r"\{\w*\}|%\(\w+\)[sr]|%[sr]", english)) == sorted(
            re.findall(r"\{\w*\}|%\(\w+\)[sr]|%[sr]", translated)
        ), english
        assert re.search("[\u4e00-\u9fff]", translated) or english == "usage: ", english


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "CHORUS_LANG": "zh"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_which_language(monkeypatch, variables, language):
    for name in ("CHORUS_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert words.language() == language


class _Terminal(io.StringIO):
    def isatty(self):
        return True


class TestBar:
    def test_it_draws_over_itself_and_leaves_nothing(self, monkeypatch):
        monkeypatch.setenv("COLUMNS", "40")
        monkeypatch.delenv("TERM", raising=False)
        terminal = _Terminal()
        bar = progress.Bar(stream=terminal)
        bar.show(0.5, "正在等待正在等待正在等待正在等待")
        line = terminal.getvalue().removeprefix("\r\x1b[K")
        assert line.startswith("[############............]  50 % 正在")
        assert progress._cut(line, 39) == line
        bar.close()
        assert terminal.getvalue().endswith("\r\x1b[K")

    def test_nothing_where_nobody_looks(self):
        quiet, pipe = _Terminal(), io.StringIO()
        progress.Bar(quiet=True, stream=quiet).show(0.5, "x")
        progress.Bar(stream=pipe).show(0.5, "x")
        assert (quiet.getvalue(), pipe.getvalue()) == ("", "")

    @pytest.mark.parametrize(("seconds", "shown"), [(0.4, "0:00"), (65, "1:05"), (3_725, "1:02:05")])
    def test_clock(self, seconds, shown):
        assert progress.clock(seconds) == shown


def test_the_launcher_knows_the_same_commands():
    from launcher.main import _CALLERS

    assert _CALLERS == main.COMMANDS
