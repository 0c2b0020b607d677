"""What the tests of the worker's processes share."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until `condition()` is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return result


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
