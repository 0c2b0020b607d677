"""What the launcher's tests share: a launcher in a process of its own, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
#: Generous: other tests may be using the processors.
PATIENCE = 60.0


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of somebody who starts Chorus for the first time: none of the test session's servers."""
    ours = ("DATABASE_URL", "REDIS_URL", "S3_", "CHORUS_", "DJANGO_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | extra


def chorus(*arguments: str | Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run `./chorus` to its end."""
    return subprocess.run(
        [sys.executable, str(ROOT / "chorus"), *map(str, arguments)],
        env=clean_environment(**extra),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def python(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Run a script that imports `launcher`; it says on standard output what the test wants to know."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=clean_environment(PYTHONPATH=str(ROOT / "platform")),
        stdout=subprocess.PIPE,
        text=True,
    )


def read_line(process: subprocess.Popen[str]) -> Any:
    """The next JSON line of its output."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"it ended with {process.wait(PATIENCE)}"
    return json.loads(line)


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGKILL) -> int:
    """End it and close its output; its status."""
    if process.poll() is None:
        process.send_signal(number)
    status = process.wait(PATIENCE)
    if process.stdout:
        process.stdout.close()
    return status


def alive(pids: Iterable[int]) -> list[int]:
    """Those that run; a zombie that nobody has fetched does not."""
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            continue
    return found


def eventually(what: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
