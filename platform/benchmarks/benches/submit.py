"""Submissions a second, beside a view that does nothing but `SELECT 1`, under the same server."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import load, service
from benchmarks.results import Aim, Line
from launcher.processes import WEB_THREADS, WEB_WORKERS
from tests.live.stack import Stack, free_port

LEAST = 0.3
ROOT = Path(__file__).resolve().parents[3]


def run(quick: bool) -> list[Line]:
    """See the module. By 1, 16 and 64 clients, each on a kept connection."""
    sizes = {1: 60, 16: 160, 64: 192} if quick else {1: 400, 16: 1600, 64: 1920}
    lines = []
    with service.running("hibari", workers=0) as running, _server(running) as url:
        voice = service.preset(running)
        body = json.dumps({"text": "A sentence to be spoken.", "voice": voice.id}).encode()
        submission = load.message(url, "/v1/syntheses", key=running.ready["api_key"], body=body)
        nothing = load.message(url, "/bench/select-1")
        for request, expect in ((submission, 201), (nothing, 200)):  # both processes have imported everything
            load.rate(url, request, clients=8, requests=64, expect=expect)
        for clients, requests in sizes.items():
            ours, taken = [], []
            theirs, beside = [], []
            for _part in range(4):  # by turns, so that what else the machine does hits both
                rate, seconds = load.rate(url, nothing, clients=clients, requests=requests // 4, expect=200)
                theirs.append(rate)
                beside += seconds
                rate, seconds = load.rate(
                    url, submission, clients=clients, requests=requests // 4, expect=201
                )
                ours.append(rate)
                taken += seconds
                service.clear_queue(running)
            who = f"{clients} client{'s' if clients > 1 else ''}"
            lines.append(
                Line(
                    f"submissions by {who}",
                    sum(ours) / len(ours),
                    "/s",
                    sum(theirs) / len(theirs),
                    "SELECT 1",
                    Aim("ratio", least=LEAST),
                )
            )
            for percent in (50, 99):
                lines.append(
                    Line(
                        f"p{percent} by {who}",
                        load.percentile(taken, percent) * 1000,
                        "ms",
                        load.percentile(beside, percent) * 1000,
                        "SELECT 1",
                    )
                )
    return lines


@contextlib.contextmanager
def _server(running: Stack) -> Iterator[str]:
    """The service's web process once more, with the view that does nothing beside its own; its address."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "benchmarks.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    argv += ["--worker-class", "gthread", "--workers", str(WEB_WORKERS), "--threads", str(WEB_THREADS)]
    argv += ["--config", "python:launcher.gunicorn_hooks", "--preload", "--no-control-socket"]
    with (running.data / "logs" / "bench.log").open("wb") as log:
        process = subprocess.Popen(
            argv, env=running.environment(), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), load.Client(url) as client:
            client.ask(load.message(url, "/healthz"))
            return
        time.sleep(0.1)
    raise RuntimeError("the web process does not start")
