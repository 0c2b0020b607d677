"""What a start that does not get ready says about its workers, in the words of the real supervisor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from launcher import ready
from launcher.process import Child
from launcher.ready import why_workers_end
from tests.launcher import support

DIES = """
import sys
from gpu_worker.supervisor import Slot, Supervisor
from gpu_worker.__main__ import _JsonLines
import logging
handler = logging.StreamHandler()
handler.setFormatter(_JsonLines())
logging.basicConfig(handlers=[handler], level="INFO")
Supervisor([Slot("0", [sys.executable, "-c", sys.argv[1]], {})]).run()
"""


def _said(tmp_path: Path, script: str, times: int) -> str:
    """What is said once a worker that runs `script` has ended so often."""
    child = Child(
        "workers",
        [sys.executable, "-c", DIES, script],
        log=tmp_path / "workers.log",
        env={**os.environ, "PYTHONPATH": str(support.ROOT)},
        cwd=tmp_path,
    )
    child.log.write_text('{"message": "Worker 0 ended with status 1"}\n' * 9)  # of an earlier start
    child.start()
    try:
        support.eventually(lambda: why_workers_end(child.said(), times=times))
        return why_workers_end(child.said(), times=times)
    finally:
        child.kill()


def test_the_last_words_of_a_traceback(tmp_path: Path) -> None:
    assert _said(tmp_path, "import nothing_of_that_name", 2) == (
        "ModuleNotFoundError: No module named 'nothing_of_that_name'"
    )


def test_the_message_of_a_line_of_the_log(tmp_path: Path) -> None:
    script = (
        """import sys; sys.exit('{"level": "error", "message": "the engine cannot be loaded: no weights"}')"""
    )
    assert _said(tmp_path, script, 2) == "the engine cannot be loaded: no weights"


def test_one_end_is_no_reason_to_give_up(tmp_path: Path) -> None:
    log = b'{"message": "Worker 0 ended with status -9 after 3 s; starting it again in 0 s"}\n'
    assert why_workers_end(log, times=2) == ""


FIRST = {
    "email": "demo@chorus.local",
    "password": "one",
    "api_key": "chorus_a_b",
    "admin_email": "admin@chorus.local",
    "admin_password": "two",
}
#: Nobody listens there.
NOWHERE = "http://127.0.0.1:1"


def test_what_the_first_start_made_is_told(tmp_path: Path) -> None:
    said = ready.text(NOWHERE, FIRST, tmp_path)
    assert all(word in said for word in FIRST.values())
    assert "left out" not in said


def test_what_no_longer_works_is_left_out(tmp_path: Path) -> None:
    """The bootstrap command has taken it out of the file."""
    known = {"email": "demo@chorus.local", "password": "one"}
    assert ready.account(known) == known
    said = ready.text(NOWHERE, known, tmp_path)
    assert "demo@chorus.local   password one" in said
    assert "Operator" not in said
    assert "API key" not in said
    assert "Bearer YOUR KEY" in said
    assert "what no longer works is left out" in said
    assert "no voice yet" not in said, "that is not known without a key"


def test_a_key_that_is_not_there_is_not_refused() -> None:
    assert not ready.is_refused(NOWHERE, {})
    assert not ready.is_refused(NOWHERE, FIRST), "no answer is no refusal"
