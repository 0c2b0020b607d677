"""Resident memory over two thousand requests at constant load, beside that after the first hundred."""

from __future__ import annotations

import threading
import time

import psutil

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line
from tests.live.stack import Stack

CALLERS = 4
MOST = 1.02
#: What is looked at, by words of its command line.
PROCESSES = {"worker": ("gpu_worker.child",), "web": ("gunicorn",), "streams": ("uvicorn",)}


def run(quick: bool) -> list[Line]:
    """See the module. Every request is submitted, waited for and fetched; each process's mean over fifty requests."""
    total, first, window = (120, 40, 20) if quick else (2_000, 100, 50)
    with service.running("hibari") as running:
        voice = service.preset(running)
        todo = iter(range(total))
        lock = threading.Lock()
        samples: list[tuple[int, dict[str, float]]] = []
        done = 0

        def work(_index: int) -> None:
            nonlocal done
            with running.client() as client:
                while True:
                    with lock:
                        number = next(todo, None)
                    if number is None:
                        return
                    body = {"input": texts.paragraph(number, 1 + number % 3), "voice": voice.id}
                    client.post("/v1/audio/speech", json=body).raise_for_status()
                    client.get("/v1/syntheses").raise_for_status()
                    with lock:
                        done += 1
                        if done % 5 == 0:
                            samples.append((done, _memory(running)))

        started = time.monotonic()
        load.at_once(CALLERS, work)
        seconds = time.monotonic() - started
    early = [found for number, found in samples if first <= number < first + window]
    late = [found for number, found in samples if number > total - window]
    return [
        Line(
            f"{name} after {total:,} requests",
            sum(one[name] for one in late) / len(late) / 2**20,
            "MiB",
            sum(one[name] for one in early) / len(early) / 2**20,
            f"after {first}",
            Aim("ratio", most=MOST),
            note=f"{total / seconds:.1f} requests a second" if name == "worker" else "",
        )
        for name in PROCESSES
    ]


def _memory(running: Stack) -> dict[str, float]:
    """Resident bytes of each kind of process."""
    found = {}
    for name, words in PROCESSES.items():
        total = 0
        for process in running.find(*words):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        found[name] = float(total)
    return found
