"""Sound on its way from a worker to whoever listens: a Redis stream for each request that is listened to.

Redis holds the last two minutes at most, and a minute longer than the worker adds to them. What a listener misses
lies in storage by then, since each segment is stored before the next one is spoken: losing Redis costs a listener
time, not sound.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from redis.exceptions import RedisError

from accounts.redis import client
from synthesis.audio.encode import to_int16
from synthesis.audio.join import Samples
from synthesis.models import SynthesisRequest

logger = logging.getLogger(__name__)

#: Samples of one entry: half a second at 24 kHz.
_ENTRY_SAMPLES = 12_000
#: Entries that are kept, about two minutes: 6 MB.
_ENTRIES = 240
_KEEP_SECONDS = 60


def key(request_id: UUID) -> str:
    """The Redis key of a request's stream."""
    return f"speech:{request_id}"


@dataclass(frozen=True, slots=True)
class Entry:
    """Samples of a segment from `offset` on, (n,) float32; or, with `samples` None, its end at `offset`."""

    segment: int
    offset: int
    samples: Samples | None


def parse(fields: dict[bytes, bytes]) -> Entry:
    """An entry as Redis returns it."""
    data = fields.get(b"pcm")
    samples = None if data is None else np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32_768)
    return Entry(int(fields[b"segment"]), int(fields[b"offset"]), samples)


class Publisher:
    """The worker's end of one segment. Does nothing for a request that nobody listens to."""

    def __init__(self, request: SynthesisRequest, segment: int) -> None:
        self._key = key(request.id) if request.streamed else ""
        self._segment = segment
        self._offset = 0

    @property
    def was_heard(self) -> bool:
        """Whether sound was handed out that cannot be taken back."""
        return self._offset > 0

    def write(self, samples: Samples) -> None:
        """Hand out the next samples, (n,) float32 in [-1, 1]."""
        if not self._key:
            return
        for start in range(0, len(samples), _ENTRY_SAMPLES):
            piece = samples[start : start + _ENTRY_SAMPLES]
            self._add({"pcm": to_int16(piece).tobytes()})
            self._offset += len(piece)

    def end(self) -> None:
        """Say that the segment is complete and stored."""
        if self._key:
            self._add({})

    def _add(self, fields: dict[str, bytes]) -> None:
        try:
            with client().pipeline(transaction=False) as pipeline:
                entry: dict[Any, Any] = {"segment": self._segment, "offset": self._offset, **fields}
                pipeline.xadd(self._key, entry, maxlen=_ENTRIES, approximate=True)
                pipeline.expire(self._key, _KEEP_SECONDS)
                pipeline.execute()
        except RedisError:
            logger.warning("Redis does not answer: who listens gets the sound from storage")
