"""How the engine tests ask for speech."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_worker.engines.base import Audio, Engine, Event, Finished, Samples, SegmentJob, VoiceSpec


def job(text: str, *, preset: str, language: str, key: str = "segment", **options: Any) -> SegmentJob:
    """A segment to speak by a preset voice."""
    voice = VoiceSpec(key=f"preset:{preset}", language=language, preset=preset)
    return SegmentJob(key=key, text=text, voice=voice, language=language, **options)


def events(engine: Engine, *jobs: SegmentJob) -> list[Event]:
    """Everything that the engine says about `jobs`."""
    return list(engine.synthesise(jobs))


def sound(engine: Engine, spoken: SegmentJob) -> Samples:
    """The whole sound of one segment (samples,), which must finish."""
    happened = events(engine, spoken)
    assert happened[-1] == Finished(spoken.key), happened[-1]
    return np.concatenate([event.samples for event in happened if isinstance(event, Audio)])
