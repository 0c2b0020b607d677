"""Make what the catalogue of presets needs: a recording of each voice, and its speaker embedding.

    python -m gpu_worker.make_samples [--measure] [ENGINE/SLUG …]

Run it after a change of `synthesis/presets.py` or of an engine's weights, and commit what it writes:
`synthesis/samples/ENGINE/SLUG.mp3` and `synthesis/preset_embeddings.json`. `--measure` only prints pitch,
pace and loudness, from which the catalogue was filled. All 42 voices take 5 minutes on two idle cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from gpu_worker.engines import load_engine
from gpu_worker.engines.base import Audio, Engine, Failed, SegmentJob, VoiceSpec
from gpu_worker.engines.speaking import SPEECH_LUFS
from synthesis import nearest
from synthesis.audio.loudness import measure_loudness
from synthesis.presets import PRESETS, Preset

#: Longer, with all sorts of sounds, for the embedding and the measurements.
_READING = {
    "zh": "今天的天气很好，我们沿着河边走了很久，一边走一边聊，直到太阳落山才回家。你们那里呢？",
    "en": "When the sunlight strikes raindrops in the air, they act as a prism and form a rainbow. The rainbow is a "
    "division of white light into many beautiful colours.",
    "ja": "今日は天気がよかったので、川沿いをゆっくり歩きながら、日が暮れるまで友だちと話をしました。",
}
_BITS_A_SECOND = 32_000
#: Hz between which the voices of adults lie.
_LOWEST, _HIGHEST = 60.0, 450.0


def speak(engine: Engine, preset: Preset, text: str) -> NDArray[np.float32]:
    """`text` in the voice of `preset`: (samples,). Raises RuntimeError where the engine refuses it."""
    voice = VoiceSpec(key=preset.slug, language=preset.language, preset=preset.slug)
    pieces = []
    for event in engine.synthesise([SegmentJob(preset.slug, text, voice, preset.language)]):
        if isinstance(event, Failed):
            raise RuntimeError(f"{preset.slug}: {event.code}")
        if isinstance(event, Audio):
            pieces.append(event.samples)
    return np.concatenate(pieces)


def reading(preset: Preset) -> str:
    """The longer text by which `preset` is measured."""
    return _READING[preset.language.split("-")[0]]


def pitch(samples: NDArray[np.float32], rate: int) -> float:
    """The median fundamental frequency of `samples` (samples,) in Hz, by autocorrelation of frames of 40 ms."""
    frame, step = int(0.04 * rate), int(0.02 * rate)
    frames = np.lib.stride_tricks.sliding_window_view(samples, frame)[::step]
    frames = frames[np.sqrt(np.square(frames).mean(axis=1)) > 0.02] * np.hanning(frame)
    spectrum = np.abs(np.fft.rfft(frames, 2 * frame, axis=1)) ** 2
    correlation = np.fft.irfft(spectrum, axis=1)[:, :frame]
    # A window of its own falls towards long lags; dividing by it makes peaks comparable.
    window = np.fft.irfft(np.abs(np.fft.rfft(np.hanning(frame), 2 * frame)) ** 2)[:frame]
    shortest, longest = int(rate / _HIGHEST), int(rate / _LOWEST)
    similarity = (
        correlation[:, shortest:longest] / correlation[:, :1] / (window / window[0])[shortest:longest]
    )
    best = similarity.max(axis=1)
    voiced, best = similarity[best > 0.7], best[best > 0.7, None]
    # Two periods are as alike as one: the first lag that is nearly the best counts, at the top of its hill.
    first = (voiced >= 0.9 * best).argmax(axis=1)
    lags = [
        start + int(row[start : start + start // 4 + 8].argmax())
        for start, row in zip(first, voiced, strict=True)
    ]
    return float(np.median(rate / (np.array(lags) + shortest)))


def write_mp3(samples: NDArray[np.float32], rate: int, path: Path) -> None:
    """Encode (samples,) at `rate` Hz as a small MP3."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", options={"id3v2_version": "3"}) as container:
        stream = container.add_stream("libmp3lame", rate=rate, layout="mono")
        stream.bit_rate = _BITS_A_SECOND
        frame = av.AudioFrame.from_ndarray(samples[None].astype(np.float32), format="fltp", layout="mono")
        frame.sample_rate = rate
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def level(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """`samples` at the loudness of all samples, and no louder than their peak allows."""
    gain = 10 ** ((SPEECH_LUFS - measure_loudness(samples, rate).lufs) / 20)
    peak = float(np.abs(samples).max())
    return np.asarray(samples * min(gain, 0.95 / peak), np.float32)


def make(presets: Iterable[Preset], *, measure_only: bool) -> None:
    """Write samples and embeddings of `presets`, and print what was measured."""
    stored = json.loads(nearest.EMBEDDINGS.read_text("utf-8")) if nearest.EMBEDDINGS.exists() else {}
    for name, group in groupby(presets, key=lambda preset: preset.engine):
        engine = load_engine(name)
        rate = engine.capabilities.sample_rate
        for preset in group:
            read = speak(engine, preset, reading(preset))
            pace = len(reading(preset)) / (len(read) / rate)
            # As the engine makes it, before it is levelled by what the catalogue says now.
            loudness = measure_loudness(read, rate).lufs + preset.lufs - SPEECH_LUFS
            print(
                f"{name}/{preset.slug}: {pitch(read, rate):.0f} Hz, {pace:.1f} characters/s, {loudness:.1f} LUFS"
            )
            if measure_only:
                continue
            write_mp3(level(speak(engine, preset, preset.words), rate), rate, preset.sample)
            stored[f"{name}/{preset.slug}"] = [
                round(float(value), 4) for value in nearest.embedding(read, rate)
            ]
            lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(stored[key])}" for key in sorted(stored))
            nearest.EMBEDDINGS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m gpu_worker.make_samples", description=main.__doc__)
    parser.add_argument("presets", nargs="*", metavar="ENGINE/SLUG", help="default: all")
    parser.add_argument(
        "--measure", action="store_true", help="print pitch, pace and loudness, write nothing"
    )
    options = parser.parse_args()
    chosen = [p for p in PRESETS if not options.presets or f"{p.engine}/{p.slug}" in options.presets]
    make(chosen, measure_only=options.measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
