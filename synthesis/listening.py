"""Hear a request while it is spoken, in the event loop of the streams process.

The sound comes in order, complete and once: from the worker's Redis stream where that has it, and from the stored
segments where it has not (Redis lost it, the listener was slow, or another worker began again).
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import soundfile
from django.conf import settings
from django.db import close_old_connections
from redis.asyncio import Redis
from redis.exceptions import RedisError

from synthesis import storage, streams, watching
from synthesis.audio.encode import Encoder, Format, Telephone
from synthesis.audio.join import Joiner, Samples
from synthesis.models import Segment, Status

Result = TypeVar("Result")

#: A quiet stream is looked at again, and the stored segments as well, after so many seconds.
_QUIET_SECONDS = 0.5
#: Entries that are taken from Redis at once: 16 s of sound.
_BATCH = 32
#: A file that was heard to its end is kept open at most so many seconds until it is stored and charged as well.
_STORED_SECONDS = 60
_NOTHING = np.zeros(0, np.float32)


class Ended(Exception):
    """The request has ended without (the rest of) its sound."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next samples, (n,) float32; `pause` in seconds when they end a segment."""

    samples: Samples
    pause: float | None = None


class _Line:
    """Joins and encodes pieces in threads. A thread may still be at work when the listener has gone."""

    def __init__(self, encoder: Encoder, rate: int) -> None:
        self._encoder = encoder
        self._joiner = Joiner(rate)
        self._lock = threading.Lock()
        self.samples = 0

    async def feed(self, piece: Piece) -> bytes:
        return await asyncio.to_thread(self.take, piece)

    def take(self, piece: Piece) -> bytes:
        with self._lock:
            data = self._write(self._joiner.write(piece.samples))
            return data if piece.pause is None else data + self._write(self._joiner.end_segment(piece.pause))

    def _write(self, samples: Samples) -> bytes:
        self.samples += len(samples)
        return self._encoder.write(samples) if len(samples) else b""

    async def end(self) -> bytes:
        return await asyncio.to_thread(self.finish)

    def finish(self) -> bytes:
        with self._lock:
            return self._write(self._joiner.close()) + self._encoder.close()

    def abandon(self) -> None:
        """Free the codec."""
        with self._lock:
            self._encoder.close()


@dataclass(slots=True)
class Sound:
    """One listener's sound of a request, made by an engine whose `rate` is given in Hz.

    `sample_rate` and `bit_rate` as in `synthesis.audio.encode.Encoder`; `seconds` grows while it is heard; `spans` are
    the start and end of each segment's sound in what `whole` returned, in seconds.
    """

    format: Format | Telephone
    rate: int
    sample_rate: int | None = None
    bit_rate: int | None = None
    title: str = ""
    artist: str = ""
    seconds: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    async def of(self, watch: watching.Watch) -> AsyncIterator[bytes]:
        """A file of unknown length, each part as soon as it can be sent. Raises Ended when the request fails or is
        canceled on the way.

        It ends when the request does, so that whoever heard it to its end finds it in the history and in the usage.
        """
        line = self._line()
        try:
            async for piece in pieces(watch):
                data = await line.feed(piece)
                self.seconds = line.samples / self.rate
                if data:
                    yield data
            if data := await line.end():
                yield data
            self.seconds = line.samples / self.rate
            await watch.until_final(_STORED_SECONDS)
        finally:
            line.abandon()

    def whole(self, request_id: UUID) -> bytes:
        """The same of a request that has succeeded, at once. Raises Ended when its sound is there no longer."""
        line = self._line()
        data, pause = bytearray(), 0.0
        try:
            for piece in _stored_pieces(request_id):
                start = line.samples / self.rate + pause
                data += line.take(piece)
                self.spans.append((start, max(start, line.samples / self.rate)))
                pause = piece.pause or 0.0
            data += line.finish()
        finally:
            line.abandon()
        self.seconds = line.samples / self.rate
        return bytes(data)

    def _line(self) -> _Line:
        encoder = Encoder(
            self.format,
            self.rate,
            sample_rate=self.sample_rate,
            bit_rate=self.bit_rate,
            title=self.title,
            artist=self.artist,
            comment="Chorus",
        )
        return _Line(encoder, self.rate)


def _stored_pieces(request_id: UUID) -> Iterator[Piece]:
    for segment in _segments(request_id):
        samples = _load(segment.id)
        if samples is None:
            raise Ended
        yield Piece(samples, segment.pause)


async def pieces(watch: watching.Watch) -> AsyncIterator[Piece]:
    """The sound of all segments of a watched request. Raises Ended."""
    segments = await _in_thread(_segments, watch.request_id)
    async with _Stream(watch.request_id) as stream:
        for index, segment in enumerate(segments):
            sent = 0
            while True:
                if watching.is_ending() and index == 0 and not sent:
                    # Nothing was heard yet: better an answer that says so than a file that breaks off.
                    raise Ended
                entry = await stream.next_of(segment.index, wait=not _is_stored(watch, index))
                if entry is not None and entry.offset <= sent:
                    if entry.samples is None:
                        yield Piece(_NOTHING, segment.pause)
                        break
                    new = entry.samples[sent - entry.offset :]
                    sent += len(new)
                    yield Piece(new)
                    continue
                # What is missing is stored as soon as the segment is complete.
                if _is_stored(watch, index):
                    whole = await _in_thread(_load, segment.id)
                    if whole is not None:
                        yield Piece(whole[sent:], segment.pause)
                        break
                if watch.state is not None and watch.state.is_final:
                    raise Ended
                if stream.is_ahead:
                    await watch.change(_QUIET_SECONDS)


def _is_stored(watch: watching.Watch, index: int) -> bool:
    """Whether the segment may be in storage: they are stored in order."""
    state = watch.state
    return state is not None and (state.segments_done > index or state.status == Status.SUCCEEDED)


class _Stream:
    """The entries of a request's Redis stream, one after the other; none while Redis is away."""

    def __init__(self, request_id: UUID) -> None:
        self._key = streams.key(request_id)
        self._position = "0"
        self._entries: deque[streams.Entry] = deque()
        self._redis = Redis.from_url(settings.REDIS_URL, socket_connect_timeout=1)

    async def __aenter__(self) -> _Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._redis.aclose()

    @property
    def is_ahead(self) -> bool:
        """Whether entries wait that are of later segments."""
        return bool(self._entries)

    async def next_of(self, segment: int, *, wait: bool) -> streams.Entry | None:
        """The next entry of `segment`; None when there is none yet, or when later ones have begun."""
        while True:
            while self._entries and self._entries[0].segment < segment:
                self._entries.popleft()
            if self._entries:
                return self._entries.popleft() if self._entries[0].segment == segment else None
            if not await self._read(wait):
                return None

    async def _read(self, wait: bool) -> bool:
        try:
            answer: Any = await self._redis.xread(
                {self._key: self._position},
                count=_BATCH,
                block=int(_QUIET_SECONDS * 1000) if wait else None,
            )
        except (RedisError, OSError):
            await asyncio.sleep(_QUIET_SECONDS)
            return False
        for _key, entries in answer:
            for identifier, fields in entries:
                self._position = identifier
                self._entries.append(streams.parse(fields))
        return bool(answer)


async def _in_thread(work: Callable[[UUID], Result], identifier: UUID) -> Result:
    """Use the database in a thread that belongs to nobody, and give the connection back."""

    def run() -> Result:
        close_old_connections()
        try:
            return work(identifier)
        finally:
            close_old_connections()

    return await asyncio.to_thread(run)


def _segments(request_id: UUID) -> list[Segment]:
    return list(Segment.objects.filter(request=request_id).defer("text"))


def _load(segment_id: UUID) -> Samples | None:
    """A stored segment's samples, (n,) float32; None when it is not stored."""
    key = Segment.objects.values_list("audio_key", flat=True).get(id=segment_id)
    if not key:
        return None
    samples, _rate = soundfile.read(io.BytesIO(storage.get(key)), dtype="float32")
    return np.asarray(samples, np.float32)
