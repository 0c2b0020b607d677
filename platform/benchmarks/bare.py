"""The engine alone, in a process of its own: what everything is measured beside.

`python -m benchmarks.bare ENGINE` reads a JSON object a line (`text`, `preset`, `language`) and answers with seconds.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.service import Preset
    from gpu_worker.engines.base import Engine
    from tests.live.stack import Stack


@dataclass(frozen=True, slots=True)
class Spoken:
    """Seconds until the first piece of sound and until the last, and seconds of sound."""

    first: float
    whole: float
    sound: float


class Bare:
    """The other end of the pipe."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def speak(self, text: str, voice: Preset) -> Spoken:
        """Speak one text, cut into segments as the service cuts it."""
        writer, reader = _pipes(self._process)
        writer.write(json.dumps({"text": text, "preset": voice.preset, "language": voice.language}) + "\n")
        writer.flush()
        line = reader.readline()
        if not line:
            raise RuntimeError("the bare engine has ended")
        return Spoken(**json.loads(line))


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process without pipes")
    return process.stdin, process.stdout


@contextlib.contextmanager
def running(service: Stack, engine: str) -> Iterator[Bare]:
    """An engine that is loaded and has spoken once, with the settings of the service's own workers."""
    environment = service.environment() | {"MALLOC_ARENA_MAX": "2"}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.bare", engine],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        if _pipes(process)[1].readline().strip() != "ready":
            raise RuntimeError("the bare engine cannot be loaded")
        yield Bare(process)
    finally:
        process.kill()
        process.wait()


def _serve(name: str) -> None:
    import django

    django.setup()
    from gpu_worker.engines import load_engine

    engine = load_engine(name)
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(_speak(engine, order["text"], order["preset"], order["language"])), flush=True)


def _speak(engine: Engine, text: str, preset: str, language: str) -> dict[str, float]:
    from gpu_worker.engines.base import Audio, Failed, SegmentJob, VoiceSpec
    from synthesis.text import segmenting

    voice = VoiceSpec(key=f"preset:{preset}", language=language, preset=preset)
    started = time.perf_counter()
    first, samples = 0.0, 0
    segments = segmenting.split(text, language=language, limit=engine.capabilities.segment_characters)
    for index, segment in enumerate(segments):
        job = SegmentJob(
            key=str(index), text=segment.text, voice=voice, language=language, seed=index, stream=True
        )
        for event in engine.synthesise([job]):
            if isinstance(event, Failed):
                raise RuntimeError(f"{event.code}: {event.message}")
            if isinstance(event, Audio):
                first = first or time.perf_counter() - started
                samples += len(event.samples)
    whole = time.perf_counter() - started
    return {"first": first, "whole": whole, "sound": samples / engine.capabilities.sample_rate}


if __name__ == "__main__":
    _serve(sys.argv[1])
