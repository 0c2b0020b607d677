"""Subtitles of a recording, one cue a segment."""

from __future__ import annotations

from collections.abc import Iterable

from synthesis.instructions import without_tags
from synthesis.models import Output, SynthesisRequest
from synthesis.services import sounding

#: Content type of each format that there is.
CONTENT_TYPES = {"srt": "application/x-subrip", "vtt": "text/vtt"}


def of(request: SynthesisRequest, output: Output, format: str) -> str:
    """`srt` or `vtt`. Raises OutputExpired when the sound of the segments is gone."""
    return write(sounding.spans(request, output), texts(request), format)


def texts(request: SynthesisRequest) -> list[str]:
    """What is read in each segment, on one line."""
    return [" ".join(without_tags(segment.text).split()) for segment in request.segments.all()]


def write(spans: Iterable[tuple[float, float]], texts: Iterable[str], format: str) -> str:
    """`srt` or `vtt` of spans in seconds and what is said in them."""
    comma = "," if format == "srt" else "."
    cues = [
        f"{number}\n{_time(start, comma)} --> {_time(end, comma)}\n{text}\n"
        for number, ((start, end), text) in enumerate(zip(spans, texts, strict=True), 1)
    ]
    return ("" if format == "srt" else "WEBVTT\n\n") + "\n".join(cues)


def _time(seconds: float, comma: str) -> str:
    whole = round(seconds * 1000)
    minutes, milliseconds = divmod(whole, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{milliseconds // 1000:02}{comma}{milliseconds % 1000:03}"
