"""What a doorbell makes a worker do: claim one request from Postgres and speak it to its end."""

from __future__ import annotations

import contextlib
import io
import logging
import threading
import time
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import soundfile
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils.translation import gettext_noop

from accounts import log_context, tracing
from accounts.errors import NotFound
from gpu_worker import resident, several
from gpu_worker.engines.base import Audio, Engine, Failed, Finished, Samples, SegmentJob, VoiceSpec
from synthesis import presets, storage, streams, traces
from synthesis.audio import check, decode, prepare
from synthesis.errors import VOICE_DELETED, VOICE_TAKEN_DOWN
from synthesis.models import Segment, SynthesisRequest, Voice
from synthesis.services import dispatch, sounding
from synthesis.tally import note_claim
from synthesis.text.spoken import spoken

logger = logging.getLogger(__name__)

#: A segment that comes out wrong is spoken again with another seed, so many times in all.
SEGMENT_TRIES = 3
#: Seconds that the engine may be silent: a fixed part, and one for each character of the segment (0.5 s is fifteen
#: times what Kokoro needs on one core).
SILENCE_FIXED = 60.0
SILENCE_PER_CHARACTER = 0.5


class _Lost(Exception):
    """The request was canceled, or given to another worker: stop without writing."""


class _SegmentFailed(Exception):
    """A segment cannot be spoken."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(code)
        self.code, self.message, self.retryable = code, message, retryable


@dataclass
class _Lease:
    """Renews the hold on a request from a thread of its own, so that a long segment does not lose it."""

    request: SynthesisRequest
    lost: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> _Lease:
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        # A third of the lease would do to keep it; a cancellation should be noticed sooner.
        interval = min(1.0, settings.CHORUS_LEASE_SECONDS / 3)
        try:
            while not self._stop.wait(interval):
                try:
                    if not dispatch.renew(self.request):
                        self.lost.set()
                        return
                except DatabaseError:
                    # Postgres is away: the lease decides, when it is back, whether the request is still ours.
                    close_old_connections()
        finally:
            connection.close()

    def check(self) -> None:
        """_Lost when the request is no longer ours."""
        if self.lost.is_set():
            raise _Lost


def run_next() -> int:
    """Claim and speak one request, or as many as the engine takes at once; nothing when another worker was faster.

    How many it took: the worker counts.
    """
    engine = resident.engine()
    close_old_connections()

    def claim(limit: int) -> list[SynthesisRequest]:
        started = time.perf_counter()
        taken = dispatch.claim(
            worker=resident.worker_name(),
            engine=engine.capabilities.name,
            limit=limit,
            pool=settings.CHORUS_POOL,
        )
        note_claim(time.perf_counter() - started)
        return taken

    def work(request: SynthesisRequest) -> None:
        ids = {"synthesis": str(request.id), "team": str(request.team_id), "attempt": request.attempt}
        with log_context.bind(**ids), traces.continued(request):
            _run(request, engine)

    if engine.capabilities.batch > 1:
        return several.run(engine.capabilities.batch, claim=claim, work=work)
    taken = claim(1)
    for request in taken:
        work(request)
    return len(taken)


def _run(request: SynthesisRequest, engine: Engine) -> None:
    started = time.monotonic()
    outcome = "failed"
    seconds = 0.0
    with _Lease(request) as lease:
        try:
            seconds = _speak(request, engine, lease)
            outcome = "succeeded"
        except _Lost:
            outcome = "lost"
        except _SegmentFailed as error:
            dispatch.fail(request, code=error.code, message=error.message, retryable=error.retryable)
        except storage.StorageUnavailable as error:
            dispatch.fail(
                request,
                code="storage_unavailable",
                message=gettext_noop("The storage did not answer. The request is tried again by itself."),
                detail=repr(error.__cause__),
                retryable=True,
                outage=True,
            )
        except Exception as error:
            dispatch.fail(
                request,
                code="engine_error",
                message=gettext_noop("The speech engine failed. Your characters were given back; try again."),
                detail=repr(error),
                retryable=True,
            )
            raise
        finally:
            busy = time.monotonic() - started
            logger.info(
                "Request %s",
                outcome,
                extra={
                    "characters": request.characters,
                    "queue_seconds": round(request.queue_seconds or 0, 3),
                    "engine_seconds": round(busy, 3),
                    "audio_seconds": round(seconds, 3),
                    "real_time_factor": round(busy / seconds, 3) if seconds else None,
                },
            )
            engine.free_memory()


def _speak(request: SynthesisRequest, engine: Engine, lease: _Lease) -> float:
    """All segments, joined, encoded, stored and completed; seconds of sound."""
    if request.voice.taken_down_at is not None:
        raise _SegmentFailed("voice_taken_down", VOICE_TAKEN_DOWN, retryable=False)
    if request.voice.deleted_at is not None:
        raise _SegmentFailed("voice_deleted", VOICE_DELETED, retryable=False)
    voice = _voice_spec(request)
    segments = list(request.segments.all())
    for segment in segments:
        lease.check()
        if not segment.audio_key:
            with tracing.span("segment", index=segment.index, characters=len(segment.text)):
                _make_segment(request, segment, engine, voice, lease)
    resident.expect_progress(within=300)
    # No take is chosen of what is not finished.
    sounds = ((sounding.load(segment.audio_key), segment.pause) for segment in segments)
    made = sounding.store(request, sounds, partial(storage.output_key, request), check=lease.check)
    if not dispatch.complete(request, made):
        raise _Lost
    return made.seconds


def _voice_spec(request: SynthesisRequest) -> VoiceSpec:
    voice, version = request.voice, request.voice_version
    if voice.kind == Voice.Kind.PRESET or version is None:
        return _preset_spec(request.engine, voice)
    # Beside the recording, below the voice's own prefix: deleted with it.
    key = storage.version_key(request.team_id, version, f"features.{request.engine}")

    def features() -> bytes | None:
        try:
            return storage.get(key)
        except NotFound:
            return None

    def store_features(data: bytes) -> None:
        # Only a saving: what cannot be kept is worked out again by the next worker.
        with contextlib.suppress(storage.StorageUnavailable):
            storage.put(key, data, "application/octet-stream")

    return VoiceSpec(
        key=str(version.id),
        language=voice.language,
        preset=version.nearest.get(request.engine, ""),
        transcript=version.transcript,
        prompt_audio=lambda: storage.get(version.processed_key),
        features=features,
        store_features=store_features,
    )


def _preset_spec(engine: str, voice: Voice) -> VoiceSpec:
    """A built-in voice; on an engine that has none of its own, a recording to clone."""
    spec = VoiceSpec(key=f"preset:{voice.preset}", language=voice.language, preset=voice.preset)
    preset = presets.find(engine, voice.preset)
    if preset is None or not preset.recorded:
        return spec

    def recording() -> bytes:
        clip = decode.decode(preset.sample.read_bytes())
        return prepare.to_wav(clip.samples, clip.rate)

    return replace(spec, transcript=preset.words, prompt_audio=recording)


def _make_segment(
    request: SynthesisRequest, segment: Segment, engine: Engine, voice: VoiceSpec, lease: _Lease
) -> None:
    """Speak one segment, check it, store it, and write it down; who listens hears it while it is spoken."""
    heard = streams.Publisher(request, segment.index)
    started = time.monotonic()
    text = spoken(segment.text)
    rate = engine.capabilities.sample_rate
    length = len(text) or request.characters / request.segments_total
    resident.expect_progress(within=SILENCE_FIXED + SILENCE_PER_CHARACTER * length)
    source = _source(request, segment) if request.source_seconds else None
    problem = None
    for attempt in range(SEGMENT_TRIES):
        samples = _synthesise(
            engine,
            SegmentJob(
                key=str(segment.id),
                text=text,
                voice=voice,
                language=request.language,
                speed=request.speed,
                instruction=request.instruction,
                # Each segment has a seed of its own, which follows from the request's.
                seed=(request.seed + segment.index + attempt * 7919) % 2**31,
                cancelled=lease.lost.is_set,
                source_audio=None if source is None else lambda: source,
                stream=request.streamed,
            ),
            lease,
            heard,
        )
        if engine.capabilities.checks_itself:
            break
        problem = check.check(samples, rate, text, request.language, request.speed)
        if problem is None:
            break
        logger.warning("A segment came out wrong", extra={"segment": segment.index, "problem": problem.code})
        if heard.was_heard:
            break
    if problem is not None:
        raise _SegmentFailed(
            "segment_implausible",
            gettext_noop("The engine did not speak this text well. Reword it, or try another voice."),
            retryable=False,
        )
    data = io.BytesIO()
    soundfile.write(data, samples, rate, format="FLAC", subtype="PCM_16")
    key = storage.segment_key(request, segment.index)
    storage.put(key, data.getvalue(), "audio/flac")
    if not dispatch.save_segment(
        request,
        index=segment.index,
        audio_key=key,
        seconds=len(samples) / rate,
        engine_seconds=time.monotonic() - started,
    ):
        raise _Lost
    segment.audio_key = key
    heard.end()


def _source(request: SynthesisRequest, segment: Segment) -> bytes:
    """The piece of the recording that a conversion says in the voice: WAV."""
    try:
        return storage.get(storage.source_key(request, segment.index))
    except NotFound:
        raise _SegmentFailed(
            "source_missing",
            gettext_noop("The recording was not received in full. Send it again."),
            retryable=False,
        ) from None


def _synthesise(engine: Engine, job: SegmentJob, lease: _Lease, heard: streams.Publisher) -> Samples:
    """(samples,) float32 of one segment."""
    pieces: list[Samples] = []
    for event in engine.synthesise([job]):
        match event:
            case Audio(samples=samples):
                pieces.append(samples)
                heard.write(samples)
            case Failed(code=code, message=message, retryable=retryable):
                raise _SegmentFailed(code, message, retryable=retryable)
            case Finished():
                return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    lease.check()
    # An engine ends without `Finished` only when it was canceled, which it can hear a moment before we do.
    raise _Lost
