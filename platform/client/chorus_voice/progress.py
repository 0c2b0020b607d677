"""One line on a terminal that tells how far it is. Nothing where standard error is no terminal."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from typing import TextIO

_WIDTH = 24


class Bar:
    """Draws over itself; `close` leaves nothing behind."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._on = not quiet and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._fraction = 0.0
        self._words = ""
        self._waiting = ""
        self._drawn = ""

    def show(self, fraction: float, words: str) -> None:
        """`fraction` from 0 to 1."""
        self._fraction, self._words = min(1.0, max(0.0, fraction)), words
        self._draw()

    def waiting(self, words: str) -> None:
        """Why nothing happens; empty when it goes on."""
        if words != self._waiting:
            self._waiting = words
            self._draw()

    def _draw(self) -> None:
        if not self._on:
            return
        done = round(self._fraction * _WIDTH)
        words = " · ".join(part for part in (self._words, self._waiting) if part)
        line = f"[{'#' * done}{'.' * (_WIDTH - done)}] {round(self._fraction * 100):3d} % {words}"
        line = _cut(line, shutil.get_terminal_size().columns - 1)
        if line != self._drawn:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
            self._drawn = line

    def say(self, words: str) -> None:
        """A line that stays, above the bar."""
        self.close()
        print(words, file=self._stream, flush=True)
        if self._words:
            self._draw()

    def close(self) -> None:
        """Wipe the line."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = ""


def _cut(line: str, columns: int) -> str:
    """As much of it as fits: Chinese characters are two columns wide."""
    width = 0
    for index, char in enumerate(line):
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > columns:
            return line[:index]
    return line


def clock(seconds: float) -> str:
    """“1:05” of 65 seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
