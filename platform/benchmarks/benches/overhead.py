"""The same texts through everything by sixteen callers, beside the engine alone in a loop."""

from __future__ import annotations

import threading
import time

from benchmarks import bare, load, service, texts
from benchmarks.results import Aim, Line
from tests.live.stack import Stack

CALLERS = 16
MOST = 1.05


def run(quick: bool) -> list[Line]:
    """See the module. One worker. The engine speaks half of the texts before and half after, as machines drift."""
    count = 16 if quick else 64
    todo = [texts.paragraph(number, 1 if quick else 2) for number in range(count)]
    with (
        service.running(service.engine(quick)) as running,
        bare.running(running, service.engine(quick)) as alone,
    ):
        voice = service.preset(running)
        rounds: list[tuple[float, float]] = []
        for _round in range(1 if quick else 2):
            own = sum(alone.speak(text, voice).whole for text in todo[: count // 2])
            started = time.perf_counter()
            _through(running, voice.id, todo)
            ours = time.perf_counter() - started
            own += sum(alone.speak(text, voice).whole for text in todo[count // 2 :])
            rounds.append((ours, own))
    ours, own = min(rounds, key=lambda pair: pair[0] / pair[1])
    every = ", ".join(f"{mine / its:.3f}" for mine, its in rounds)
    return [
        Line(
            f"{count} texts by {CALLERS} callers",
            ours,
            "s",
            own,
            "the engine in a loop",
            Aim("ratio", most=MOST),
            note=f"the better of the rounds: {every}",
        )
    ]


def _through(running: Stack, voice: str, todo: list[str]) -> None:
    left = iter(todo)
    lock = threading.Lock()

    def work(_index: int) -> None:
        with running.client() as client:
            while True:
                with lock:
                    text = next(left, None)
                if text is None:
                    return
                client.post("/v1/audio/speech", json={"input": text, "voice": voice}).raise_for_status()

    load.at_once(CALLERS, work)
