"""`/healthz` while every worker is busy and sixteen callers wait, beside the same when nothing is to be done."""

from __future__ import annotations

import threading
import time

import httpx

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line
from tests.live.stack import Stack

CALLERS = 16
MOST_SECONDS = 0.25


def run(quick: bool) -> list[Line]:
    """See the module."""
    seconds = 3 if quick else 20
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)
        idle = _ask(running, seconds / 4)
        stop = threading.Event()

        def work(index: int) -> list[float]:
            if index == 0:
                try:
                    time.sleep(1)  # until all of them wait
                    return _ask(running, seconds)
                finally:
                    stop.set()
            with running.client() as client:
                body = {"input": texts.paragraph(index, 12), "voice": voice.id}
                try:
                    client.post("/v1/audio/speech", json=body, timeout=seconds + 2)
                except httpx.TimeoutException:
                    return []
            return []

        busy = load.at_once(CALLERS + 1, work)[0]
    return [
        Line(
            "slowest answer while busy",
            max(busy),
            "s",
            max(idle),
            "idle",
            Aim("value", most=MOST_SECONDS),
            note=f"{len(busy)} answers, median {load.percentile(busy, 50) * 1000:.1f} ms",
        )
    ]


def _ask(running: Stack, seconds: float) -> list[float]:
    """Seconds of each answer, one every 50 ms."""
    end = time.monotonic() + seconds
    taken = []
    message = load.message(running.url, "/healthz")
    while time.monotonic() < end:
        with load.Client(running.url) as client:
            started = time.perf_counter()
            status, _body = client.ask(message)
            taken.append(time.perf_counter() - started)
        if status != 200:
            raise RuntimeError(f"/healthz answered {status}")
        time.sleep(0.05)
    return taken
