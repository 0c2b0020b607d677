"""Children of the launcher: none is born that nobody knows of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.process import Child


class Stopped(BaseException):
    pass


@pytest.fixture
def raising() -> Iterator[None]:
    """SIGTERM raises, as it does in a launcher that is starting."""

    def handler(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, handler)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("raising")
def test_a_signal_while_a_child_is_born_finds_it_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    child = Child("child", [sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    with pytest.raises(Stopped):
        child.start()
    assert child.running()
    child.kill()
    assert not child.running()


def test_a_child_is_stopped_by_the_signals_that_its_birth_held_back(tmp_path: Path) -> None:
    child = Child("child", [sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    child.start()
    child.stop()
    assert child.exit_code == -signal.SIGTERM
