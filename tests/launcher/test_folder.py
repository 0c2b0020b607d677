"""The data folder: made, private, locked, and given back."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from launcher.errors import LauncherError
from launcher.files import Secrets
from launcher.folder import DataFolder, stop_owner
from launcher.process import start_time
from tests.launcher import support

_HOLD = """
import json, signal, sys, time
from pathlib import Path
from launcher.files import Secrets
from launcher.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
folder.open()
folder.note_address("http://127.0.0.1:4711")
print(json.dumps("open"), flush=True)
signal.pause()
"""


def test_it_is_made_with_what_is_above_it(tmp_path):
    folder = DataFolder(tmp_path / "a" / "b")
    folder.open()
    folder.close()
    assert folder.run.stat().st_mode & 0o777 == 0o700
    assert folder.logs.stat().st_mode & 0o777 == 0o700
    assert folder.path.stat().st_mode & 0o066 == 0


def test_secrets_stay_the_same_and_private(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.open()
    folder.close()
    made = folder.secrets.get("one")
    assert folder.secrets.get("one") == made
    assert folder.secrets.get("two") != made
    assert (folder.path / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_two_objects_on_one_file_keep_each_others_secrets(tmp_path):
    one, other = Secrets(tmp_path / "secrets.json"), Secrets(tmp_path / "secrets.json")
    first = one.get("first")
    second = other.get("second")
    one.get("third")
    again = Secrets(tmp_path / "secrets.json")
    assert (again.get("first"), again.get("second")) == (first, second)


def test_somebody_elses_folder_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(LauncherError, match="holds other files"):
        DataFolder(tmp_path).open()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_new_volume_is_empty_enough(tmp_path):
    (tmp_path / "lost+found").mkdir()
    folder = DataFolder(tmp_path)
    folder.open()
    folder.close()


@pytest.mark.parametrize("path", ["/proc/nowhere", "/dev/null/data"])
def test_a_place_that_cannot_be_written_is_one_line(path):
    with pytest.raises(LauncherError, match="choose a folder that you may write to"):
        DataFolder(Path(path)).open()


def test_a_second_start_is_told_who_is_there(tmp_path):
    process = support.python(_HOLD, tmp_path / "data")
    try:
        support.read_line(process)
        with pytest.raises(LauncherError, match=rf"at http://127.0.0.1:4711 \(process {process.pid}\)"):
            DataFolder(tmp_path / "data").open()
    finally:
        support.end(process)
    folder = DataFolder(tmp_path / "data")
    folder.open()
    folder.close()


def test_stop_ends_the_process_that_holds_it(tmp_path):
    folder = DataFolder(tmp_path / "data")
    assert folder.owner() is None
    process = support.python(_HOLD, folder.path)
    try:
        support.read_line(process)
        owner = folder.owner()
        assert owner is not None
        assert owner["pid"] == process.pid
        stop_owner(folder, owner, patience=support.PATIENCE)
        assert folder.owner() is None
    finally:
        assert support.end(process) == -signal.SIGTERM


def test_stop_never_signals_a_process_that_took_over_the_number(tmp_path):
    folder = DataFolder(tmp_path / "data")
    process = support.python(_HOLD, folder.path)
    try:
        support.read_line(process)
        with pytest.raises(LauncherError, match="not known"):
            stop_owner(folder, {"pid": process.pid, "started": 1}, patience=1)
        assert process.poll() is None
    finally:
        support.end(process)


def test_what_a_killed_launcher_left_is_ended_before_its_files_are_used(tmp_path, monkeypatch):
    folder = DataFolder(tmp_path / "data")
    folder.open()
    left = support.python("import signal; print(1, flush=True); signal.pause()")
    other = support.python("import signal; print(1, flush=True); signal.pause()")
    try:
        support.read_line(left)
        support.read_line(other)
        folder.note_children([left.pid])
        entry = json.loads((folder.run / "children.json").read_text())["children"]
        # The number of the other one was given to a process that began at another time.
        (folder.run / "children.json").write_text(json.dumps({"children": [*entry, [other.pid, 1]]}))
        folder.close()
        monkeypatch.setattr("launcher.process.end_leftovers.__defaults__", (0.2,))
        folder.open()
        assert support.alive([left.pid]) == []
        assert support.alive([other.pid]) == [other.pid]
    finally:
        folder.close()
        assert support.end(left) == -signal.SIGKILL
        support.end(other)


def test_a_ready_file_means_ready_now(tmp_path):
    folder = DataFolder(tmp_path / "data")
    folder.open()
    folder.close()
    folder.ready_file.write_text("{}")
    folder.open()
    folder.close()
    assert not folder.ready_file.exists()


def test_start_time_names_a_process():
    assert start_time(os.getpid()) == start_time(os.getpid()) is not None
    assert start_time(2**22 + 1) is None
