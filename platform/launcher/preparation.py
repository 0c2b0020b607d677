"""What is done before the processes start: tasks that end by themselves, several at once where they do not depend."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from launcher.errors import LauncherError
from launcher.files import private_folder, read_json, write_private
from launcher.folder import DataFolder
from launcher.process import Child
from launcher.processes import Processes

#: What a traceback's last line has before the words about a setting.
_BY_DJANGO = "django.core.exceptions.ImproperlyConfigured: "


class Preparation:
    """The tasks of one start."""

    def __init__(
        self, folder: DataFolder, *, root: Path, venv: Path, processes: Processes, say: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._root = root
        self._venv = venv
        self._processes = processes
        self._say = say
        self._after: dict[Child, Callable[[], None]] = {}
        self._told: dict[Child, int] = {}
        self._stamp = folder.run / "prepared.json"
        self.running: list[Child] = []

    def begin(self, task: Child, after: Callable[[], None] = lambda: None, *, tell: bool = False) -> Child:
        """Start a task; `after` is called once it has succeeded. `tell`: say each line that it writes."""
        if tell:
            self._told[task] = task.log.stat().st_size if task.log.exists() else 0
        self.running.append(task)  # before it runs: a signal may end us as soon as it does
        self._after[task] = after
        task.start()
        return task

    def finish(self, task: Child | None, done: str = "") -> None:
        """Wait for a task and say that it is `done`; LauncherError with its last line when it failed."""
        if task is None:
            return
        while task.running():
            self._tell()
            time.sleep(0.02)
        self.running.remove(task)
        if task.exit_code != 0:
            reason = task.last_lines(1).removeprefix("chorus: ").removeprefix(_BY_DJANGO)
            raise LauncherError(f"{task.name} failed: {reason} (see {task.log})")
        self._tell()
        self._after.pop(task)()
        if done:
            self._say(done)

    def _tell(self) -> None:
        """Say the whole lines that the told tasks have written since the last call."""
        for task, offset in self._told.items():
            with task.log.open("rb") as log:
                log.seek(offset)
                whole, newline, _rest = log.read().rpartition(b"\n")
            self._told[task] = offset + len(whole + newline)
            for line in whole.decode(errors="replace").splitlines():
                if not line.startswith("chorus: "):  # that is a failure, which `finish` tells
                    self._say(line)

    def end(self) -> None:
        """Give up: end what still runs."""
        for task in self.running:
            task.kill()

    def is_done(self) -> bool:
        """Whether the last start did all this with the same code, on the same embedded servers: then tables and
        accounts need not be looked at, which spares two starts of Django."""
        state = self._state()
        return None not in state["data"] and read_json(self._stamp) == state

    def _state(self) -> dict[str, Any]:
        engine = self._processes.environment["CHORUS_ENGINE"]
        return {"code": self._code(), "data": self._data(), "engine": engine}

    def _note_done(self) -> None:
        write_private(self._stamp, json.dumps(self._state()))

    def _code(self) -> str:
        folders = ("accounts", "synthesis", "gpu_worker", "platform/config")
        files = [path for folder in folders for path in (self._root / folder).rglob("*.py")]
        return _digest([self._root / "pyproject.toml", *sorted(files)])

    def _data(self) -> list[int | None]:
        """Which data these are; None for servers outside, whose state we cannot know, and for what is missing."""
        folder = self._folder.path
        parts = (folder / "postgres" / "data", folder / "seaweedfs" / "data", self._folder.bootstrap_file)
        outside = any(
            os.environ.get(name) for name in ("DATABASE_URL", "DATABASE_URL_FILE", "S3_ENDPOINT_URL")
        )
        return [None if outside or not part.exists() else part.stat().st_ino for part in parts]

    def settings(self) -> Child:
        """Read the settings: a wrong one is told at once, and not by processes that end again and again."""
        argv: list[str | Path] = [self._venv / "bin" / "python", "-c", "import config.settings"]
        return self.begin(self._processes.tool("settings", argv))

    def migrate(self) -> Child:
        """Bring the database to the tables of this version."""
        self._stamp.unlink(missing_ok=True)
        return self.begin(self._processes.task("migrate", "migrate", "--noinput", "-v", "1"))

    def bootstrap(self) -> Child:
        """Bucket, preset voices, demo team; its secrets go to a file of the data folder."""
        return self.begin(
            self._processes.task("bootstrap", "bootstrap", "--state", str(self._folder.bootstrap_file)),
            self._note_done,
        )

    def weights(self, names: Sequence[str], models: Path) -> Child:
        """Speech weights, checked each time; downloads the first time."""
        argv: list[str | Path] = [
            self._venv / "bin" / "python",
            "-m",
            "launcher.weights",
            *names,
            "--models-dir",
            models,
        ]
        return self.begin(self._processes.tool("weights", argv), tell=True)

    def static(self, target: Path) -> Child | None:
        """Collect the static files, if they or the packages that bring some have changed since the last time."""
        source = self._root / "templates" / "static"
        files = [self._root / "pyproject.toml", *sorted(path for path in source.rglob("*") if path.is_file())]
        state = {"digest": _digest(files), "target": str(target)}
        stamp = self._folder.run / "static.json"
        if target.is_dir() and read_json(stamp) == state:
            return None
        stamp.unlink(missing_ok=True)
        private_folder(target)
        return self.begin(
            self._processes.task("collectstatic", "collectstatic", "--noinput", "--clear", "-v", "0"),
            lambda: write_private(stamp, json.dumps(state)),
        )

    def messages(self) -> Child | None:
        """Compile the translations whose source is newer than what was compiled."""
        folder = self._root / "locale"
        sources = list(folder.glob("*/LC_MESSAGES/django.po"))
        if all(_newer(source.with_suffix(".mo"), source) for source in sources):
            return None
        argv: list[str | Path] = [self._venv / "bin" / "pybabel", "--quiet", "compile"]
        argv += ["--domain=django", f"--directory={folder}"]
        return self.begin(self._processes.tool("translations", argv))


def _digest(files: list[Path]) -> str:
    """Of the files' names and contents."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _newer(made: Path, source: Path) -> bool:
    return made.is_file() and made.stat().st_mtime >= source.stat().st_mtime
