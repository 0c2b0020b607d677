"""Sixteen callers at once: when the median one has its answer, beside the last one."""

from __future__ import annotations

import time

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line

CALLERS = 16
MOST = 0.6


def run(quick: bool) -> list[Line]:
    """See the module: who is first is served first, nobody waits for the whole burst."""
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)

        def work(index: int) -> float:
            body = {"input": texts.sentence(index, 4 if quick else 12), "voice": voice.id}
            with running.client() as client:
                started = time.perf_counter()
                client.post("/v1/audio/speech", json=body).raise_for_status()
                return time.perf_counter() - started

        work(99)  # everything is loaded
        taken = load.at_once(CALLERS, work)
    return [
        Line(
            f"median answer of {CALLERS} at once",
            load.percentile(taken, 50),
            "s",
            max(taken),
            "last answer",
            Aim("ratio", most=MOST),
            note=f"first answer after {min(taken):.2f} s",
        )
    ]
