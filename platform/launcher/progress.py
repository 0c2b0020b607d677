"""Lines that say what happens, each with the time since the start."""

from __future__ import annotations

import sys
import time


class Progress:
    """Prints `[ 12.3 s] what happened`; a reader that went away does not matter."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print one line."""
        self.plain(f"[{time.monotonic() - self.started:5.1f} s] {line}")

    def plain(self, text: str) -> None:
        """Print `text` as it is."""
        try:
            print(text, flush=True)
        except BrokenPipeError:
            sys.stdout = None  # print() to None is silent
