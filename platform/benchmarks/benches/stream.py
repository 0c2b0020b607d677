"""Until the first byte of sound through the API, beside the engine's own first piece."""

from __future__ import annotations

import time

from benchmarks import bare, load, service, texts
from benchmarks.results import Aim, Line

MOST_MS = 50


def run(quick: bool) -> list[Line]:
    """See the module. One caller; PCM, which needs no encoder's first frame."""
    count = 4 if quick else 30
    ours, engine = [], []
    with (
        service.running(service.engine(quick)) as running,
        bare.running(running, service.engine(quick)) as alone,
    ):
        voice = service.preset(running)
        with running.client() as client:
            for number in range(-2, count):
                text = texts.paragraph(number + 10, 2)
                own = alone.speak(text, voice).first
                body = {
                    "input": text,
                    "voice": voice.id,
                    "response_format": "pcm",
                    "stream_format": "audio",
                }
                started = time.perf_counter()
                with client.stream("POST", "/v1/audio/speech", json=body) as answer:
                    answer.raise_for_status()
                    for _piece in answer.iter_raw():
                        first = time.perf_counter() - started
                        break
                service.settle(running)
                if number >= 0:  # the first two warm up
                    ours.append(first * 1000)
                    engine.append(own * 1000)
    more = [mine - its for mine, its in zip(ours, engine, strict=True)]
    return [
        Line(
            "first byte, p95",
            load.percentile(ours, 95),
            "ms",
            load.percentile(engine, 95),
            "the engine's first piece",
            Aim("difference", most=MOST_MS),
            note=f"text by text: {load.percentile(more, 50):.0f} ms more at the median, "
            f"{load.percentile(more, 95):.0f} ms at p95",
        )
    ]
