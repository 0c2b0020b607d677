"""What a finished request sounds like: its segments in order, with the takes that were chosen."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, cast
from uuid import UUID

import soundfile

from accounts.errors import NotFound
from synthesis import storage
from synthesis.audio import encode
from synthesis.audio.join import Joiner, Samples, join
from synthesis.engines import capabilities
from synthesis.errors import OutputExpired
from synthesis.models import Output, Segment, SynthesisRequest
from synthesis.services.dispatch import Made


def sound_key(segment: Segment) -> str:
    """Where the sound of a segment is: its own, or that of the take that was chosen; empty when there is none."""
    if segment.take_id is not None:
        # A take is a request for this one segment.
        key = Segment.objects.filter(request=segment.take_id, index=0).values_list("audio_key", flat=True)
        if key and key[0]:
            return key[0]
    return segment.audio_key


def load(key: str) -> Samples:
    """(samples,) float32 of a stored segment. Raises NotFound and StorageUnavailable."""
    samples: Samples = soundfile.read(io.BytesIO(storage.get(key)), dtype="float32")[0]
    return samples


def parts(
    request: SynthesisRequest, choices: Mapping[UUID, UUID | None] | None = None
) -> Iterator[tuple[Samples, float]]:
    """Each segment's samples, (n,) float32, and the pause after it in seconds. Raises OutputExpired.

    `choices` are takes by segment, instead of those that are chosen now.
    """
    for segment in request.segments.all():
        if choices is not None:
            segment.take_id = choices[segment.id]
        key = sound_key(segment)
        if not key:
            raise OutputExpired
        yield load(key), segment.pause


def spans(request: SynthesisRequest, output: Output) -> list[tuple[float, float]]:
    """Start and end of each segment in the finished file, in seconds; worked out once and kept beside the file.

    Raises OutputExpired and StorageUnavailable.
    """
    key = f"{output.key.rpartition('/')[0]}/spans"
    try:
        kept = json.loads(storage.get(key))
    except NotFound:
        kept = list(spans_of(parts(request), capabilities(request.engine).sample_rate))
        storage.put(key, json.dumps(kept).encode(), "application/json")
    return [(float(start), float(end)) for start, end in kept]


def spans_of(sounds: Iterable[tuple[Samples, float]], rate: int) -> Iterator[tuple[float, float]]:
    """Start and end in seconds of each of `sounds` (as of `parts`, at `rate` Hz) when they are joined."""
    joiner, written, pause = Joiner(rate), 0, 0.0
    for samples, pause_after in sounds:
        start = written / rate + pause
        written += len(joiner.write(samples)) + len(joiner.end_segment(pause_after))
        yield round(start, 3), round(max(start, written / rate), 3)
        pause = pause_after


def encode_as(
    request: SynthesisRequest,
    container: str,
    target: IO[bytes],
    sounds: Iterable[tuple[Samples, float]] | None = None,
) -> encode.Encoded:
    """Write the sound of a request, `sounds` or what its segments have now, in a container. Raises OutputExpired."""
    rate = capabilities(request.engine).sample_rate
    return encode.encode_file(
        target,
        join(parts(request) if sounds is None else sounds, rate=rate),
        format=cast(encode.Format, container),
        rate=rate,
        title=request.title,
        artist=request.voice.name,
        comment="Chorus",
    )


def store(
    request: SynthesisRequest,
    sounds: Iterable[tuple[Samples, float]],
    key_of: Callable[[str], str],
    *,
    check: Callable[[], None] = lambda: None,
) -> Made:
    """Make the file of a request from `sounds` and store it under `key_of` (its ending), unless `check` raises.

    Raises OutputExpired and StorageUnavailable.
    """
    container = cast(encode.Format, request.format)  # the database knows these only
    key, content_type = key_of(encode.EXTENSIONS[container]), encode.CONTENT_TYPES[container]
    with tempfile.TemporaryFile() as file:
        encoded = encode_as(request, container, file, sounds)
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        check()
        storage.put(key, file, content_type)
    return Made(key, content_type, encoded.size, digest, encoded.seconds, encoded.rate)
