"""`./chorus up` from the outside, with the engine that loads fastest."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from launcher.files import Secrets
from launcher.services import Services
from tests.launcher import support

#: A start on two idle cores takes about 15 s, a restart about 7 s; other tests may be running.
START_SECONDS = 240


@dataclass
class Run:
    """One `./chorus up` on a data folder, which may be started several times."""

    data: Path
    process: subprocess.Popen[str] | None = None
    pids: list[int] = field(default_factory=list)

    def start(self, *arguments: str) -> psutil.Process:
        """Start it; does not wait."""
        command = [sys.executable, str(support.ROOT / "chorus"), "up", "--engine", "hibari", "--port", "0"]
        with self.data.with_suffix(".log").open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--data", str(self.data), *arguments],
                env=support.clean_environment(),
                stdout=log,
                stderr=log,
                text=True,
            )
        return psutil.Process(self.process.pid)

    def up(self, *arguments: str) -> dict[str, str]:
        """Start it; what `ready.json` says."""
        self.start(*arguments)
        ready = self.data / "ready.json"
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            assert self.process is None or self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)
        support.eventually(lambda: "Ctrl-C stops it" in self.said())
        self.pids = [child.pid for child in self.children()]
        return json.loads(ready.read_text())

    def said(self) -> str:
        return self.data.with_suffix(".log").read_text()

    def signal(self, number: signal.Signals) -> int:
        """Send a signal; the exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(120)

    def children(self) -> list[psutil.Process]:
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def find(self, *words: str) -> list[psutil.Process]:
        found = []
        for child in self.children():
            try:
                if all(word in " ".join(child.cmdline()) for word in words):
                    found.append(child)
            except psutil.Error:
                continue
        return found


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    tmp_path.chmod(0o755)
    made = Run(tmp_path / "data")
    yield made
    if made.process and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def speak(ready: dict[str, str], text: str) -> bytes:
    answer = httpx.post(
        f"{ready['url']}/v1/audio/speech",
        json={"input": text, "voice": voice(ready), "response_format": "wav"},
        headers={"Authorization": f"Bearer {ready['api_key']}"},
        timeout=120,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return answer.content


def voice(ready: dict[str, str]) -> str:
    answer = httpx.get(
        f"{ready['url']}/v1/voices",
        headers={"Authorization": f"Bearer {ready['api_key']}"},
        trust_env=False,
    )
    return answer.json()["results"][0]["name"]


def wait_until_ready(ready: dict[str, str]) -> None:
    def answers() -> bool:
        try:
            return httpx.get(f"{ready['url']}/readyz", trust_env=False, timeout=20).status_code == 200
        except httpx.TransportError:
            return False

    support.eventually(answers, 120)


def characters_used(ready: dict[str, str]) -> int:
    answer = httpx.get(
        f"{ready['url']}/v1/quota", headers={"Authorization": f"Bearer {ready['api_key']}"}, trust_env=False
    )
    return answer.json()["characters_used"]


def test_a_fresh_folder_speaks_survives_and_stops(run, tmp_path):
    ready = run.up()

    # What it tells the person who started it.
    assert set(ready) == {"url", "email", "password", "api_key", "admin_email", "admin_password"}
    assert all(ready.values())
    assert (run.data / "ready.json").stat().st_mode & 0o777 == 0o600
    said = run.said()
    for name in ("url", "email", "password", "api_key"):
        assert ready[name] in said
    assert re.search(r"^\[ *\d+\.\d s\] PostgreSQL is up$", said, re.MULTILINE)

    # The line that it prints works when pasted.
    line = next(line for line in said.splitlines() if line.strip().startswith("curl "))
    subprocess.run(
        ["/bin/bash", "-c", line], cwd=tmp_path, check=True, timeout=120, env=support.clean_environment()
    )
    mp3 = (tmp_path / "speech.mp3").read_bytes()
    assert mp3[:3] == b"ID3" or mp3[0] == 0xFF
    assert len(mp3) > 10_000

    # The account signs in.
    with httpx.Client(base_url=ready["url"], follow_redirects=True, trust_env=False, timeout=60) as browser:
        page = browser.get("/")
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "username": ready["email"], "password": ready["password"]}
        inside = browser.post(page.url, data=form, headers={"Referer": str(page.url)})
        assert inside.status_code == 200
        assert "chorus_session" in " ".join(browser.cookies.keys())

    # Nothing but the front listens to anybody else, and everything listens on loopback.
    for process in [
        psutil.Process(run.process.pid),
        *psutil.Process(run.process.pid).children(recursive=True),
    ]:
        with contextlib.suppress(psutil.NoSuchProcess):  # some come and go
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    assert connection.laddr.ip == "127.0.0.1", process.name()

    # A second start on the folder is told so, and disturbs nothing.
    second = support.chorus("up", "--data", run.data, "--engine", "hibari")
    assert second.returncode == 1
    assert f"already runs on {run.data} at {ready['url']}" in second.stderr
    assert (run.data / "ready.json").exists()

    # manage.py sees the same database.
    manage = support.chorus("manage", "--data", run.data, "showmigrations", "--plan")
    assert manage.returncode == 0, manage.stderr
    assert "[ ]" not in manage.stdout

    # Each process comes back by itself.
    for words in (("gunicorn",), ("uvicorn",), ("caddy",), ("-m gpu_worker --",), ("valkey-server",)):
        victims = run.find(*words)
        assert victims, words
        os.kill(victims[0].pid, signal.SIGKILL)
    wait_until_ready(ready)
    assert speak(ready, "Everything came back.")

    # Killed: nothing stays behind, nothing is lost.
    used = characters_used(ready)
    assert used > 0
    run.pids = [child.pid for child in run.children()]
    assert run.signal(signal.SIGKILL) == -signal.SIGKILL
    support.eventually(lambda: not support.alive(run.pids), 10)

    again = run.up()
    assert {name: again[name] for name in again if name != "url"} == {
        name: ready[name] for name in ready if name != "url"
    }
    assert characters_used(again) == used
    assert speak(again, "Once more.")

    # A stop: the speech in hand is finished.
    headers = {"Authorization": f"Bearer {again['api_key']}"}
    long = "This is a sentence that takes a little while to be spoken aloud. " * 40
    answer = httpx.post(
        f"{again['url']}/v1/syntheses",
        json={"text": long, "voice": voice(again)},
        headers=headers,
        trust_env=False,
        timeout=60,
    )
    assert answer.status_code == 201, answer.text
    address = f"{again['url']}/v1/syntheses/{answer.json()['id']}"
    support.eventually(
        lambda: httpx.get(address, headers=headers, trust_env=False).json()["status"] != "queued"
    )
    stop = support.chorus("stop", "--data", run.data)
    assert stop.returncode == 0, stop.stderr
    assert run.process is not None
    assert run.process.wait(10) == 0
    assert not (run.data / "ready.json").exists()
    assert support.alive(run.pids) == []
    assert "Stopped; the data is kept" in run.said()
    assert status_in_database(run.data, answer.json()["id"]) == "succeeded"

    # After a restore, the first key is one that the database does not know: it is not shown, and what holds is.
    kept = run.data / "bootstrap.json"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"api_key": "chorus_AAAAAAAAAAAA_unknown"}))
    restored = run.up("--workers", "0")
    assert set(ready) - set(restored) == {"api_key"}
    assert restored["password"] == ready["password"]
    assert "what no longer works is left out" in run.said()
    assert run.signal(signal.SIGINT) == 0

    # A wrong setting is named at once, also where no worker is there to say so.
    begun = time.monotonic()
    wrong = support.chorus(
        *("up", "--data", run.data, "--engine", "hibari", "--port", "0", "--workers", "0"),
        CHORUS_EMAIL_PORT="smtp",
    )
    assert wrong.returncode == 1
    assert "CHORUS_EMAIL_PORT must be a whole number." in wrong.stderr
    assert time.monotonic() - begun < support.PATIENCE / 2


def status_in_database(data: Path, request: str) -> str:
    """Ask the servers of a folder alone."""
    services = Services(
        data,
        venv=Path(sys.prefix),
        outside={},
        secrets=Secrets(data / "secrets.json"),
        logs=data / "logs",
        durable=False,
    )
    services.start()
    try:
        with psycopg.connect(services.environment["DATABASE_URL"]) as connection:
            row = connection.execute(
                "select status from synthesis_synthesisrequest where id = %s", [request]
            ).fetchone()
    finally:
        services.stop()
    assert row is not None
    return row[0]


def test_a_stop_while_starting_leaves_nothing(run):
    launcher = run.start()
    support.eventually(lambda: "PostgreSQL is up" in run.said(), START_SECONDS)
    pids = [child.pid for child in launcher.children(recursive=True)]
    assert run.signal(signal.SIGTERM) == 130
    assert support.alive(pids) == []
    assert not (run.data / "ready.json").exists()
