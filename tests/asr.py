"""What was said? Speech recognition for tests: whisper-base, loaded once a session (1 s), 1-3 s a clip.

`wer` and `cer` compare what was heard with what should have been said, not how it is spelled: numbers, titles and
homophones of English count as they sound, traditional Chinese as simplified, and marks not at all.
"""

from __future__ import annotations

import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import soxr
import zhconv
from numpy.typing import NDArray

from gpu_worker.engines.runtime import models_dir
from gpu_worker.engines.text.english import English
from gpu_worker.engines.text.mandarin import Mandarin
from launcher.weights import prepare_asr

_ASR_RATE = 16_000
_STRESS_AND_MARKS = re.compile(r"[^\w\s]|[ˈˌː_]")
#: Pairs of phonemes that a reader hears as one: a flapped t, reduced vowels.
_ALIKE = str.maketrans({"T": "t", "ᵊ": "ə", "ᵻ": "ə", "ɐ": "ə", "ɪ": "i", "ʌ": "ə"})


def transcribe(samples: NDArray[np.float32], rate: int, language: str) -> str:
    """The words in `samples` (samples,) float32 at `rate` Hz. `language` is a BCP 47 tag."""
    audio = soxr.resample(np.asarray(samples, np.float32), rate, _ASR_RATE)
    segments, _ = _whisper().transcribe(
        audio, language=language.split("-")[0], temperature=0.0, condition_on_previous_text=False
    )
    return " ".join(segment.text.strip() for segment in segments).strip()


def wer(reference: str, heard: str) -> float:
    """Word error rate of English by sound: 0.0 is perfect."""
    return jiwer.wer(_english_words(reference), _english_words(heard))


def cer(reference: str, heard: str) -> float:
    """Character error rate of Chinese or Japanese (with English words in it): 0.0 is perfect."""
    return jiwer.cer(_characters(reference), _characters(heard))


def _english_words(text: str) -> str:
    phonemes = _english()(text).translate(_ALIKE)
    return _STRESS_AND_MARKS.sub("", phonemes.replace("-", " "))


def _characters(text: str) -> str:
    text = _mandarin().normalise(_simplified(text).lower())
    return re.sub(r"[\W_]", "", _simplified(text))


def _simplified(text: str) -> str:
    with warnings.catch_warnings():
        # It leaves its dictionary's file open when it first reads it.
        warnings.simplefilter("ignore", ResourceWarning)
        converted: str = zhconv.convert(text, "zh-cn")
    return converted


@cache
def _english() -> English:
    return English()


@cache
def _mandarin() -> Mandarin:
    return Mandarin()


@cache
def _whisper() -> Any:
    prepare_asr(models_dir(), python=Path(sys.executable), log=print)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from faster_whisper import WhisperModel

        return WhisperModel(
            str(models_dir() / "whisper-base"), device="cpu", compute_type="int8", cpu_threads=2
        )
