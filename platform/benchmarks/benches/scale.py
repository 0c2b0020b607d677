"""The same texts by one, two and four workers of the fast engine."""

from __future__ import annotations

import os
import time

from benchmarks import load, service, texts
from benchmarks.results import Line
from tests.live import stack

WORKERS = (1, 2, 4)
SUBMITTERS = 8


def run(quick: bool) -> list[Line]:
    """See the module. All are queued before the first is looked at: workers, not callers, are measured."""
    count = 40 if quick else 600
    rates = [_rate(workers, count) for workers in WORKERS]
    cores = len(os.sched_getaffinity(0))
    return [
        Line(
            f"requests by {workers} worker{'s' if workers > 1 else ''}",
            rate,
            "/s",
            rates[0],
            "1 worker",
            note=f"{cores} cores hold workers, servers and callers" if workers == WORKERS[-1] else "",
        )
        for workers, rate in zip(WORKERS, rates, strict=True)
    ]


def _rate(workers: int, count: int) -> float:
    with service.running("hibari", workers=workers) as running:
        voice = service.preset(running)

        def work(index: int) -> None:
            with running.client() as client:
                for number in range(count // SUBMITTERS):
                    stack.submit(client, texts.paragraph(index * 1000 + number, 6), voice=voice.id)

        started = time.perf_counter()
        load.at_once(SUBMITTERS, work)
        service.settle(running, seconds=1200)
        return count / (time.perf_counter() - started)
