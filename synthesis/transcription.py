"""A suggested transcript of a clip, by Whisper, where the `asr` extra and its weights are installed."""

from __future__ import annotations

import importlib.util
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import soxr
from django.conf import settings
from numpy.typing import NDArray

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

#: Whisper's own rate, Hz.
_RATE = 16_000
#: One clip at a time in a process: a second model call would only share the same cores.
_lock = threading.Lock()


def _folder() -> Path:
    return settings.CHORUS_MODELS_DIR / "whisper-base"


def available() -> bool:
    """Whether package and weights are there."""
    return importlib.util.find_spec("faster_whisper") is not None and (_folder() / "model.bin").is_file()


@cache
def _model() -> WhisperModel:
    from faster_whisper import WhisperModel

    return WhisperModel(str(_folder()), device="cpu", compute_type="int8", local_files_only=True)


def transcribe(samples: NDArray[np.float32], rate: int, language: str) -> str:
    """What the clip says. `samples` (n,) float32 mono at `rate` Hz; `language` a BCP 47 tag."""
    if rate != _RATE:
        samples = soxr.resample(samples, rate, _RATE)
    with _lock:
        pieces, _info = _model().transcribe(samples, language=language.split("-")[0], beam_size=5)
        return " ".join(piece.text.strip() for piece in pieces).strip()
