"""A page for one user, as upstream's demo is: text in, sound out, the engine called in the page's own process.

Run by `benchmarks.benches.single_user` in an environment of its own: `gradio_page.py PORT PRESET LANGUAGE`.
"""

from __future__ import annotations

import os
import sys

import django
import gradio
import numpy as np

django.setup()

from gpu_worker.engines import load_engine  # noqa: E402 (after the settings)
from gpu_worker.engines.base import Audio, SegmentJob, VoiceSpec  # noqa: E402
from synthesis.text import segmenting  # noqa: E402

_port, _preset, _language = sys.argv[1:]
_engine = load_engine(os.environ["CHORUS_ENGINE"])
_voice = VoiceSpec(key=f"preset:{_preset}", language=_language, preset=_preset)


def speak(text: str) -> tuple[int, np.ndarray]:
    """The whole text, then the answer."""
    pieces = []
    for index, segment in enumerate(
        segmenting.split(text, language=_language, limit=_engine.capabilities.segment_characters)
    ):
        job = SegmentJob(key=str(index), text=segment.text, voice=_voice, language=_language, seed=index)
        pieces += [event.samples for event in _engine.synthesise([job]) if isinstance(event, Audio)]
    return _engine.capabilities.sample_rate, np.concatenate(pieces)


with gradio.Blocks() as page:
    _text = gradio.Textbox(label="Text")
    _sound = gradio.Audio(label="Sound")
    gradio.Button("Generate").click(speak, inputs=[_text], outputs=[_sound], api_name="speak")
page.queue(max_size=4, default_concurrency_limit=2)
page.launch(server_name="127.0.0.1", server_port=int(_port), quiet=True)
