"""Does what `trial` made say what it should, in the voice that it should? Runs where speech recognition is
installed.

    python -m gpu_worker.engines.cosyvoice3.listen DIR

Words by whisper-base (it mishears a tenth of Mandarin itself), voices by the speaker encoder that also finds
nearest presets. What is not installed is said and left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from gpu_worker.engines.runtime import models_dir
from synthesis import nearest

#: Share of wrong characters from which something is wrong with the speech rather than with the recognition.
MOST_ERRORS = 0.35
#: Cosine below which it is another voice: the same speaker has 0.9 and more, two speakers 0.15 to 0.6.
#: Emotions and other languages move it.
LEAST_ALIKE = 0.65
_WHISPER_RATE = 16_000
#: Whisper writes traditional or simplified characters as it has just read.
_SIMPLIFIED = "以下是普通话的句子。"

Transcribe = Callable[[NDArray[np.float32], int, str], str]


def listen(folder: Path, transcribe: Transcribe | None) -> int:
    """Judge the files of `folder`/trial.json, printing a line for each; how many are not as they should be."""
    entries: list[dict[str, Any]] = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
    prompt = _embedding(folder / "prompt.wav")
    wrong = 0
    for entry in entries:
        if entry["problem"]:
            continue
        remarks: list[str] = []
        fault = False
        if transcribe is not None and entry["heard"]:
            samples, rate = soundfile.read(folder / entry["file"], dtype="float32")
            errors = character_errors(entry["text"], transcribe(samples, rate, entry["language"]))
            remarks.append(f"{errors:.0%} of the characters misheard")
            fault |= errors > MOST_ERRORS
        said = _embedding(folder / entry["file"])
        if prompt is not None and said is not None:
            alike = float(prompt @ said)
            remarks.append(f"voice {alike:.2f} alike")
            fault |= alike < LEAST_ALIKE
        if remarks:
            wrong += fault
            print(f"  {'fault' if fault else 'ok':6} {entry['name']:14} {', '.join(remarks)}", flush=True)
    return wrong


def _embedding(path: Path) -> NDArray[np.float32] | None:
    samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    try:
        return nearest.embedding(samples.mean(axis=1), rate)
    except (ImportError, FileNotFoundError):
        return None


def character_errors(wanted: str, heard: str) -> float:
    """Edits between two texts as a share of `wanted`, over letters and digits alone, in lower case."""
    left, right = _letters(wanted), _letters(heard)
    previous = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            current.append(
                min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + (letter != other))
            )
        previous = current
    return previous[-1] / max(1, len(left))


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).lower()
    return "".join(character for character in folded if character.isalnum())


def whisper() -> Transcribe | None:
    """Speech recognition by whisper-base, or None where package or weights are missing."""
    folder = models_dir() / "whisper-base"
    try:
        from faster_whisper import WhisperModel
    except ImportError:
        return None
    if not (folder / "model.bin").is_file():
        return None
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", local_files_only=True)

    def transcribe(samples: NDArray[np.float32], rate: int, language: str) -> str:
        audio = soxr.resample(samples, rate, _WHISPER_RATE)
        pieces, _ = model.transcribe(
            audio, language=language, initial_prompt=_SIMPLIFIED if language == "zh" else None
        )
        return "".join(piece.text for piece in pieces)

    return transcribe


def main(arguments: list[str] | None = None) -> int:
    """The command line; 0 where everything sounds as it should."""
    parser = argparse.ArgumentParser(prog="python -m gpu_worker.engines.cosyvoice3.listen")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    transcribe = whisper()
    if transcribe is None:
        print("Speech recognition (the extra 'asr' and its weights) is not installed: words are not checked.")
    if _embedding(folder / "prompt.wav") is None:
        print("The speaker encoder (it comes with ./chorus up) is not installed: voices are not compared.")
    return 1 if listen(folder, transcribe) else 0


if __name__ == "__main__":
    sys.exit(main())
