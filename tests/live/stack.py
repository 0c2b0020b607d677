"""The whole service as `./chorus up` starts it, for tests that use it from outside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import psutil

from launcher.process import die_with_parent

ROOT = Path(__file__).resolve().parents[2]
#: A fresh data folder is ready in about 15 s on two cores; a loaded machine takes longer.
READY_SECONDS = 180
FINAL = {"succeeded", "failed", "canceled"}


def free_port() -> int:
    """A port that nobody listens on right now, low enough that SeaweedFS's port + 10000 exists."""
    for _i in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 55_000:
            return port
    raise RuntimeError("no free port")


@dataclass
class Stack:
    """A running `./chorus up`."""

    process: subprocess.Popen[bytes]
    data: Path
    ready: dict[str, str]

    @property
    def url(self) -> str:
        return self.ready["url"]

    @cached_property
    def voice(self) -> str:
        """Any voice: the first in the list."""
        with self.client() as client:
            return str(client.get("/v1/voices").json()["results"][0]["id"])

    def client(self, key: str | None = None) -> httpx.Client:
        """A client with the demo team's key (or another); long time-outs, since held requests wait."""
        return httpx.Client(
            base_url=self.url,
            headers={"authorization": f"Bearer {key or self.ready['api_key']}"},
            timeout=300,
        )

    def environment(self) -> dict[str, str]:
        """What the service's own processes see."""
        return json.loads((self.data / "run" / "environment.json").read_text())

    def find(self, *words: str) -> list[psutil.Process]:
        """The service's processes whose command line contains all `words`."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                line = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if all(word in line for word in words):
                found.append(process)
        return found

    def manage(self, script: str) -> str:
        """Run Python in the service's Django; what it prints."""
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", script],
            env=self.environment(),
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    def stop(self) -> int:
        """Ctrl-C, and the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)


def start(data: Path, engine: str, *, workers: int = 1) -> Stack:
    """`./chorus up` on a free port; returns when `ready.json` is there."""
    ours = ("DATABASE_URL", "REDIS_URL", "S3_", "CHORUS_", "DJANGO_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    data.mkdir(parents=True, exist_ok=True)
    with (data.parent / f"{data.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, str(ROOT / "chorus"), "up", "--data", str(data), "--engine", engine),
                *("--port", str(free_port()), "--workers", str(workers)),
            ],
            env=environment,
            # Whoever started it may be killed before it can stop it.
            preexec_fn=die_with_parent(signal.SIGTERM),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _until_ready(process, data)
    except BaseException:  # also when we are told to stop meanwhile
        process.terminate()
        process.wait(120)
        raise
    return Stack(process, data, json.loads((data / "ready.json").read_text()))


def _until_ready(process: subprocess.Popen[bytes], data: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while not (data / "ready.json").is_file():
        if process.poll() is not None or time.monotonic() > end:
            log = (data.parent / f"{data.name}.log").read_text()
            raise RuntimeError(f"chorus up did not get ready:\n{log}")
        time.sleep(0.1)


def submit(client: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    """A queued request, as the API returns it."""
    answer = client.post("/v1/syntheses", json={"text": text} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def wait(client: httpx.Client, identifier: str, *, seconds: float = 300) -> dict[str, Any]:
    """The request once it has ended."""
    end = time.monotonic() + seconds
    pause = 0.1
    while time.monotonic() < end:
        answer = client.get(f"/v1/syntheses/{identifier}")
        assert answer.status_code == 200, answer.text
        if answer.json()["status"] in FINAL:
            return answer.json()
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)  # sixteen who ask all the time would take a core from whoever speaks
    raise AssertionError(f"{identifier} did not end: {answer.json()}")


def in_threads(count: int, work: Any) -> None:
    """Run `work(index)` in `count` threads at once; the first error is raised here."""
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
