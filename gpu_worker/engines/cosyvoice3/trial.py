"""Speak a sentence in every mode, for a person who has just installed CosyVoice3 (`./chorus doctor --speak`).

python -m gpu_worker.engines.cosyvoice3.trial --out DIR [--prompt WAV --transcript TEXT]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from gpu_worker.engines.base import Audio, EngineUnavailable, Failed, SegmentJob, VoiceSpec
from gpu_worker.engines.cosyvoice3.engine import CosyVoice3
from gpu_worker.engines.cosyvoice3.features import SAMPLE_PRESET, UnusableAudio

CHINESE = "收到好友从远方寄来的生日礼物，那份意外的惊喜让我心中充满了快乐。"
ENGLISH = "A gift arrived today from a friend who lives far away."
CANTONESE = "好少咯，一般系放嗰啲国庆啊，中秋嗰啲可能会咯。"


@dataclass(frozen=True)
class Case:
    """One sentence in one mode. `heard` is whether recognition may be expected to understand it."""

    name: str
    fields: dict[str, Any]
    heard: bool = True


CASES = (
    Case("zero-shot", {"text": CHINESE, "language": "zh"}),
    Case("stream", {"text": CHINESE, "language": "zh", "stream": True}),
    Case("cross-lingual", {"text": ENGLISH, "language": "en"}),
    Case("faster", {"text": CHINESE, "language": "zh", "speed": 1.5}),
    Case("cantonese", {"text": CANTONESE, "language": "zh", "instruction": "dialect-guangdong"}, heard=False),
    Case("happy", {"text": CHINESE, "language": "zh", "instruction": "happy"}),
    Case("tags", {"text": f"[breath]{CHINESE}[laughter]", "language": "zh"}, heard=False),
)


def speak(engine: CosyVoice3, voice: VoiceSpec, out: Path) -> list[dict[str, Any]]:
    """Speak all cases into WAV files in `out`; what was made, or went wrong, one entry for each. Prints a
    line each.
    """
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for case in CASES:
        entry = _one(engine, case, SegmentJob(key=case.name, voice=voice, seed=42, **case.fields), out)
        made.append(entry)
        if case.name == "cross-lingual" and not entry["problem"]:
            # What was just said in one voice, said again in the same: conversion needs a recording.
            job = SegmentJob(
                key="conversion",
                text="",
                voice=voice,
                language="en",
                seed=42,
                source_audio=(out / entry["file"]).read_bytes,
            )
            entry = _one(engine, replace(case, name="conversion"), job, out)
            made.append(entry)
    return made


def _one(engine: CosyVoice3, case: Case, job: SegmentJob, out: Path) -> dict[str, Any]:
    started = time.monotonic()
    first = 0.0
    pieces: list[Any] = []
    problem = ""
    for event in engine.synthesise([job]):
        if isinstance(event, Audio):
            first = first or time.monotonic() - started
            pieces.append(event.samples)
        elif isinstance(event, Failed):
            problem = f"{event.code}: {event.message}"
    took = time.monotonic() - started
    rate = engine.capabilities.sample_rate
    sound = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    seconds = len(sound) / rate
    file = f"{case.name}.wav"
    soundfile.write(out / file, sound, rate, subtype="PCM_16")
    if problem:
        print(f"  fault  {case.name:14} {problem}", flush=True)
    else:
        factor = took / seconds if seconds else 0.0
        print(
            f"  ok     {case.name:14} {seconds:5.1f} s of speech in {took:5.1f} s (real-time factor {factor:.2f}, "
            f"first sound after {first:.2f} s)",
            flush=True,
        )
    text = ENGLISH if case.name == "conversion" else job.text
    return {
        "name": case.name,
        "file": file,
        "text": text,
        "language": job.language,
        "heard": case.heard,
        "seconds": round(seconds, 3),
        "took": round(took, 3),
        "problem": problem,
    }


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 where every case was spoken."""
    parser = argparse.ArgumentParser(prog="python -m gpu_worker.engines.cosyvoice3.trial")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prompt", type=Path)
    parser.add_argument("--transcript", default="")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        engine = CosyVoice3()
        engine.load()
        device = engine.upstream.runtime.device
        print(f"Loaded in {time.monotonic() - started:.0f} s on {device}", flush=True)
        if options.prompt:
            clip = options.prompt.read_bytes()
            voice = VoiceSpec("prompt", "zh", transcript=options.transcript, prompt_audio=lambda: clip)
        else:
            voice = VoiceSpec("sample", "zh", preset=SAMPLE_PRESET)
            clip = engine.upstream.sample[0] if engine.upstream.sample else b""
        engine.prepare(voice)
    except (EngineUnavailable, UnusableAudio, OSError) as error:
        print(f"chorus: {error}", file=sys.stderr)
        return 1
    made = speak(engine, voice, options.out)
    (options.out / "prompt.wav").write_bytes(clip)
    (options.out / "trial.json").write_text(json.dumps(made, ensure_ascii=False, indent=2), encoding="utf-8")
    print(f"Listen to the files in {options.out}")
    return 1 if any(entry["problem"] for entry in made) else 0


if __name__ == "__main__":
    sys.exit(main())
