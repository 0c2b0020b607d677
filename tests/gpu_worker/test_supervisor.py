"""The supervisor over stubs, and the two commands over the real thing."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from gpu_worker import naming, processes
from gpu_worker.supervisor import gpus, slot_environment
from synthesis.models import Status, SynthesisRequest, Worker
from tests import factories
from tests.gpu_worker.processes import ROOT, alive, until
from tests.gpu_worker.resident import journal

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a Python program from the repository's root; killed at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str, **environment: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *argv],
                cwd=ROOT,
                env={**os.environ, "CHORUS_TEST_JOURNAL": str(tmp_path / "journal"), **environment},
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def events(tmp_path: Path) -> Callable[[str], list[dict[str, Any]]]:
    """The stubs' events of that name so far."""
    return lambda event: journal.read(tmp_path / "journal", event)


SUPERVISE = ("-m", "tests.gpu_worker.resident.supervise")


def test_restarts_with_growing_pauses_and_leaves_the_others_alone(start: Start, events: Any) -> None:
    start(*SUPERVISE, "broken", "steady:0")
    until(lambda: len(events("started")) >= 5)
    broken = [entry["at"] for entry in events("started") if entry["slot"] == "0"]
    pauses = [later - earlier for earlier, later in itertools.pairwise(broken)]
    assert pauses[0] < 0.9  # at once, but for the stub's own start
    assert 1.0 <= pauses[1] < 1.9
    assert 2.0 <= pauses[2] < 2.9
    assert [entry["slot"] for entry in events("started")].count("1") == 1


def test_a_lost_worker_is_started_again_at_once(start: Start, events: Any) -> None:
    start(*SUPERVISE, "steady:0")
    (first,) = until(lambda: events("started"))
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: len(events("started")) == 2, 2.0)


def test_passes_sigterm_on_and_waits_for_the_job_in_hand(start: Start, events: Any) -> None:
    supervisor = start(*SUPERVISE, "steady:1", "steady:0.2")
    until(lambda: len(events("started")) == 2)
    supervisor.send_signal(signal.SIGINT)
    supervisor.send_signal(signal.SIGTERM)  # the launcher repeats what the terminal has sent
    assert supervisor.wait(5) == 0
    assert [entry["count"] for entry in events("asked")] == [1, 1]
    assert len(events("finished")) == 2
    assert len(events("started")) == 2


def test_passes_a_second_signal_on(start: Start, events: Any) -> None:
    supervisor = start(*SUPERVISE, "steady:60")
    until(lambda: events("started"))
    supervisor.send_signal(signal.SIGTERM)
    first = until(lambda: events("asked"))[0]
    until(lambda: time.monotonic() - first["at"] > 1.1)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(2) == 0


def test_no_worker_outlives_a_killed_supervisor(start: Start, events: Any) -> None:
    supervisor = start(*SUPERVISE, "steady:60")
    (worker,) = until(lambda: events("started"))
    supervisor.kill()
    until(lambda: not alive(worker["pid"]), 1.0)


def test_gpus_come_from_the_environment_or_from_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpus({"CHORUS_GPUS": "1, 3"}) == ["1", "3"]
    assert gpus({"CHORUS_GPUS": "none", "CUDA_VISIBLE_DEVICES": "0"}) == []
    assert gpus({"CUDA_VISIBLE_DEVICES": "GPU-8a,GPU-9b"}) == ["GPU-8a", "GPU-9b"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus({}) == []
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert gpus({}) == ["0", "1"]


def test_slots_share_cores_and_gpus() -> None:
    def added(slot: int, devices: list[str], **environment: str) -> dict[str, str]:
        return slot_environment(slot, count=3, devices=devices, cores=8, environment=environment)

    assert [added(slot, ["0", "1"])["CUDA_VISIBLE_DEVICES"] for slot in range(3)] == ["0", "1", "0"]
    assert added(0, [])["OMP_NUM_THREADS"] == added(0, [])["CHORUS_ENGINE_THREADS"] == "2"
    assert added(0, [])["MALLOC_ARENA_MAX"] == "2"
    # An installation without nvidia-smi may still have a GPU: nothing is hidden unless the operator says so.
    assert "CUDA_VISIBLE_DEVICES" not in added(0, [])
    assert added(0, [], CHORUS_GPUS="none")["CUDA_VISIBLE_DEVICES"] == ""
    # What the operator has chosen stays.
    chosen = added(0, [], CHORUS_ENGINE_THREADS="4", MKL_NUM_THREADS="1")
    assert chosen["OMP_NUM_THREADS"] == "4"
    assert not {"MKL_NUM_THREADS", "CHORUS_ENGINE_THREADS"} & set(chosen)


def test_names_tell_installations_apart(settings: Any) -> None:
    settings.SECRET_KEY = "one"
    first = naming.worker_name(0, "host")
    assert first == naming.worker_name(0, "host")
    assert first.startswith("host:")
    assert first.endswith(":0")
    settings.SECRET_KEY = "another"
    assert naming.worker_name(0, "host") != first


def test_a_second_worker_of_the_same_name_is_refused() -> None:
    holder = processes.hold_name(naming.worker_name(0, "test"))
    with pytest.raises(CommandError, match="already runs on this machine"):
        call_command("worker", name_prefix="test")
    holder.close()


@pytest.mark.django_db(transaction=True)
def test_the_real_workers_speak_survive_a_kill_and_finish(start: Start, tmp_path: Path) -> None:
    """The commands with the real services and a real engine: what the stubs cannot show."""
    alice = factories.owner("Alice")
    url = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    supervisor = start("-m", "gpu_worker", "--count", "2", "--name-prefix", "test", DATABASE_URL=url)
    names = [naming.worker_name(0, "test"), naming.worker_name(1, "test")]
    until(lambda: list(Worker.objects.alive().order_by("name").values_list("name", flat=True)) == names, 120)

    def status(request: SynthesisRequest) -> SynthesisRequest:
        request.refresh_from_db()
        return request

    request = factories.submit(alice, "A lazy dog sleeps while the quick fox jumps over it. " * 40)
    worker = until(lambda: status(request).status == Status.RUNNING and request.worker)
    (child,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"gpu_worker.child\0--worker\0{worker}".encode() in _content(path)
    ]
    os.kill(child, signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: status(request).attempt == 2, 10.0)
    print(f"running again after {time.monotonic() - killed:.2f} s")
    until(lambda: status(request).status == Status.SUCCEEDED, 120)
    reports = list(Worker.objects.all())
    assert {row.engine for row in reports} == {"hibari"}
    assert max(row.rss_bytes for row in reports) > 50 * 2**20
    assert {row.last_error for row in reports} == {"", "the engine's process was ended by SIGKILL"}
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(30) == 0
    assert {row.state for row in Worker.objects.all()} == {"gone"}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
