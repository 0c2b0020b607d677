"""The outline of a recording, for whoever draws a waveform."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from accounts.errors import NotFound
from synthesis import storage
from synthesis.audio.join import join
from synthesis.engines import capabilities
from synthesis.models import Output, SynthesisRequest
from synthesis.services import sounding

#: One stored peak: 10 ms, of which 25 minutes have 150,000 bytes.
_WINDOW_SECONDS = 0.01


def of(request: SynthesisRequest, output: Output, count: int) -> list[float]:
    """`count` peaks (or as many as there are), each the loudest sample of its part: 0 to 1, in steps of 1/255.

    Raises OutputExpired and StorageUnavailable.
    """
    key = f"{output.key.rpartition('/')[0]}/peaks"
    try:
        fine = np.frombuffer(storage.get(key), np.uint8)
    except NotFound:
        fine = _measure(request)
        storage.put(key, fine.tobytes(), "application/octet-stream")
    parts = np.array_split(fine, min(count, len(fine)))
    return [round(int(part.max()) / 255, 3) for part in parts]


def _measure(request: SynthesisRequest) -> npt.NDArray[np.uint8]:
    rate = capabilities(request.engine).sample_rate
    window = round(rate * _WINDOW_SECONDS)
    loudest: list[npt.NDArray[np.float32]] = []
    rest = np.zeros(0, np.float32)
    for block in join(sounding.parts(request), rate=rate):
        samples = np.concatenate([rest, block])
        whole = len(samples) // window * window
        loudest.append(np.abs(samples[:whole]).reshape(-1, window).max(axis=1))
        rest = samples[whole:]
    if len(rest):
        loudest.append(np.abs(rest).max(keepdims=True))
    peaks: npt.NDArray[np.uint8] = np.rint(np.concatenate(loudest) * 255).astype(np.uint8)
    return peaks
