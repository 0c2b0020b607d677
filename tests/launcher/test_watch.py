"""Children that end are started again, with growing pauses."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from launcher import watch
from launcher.errors import LauncherError
from launcher.process import LOG_LIMIT, Child, wait_until
from launcher.watch import Watch
from tests.launcher import support


@pytest.fixture
def said() -> list[str]:
    return []


def sleeper(folder: Path, script: str = "sleep 600") -> Child:
    return Child("sleeper", ["/bin/sh", "-c", script], log=folder / "sleeper.log")


def tick_until(watching: Watch, what) -> None:
    deadline = time.monotonic() + support.PATIENCE
    while not what():
        watching.tick()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_child_comes_back(tmp_path, said):
    noted: list[list[int]] = []
    watching = Watch(said.append, noted.append)
    child = sleeper(tmp_path)
    watching.add(child)
    first = child.pid
    try:
        os.kill(first, signal.SIGKILL)
        tick_until(watching, lambda: child.running() and child.pid != first)
        assert noted == [[first], [child.pid]]
        assert said == [f"sleeper ended with signal 9; starting it again in 0.2 s (see {child.log})"]
    finally:
        child.kill()


def test_the_pause_grows_and_shrinks_again(tmp_path, said, monkeypatch):
    monkeypatch.setattr(watch, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(watch, "WELL_AFTER", 0.2)
    flag = tmp_path / "flag"
    watching = Watch(said.append, lambda pids: None)
    child = sleeper(tmp_path, f"test -e {flag} || exit 3; sleep 600")
    watching.add(child)
    try:
        tick_until(watching, lambda: len(said) == 4)
        worst = watching.worst()
        assert worst is not None
        assert (worst.child, worst.failures) == (child, 4)
        assert said[-1].startswith("sleeper ended with status 3; starting it again in 0.1 s")
        flag.touch()
        tick_until(watching, lambda: worst.failures == 0)
    finally:
        child.kill()


def test_a_wanted_end_is_no_failure(tmp_path, said):
    watching = Watch(said.append, lambda pids: None)
    child = sleeper(tmp_path)
    watching.add(child)
    watching.forget([child])
    child.stop()
    watching.tick()
    assert (said, child.exit_code) == ([], -signal.SIGTERM)


def test_a_stop_takes_what_the_child_started_too(tmp_path):
    child = sleeper(tmp_path, "trap '' TERM; sleep 600 & echo $!; wait")
    child.stop_timeout = 0.2
    child.start()
    support.eventually(lambda: child.log.read_text().strip())
    grandchild = int(child.log.read_text())
    child.stop()
    assert child.exit_code == -signal.SIGKILL
    support.eventually(lambda: not support.alive([grandchild]), 5)


def test_a_log_is_bounded(tmp_path):
    child = sleeper(tmp_path, f"head -c {LOG_LIMIT + 1} /dev/zero; echo; sleep 0.3; echo later; sleep 600")
    child.start()
    try:
        support.eventually(lambda: child.log.stat().st_size > LOG_LIMIT)
        time.sleep(0.1)
        child.bound_log()
        support.eventually(lambda: "later" in child.log.read_text())
        assert child.log.stat().st_size < 100
        assert child.log.with_suffix(".log.1").stat().st_size > LOG_LIMIT
    finally:
        child.kill()


def test_a_missing_program_is_one_line(tmp_path):
    child = Child("web", [tmp_path / "nothing"], log=tmp_path / "log")
    with pytest.raises(LauncherError, match="web cannot be started: No such file"):
        child.start()


def test_a_child_that_ends_while_it_is_waited_for_tells_its_last_words(tmp_path):
    child = sleeper(tmp_path, "echo first; echo the reason; exit 7")
    child.start()
    with pytest.raises(LauncherError, match=r"status 7 while starting: first \| the reason"):
        wait_until(lambda: False, child, timeout=support.PATIENCE)


def test_patience_ends(tmp_path):
    child = sleeper(tmp_path)
    child.start()
    try:
        with pytest.raises(LauncherError, match="not ready after 0 s"):
            wait_until(lambda: False, child, timeout=0.1)
    finally:
        child.kill()
