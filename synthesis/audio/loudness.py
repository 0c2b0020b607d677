"""Loudness by ITU-R BS.1770-4 / EBU R 128, measured by FFmpeg's own meter."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from av.audio.frame import AudioFrame
from av.filter import Graph

Samples = npt.NDArray[np.float32]

#: The meter's blocks last 0.4 s; a shorter clip has no loudness.
_SHORTEST_SECONDS = 0.4
_BLOCK_SECONDS = 10
#: What the meter reports for silence.
SILENCE_LUFS = -70.0


@dataclass(frozen=True, slots=True)
class Loudness:
    """`lufs`: integrated loudness, -70 for silence; `peak`: true peak, as a factor (1.0 is full scale)."""

    lufs: float
    peak: float


def measure_loudness(samples: Samples, rate: int) -> Loudness:
    """Measure (n,) float32 mono `samples` at `rate` Hz. A clip below 0.4 s is measured as if it were
    repeated.
    """
    if not len(samples) or not np.any(samples):
        return Loudness(SILENCE_LUFS, 0.0)
    if len(samples) < _SHORTEST_SECONDS * rate:
        samples = np.tile(samples, math.ceil(_SHORTEST_SECONDS * rate / len(samples)) + 1)
    graph = Graph()
    source = graph.add_abuffer(sample_rate=rate, format="flt", layout="mono")
    meter = graph.add("ebur128", "metadata=1:peak=true:framelog=quiet")
    sink = graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    lufs, peak = SILENCE_LUFS, 0.0
    step = rate * _BLOCK_SECONDS
    for start in range(0, len(samples), step):
        block = np.ascontiguousarray(samples[start : start + step], np.float32).reshape(1, -1)
        frame = AudioFrame.from_ndarray(block, format="flt", layout="mono")
        frame.sample_rate = rate
        frame.pts = start
        graph.push(frame)
        for measured in _drain(graph):
            lufs = float(measured.metadata["lavfi.r128.I"])
            peak = max(peak, float(measured.metadata["lavfi.r128.true_peak"]))
    return Loudness(lufs, peak)


def _drain(graph: Graph) -> Iterator[AudioFrame]:
    while True:
        try:
            frame = graph.pull()
        except (BlockingIOError, EOFError):
            return
        if isinstance(frame, AudioFrame):
            yield frame
