"""The data folder: what one installation keeps between starts, and who may use it now."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from launcher.errors import LauncherError
from launcher.files import Secrets, private_folder, read_json, write_private
from launcher.process import end_leftovers, start_time

_OURS = {"lock", "lost+found"}


class DataFolder:
    """`DIR` of `--data DIR`: databases, secrets, logs, and the lock that keeps a second start out."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.ready_file = self.path / "ready.json"
        self.bootstrap_file = self.path / "bootstrap.json"
        self.environment_file = self.run / "environment.json"
        self._children_file = self.run / "children.json"
        self._lock: int | None = None

    def open(self) -> None:
        """Make it if need be and take its lock. LauncherError: not writable, not ours, or in use."""
        try:
            self._make()
            self._take_lock()
            self.ready_file.unlink(missing_ok=True)
        except OSError as error:
            raise LauncherError(self._reason(error)) from error
        # What a killed launcher left is ending by itself; wait for that before its files are used again.
        end_leftovers(read_json(self._children_file).get("children", []))

    def close(self) -> None:
        """Give the lock back. The files stay."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def secrets(self) -> Secrets:
        """The generated secrets of this folder."""
        return Secrets(self.path / "secrets.json")

    def note_children(self, pids: list[int]) -> None:
        """Remember which processes belong to this folder, for a start after `kill -9`."""
        children = [[pid, started] for pid in pids if (started := start_time(pid)) is not None]
        write_private(self._children_file, json.dumps({"children": children}))

    def note_address(self, url: str) -> None:
        """Tell other starts (and `./chorus stop`) who holds the lock."""
        write_private(self.run / "owner.json", json.dumps(self._owner_entry() | {"url": url}))

    def owner(self) -> dict[str, Any] | None:
        """The running launcher's `pid` and `url`; None when none runs. Never takes the lock."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LauncherError(self._reason(error)) from error
        try:
            if _locked(descriptor):
                return None
            return read_json(self.run / "owner.json") or {"pid": None, "url": ""}
        finally:
            os.close(descriptor)

    def _make(self) -> None:
        existing = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        if existing and "lock" not in existing and not existing <= _OURS:
            raise LauncherError(f"{self.path} holds other files: choose an empty or a new folder with --data")
        self.path.mkdir(parents=True, exist_ok=True)
        if not existing:
            # As root, PostgreSQL runs as another user, who must be able to pass through.
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for folder in (self.logs, self.run):
            private_folder(folder)

    def _take_lock(self) -> None:
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + 1  # `owner()` of another process holds it for an instant
        while not _locked(lock):
            if time.monotonic() > deadline:
                os.close(lock)
                raise LauncherError(self._in_use())
            time.sleep(0.05)
        self._lock = lock
        write_private(self.run / "owner.json", json.dumps(self._owner_entry() | {"url": ""}))

    def _in_use(self) -> str:
        owner = read_json(self.run / "owner.json")
        where = f" at {owner['url']}" if owner.get("url") else ""
        return (
            f"Chorus already runs on {self.path}{where} (process {owner.get('pid', 'unknown')}): "
            f"stop it with ./chorus stop --data {self.path}, or choose another folder with --data"
        )

    @staticmethod
    def _owner_entry() -> dict[str, Any]:
        return {"pid": os.getpid(), "started": start_time(os.getpid())}

    def _reason(self, error: OSError) -> str:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk that holds {self.path} is full: free some space and start again"
        what = error.strerror or str(error)
        return f"{self.path} cannot be used ({what}): choose a folder that you may write to with --data"


def _locked(descriptor: int) -> bool:
    """Take the lock, unless another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop_owner(folder: DataFolder, owner: dict[str, Any], *, patience: float) -> None:
    """SIGTERM to the launcher that holds `folder`, verified by its start time; wait until it has let go."""
    pid = owner.get("pid")
    if not isinstance(pid, int) or start_time(pid) != owner.get("started"):
        raise LauncherError(f"the process that holds {folder.path} is not known: end it by hand")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    while folder.owner() is not None:
        if time.monotonic() > deadline:
            raise LauncherError(f"process {pid} still runs after {patience:.0f} s; see {folder.logs}")
        time.sleep(0.1)
