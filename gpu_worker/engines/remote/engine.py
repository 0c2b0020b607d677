"""The remote engine: jobs become requests to `/v1/audio/speech`, answers become pieces of sound."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import logging
import queue
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import httpx
import numpy as np
import soxr
from django.utils.translation.trans_null import gettext_noop

from gpu_worker.engines.base import Audio, EngineUnavailable, Event, Failed, Finished, Samples, SegmentJob
from gpu_worker.engines.remote.settings import Settings
from gpu_worker.engines.remote.upstreams import Upstream, Upstreams
from gpu_worker.engines.speaking import NOTHING_TO_SPEAK
from synthesis import instructions
from synthesis.engines import ENGINES
from synthesis.text.clean import is_speakable

logger = logging.getLogger(__name__)

#: How often cancellations are looked for while nothing is heard, in seconds.
_POLL = 0.1
_CONNECT_SECONDS = 5.0
#: A segment has at most a minute or two of sound; more than 10 minutes is a server gone mad.
_MOST_SECONDS = 600
#: Seconds between looks for a server that is free.
_WAIT = 0.05

AWAY = gettext_noop("No speech server answers at the moment. The request is tried again by itself.")
REFUSED = gettext_noop("The speech server did not accept this text or voice.")
BROKE_OFF = gettext_noop("The speech server broke off. The request is tried again by itself.")
SILENT = gettext_noop("The speech server made no sound for this text.")
NO_CLONING = gettext_noop("The speech server has only voices of its own; choose one of them.")
NO_CONVERSION = gettext_noop("The speech server cannot convert voices.")
NO_TRANSCRIPT = gettext_noop("This voice needs the transcript of its recording; add it to the voice.")
NO_INSTRUCTIONS = gettext_noop("The speech server does not follow instructions; leave the instruction out.")


class _TryAnotherError(Exception):
    """This server could not, another may: it is away, full or broken."""


class _FinalError(Exception):
    """The job ends in `failed`."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(code)
        self.code, self.message, self.retryable = code, message, retryable


class Remote:
    """Speech from other servers; as many segments in flight as they are said to take."""

    def __init__(self, settings: Settings | None = None) -> None:
        """`settings` are read from the environment unless given."""
        self.settings = settings or Settings.from_environment()
        self.capabilities = dataclasses.replace(
            ENGINES["remote"],
            batch=self.settings.concurrency * len(self.settings.urls),
            cloning="zero_shot" if self.settings.dialect == "vllm-omni" else "none",
            instructions=self.settings.instructions,
        )
        self._upstreams = Upstreams(self.settings.urls, concurrency=self.settings.concurrency)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread()
        self._client: httpx.AsyncClient | None = None

    def load(self) -> None:
        """Look whether a server answers; EngineUnavailable says what each of them did instead."""
        if self._loop is not None:
            return
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="remote", daemon=True)
        self._thread.start()
        headers = {"Authorization": f"Bearer {self.settings.api_key}"} if self.settings.api_key else {}
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(self.settings.timeout, connect=_CONNECT_SECONDS, pool=None),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=30),
        )
        self._loop = loop
        states = asyncio.run_coroutine_threadsafe(self.health(), loop).result()
        if not any(state == "" for state in states.values()):
            self.close()
            raise EngineUnavailable(
                "no speech server answers: " + "; ".join(f"{url}: {state}" for url, state in states.items())
            )

    async def health(self) -> dict[str, str]:
        """What is wrong with each server, by address: an empty string for one that answers and takes our key."""
        states = await asyncio.gather(*(self._state(upstream) for upstream in self._upstreams.all))
        return dict(zip(self.settings.urls, states, strict=True))

    @property
    def _connected(self) -> httpx.AsyncClient:
        if self._client is None:
            raise EngineUnavailable("the remote engine is not loaded; call load() first")
        return self._client

    async def _state(self, upstream: Upstream) -> str:
        try:
            answer = await self._connected.get(f"{upstream.url}/models", timeout=_CONNECT_SECONDS)
        except httpx.HTTPError as error:
            self._upstreams.failed(upstream)
            return str(error) or type(error).__name__
        if answer.status_code in (401, 403):
            return f"it refuses CHORUS_REMOTE_API_KEY ({answer.status_code})"
        if answer.status_code >= 500:
            self._upstreams.failed(upstream)
            return f"it answers {answer.status_code}"
        # Some servers list no models (404): they answer, and that is what was asked.
        self._upstreams.answered(upstream)
        return ""

    def close(self) -> None:
        """Close all connections and end the thread that served them."""
        if self._loop is None or self._client is None:
            return
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result(timeout=10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()
        self._loop = self._client = None

    def free_memory(self) -> None:
        """Nothing is kept here between requests."""

    def synthesise(self, jobs: Sequence[SegmentJob]) -> Iterator[Event]:
        """Speak `jobs`, several at once. A cancelled job's connection is closed, so that its server can stop."""
        if self._loop is None:
            raise EngineUnavailable("the remote engine is not loaded; call load() first")
        waiting = deque(jobs)
        active: dict[str, tuple[SegmentJob, Future[None]]] = {}
        heard: queue.SimpleQueue[tuple[str, Event | None]] = queue.SimpleQueue()
        try:
            while waiting or active:
                while waiting and len(active) < self.capabilities.batch:
                    job = waiting.popleft()
                    if job.cancelled():
                        continue
                    try:
                        body = self._body(job)
                    except _FinalError as error:
                        yield Failed(job.key, error.code, error.message, retryable=error.retryable)
                        continue
                    speaking = self._speak(job, body, heard)
                    active[job.key] = (job, asyncio.run_coroutine_threadsafe(speaking, self._loop))
                for key in [key for key, (job, _) in active.items() if job.cancelled()]:
                    active.pop(key)[1].cancel()
                with contextlib.suppress(queue.Empty):
                    key, event = heard.get(timeout=_POLL)
                    if key not in active:
                        continue  # cancelled; these were its last words
                    if event is None:
                        active.pop(key)[1].result()
                    else:
                        yield event
        finally:
            for _, future in active.values():
                future.cancel()

    def _body(self, job: SegmentJob) -> dict[str, Any]:
        """The request for `job`; _FinalError where the servers could not do what it asks."""
        settings = self.settings
        if job.source_audio is not None:
            raise _FinalError("conversion_not_supported", NO_CONVERSION)
        if not is_speakable(job.text):
            raise _FinalError("nothing_to_speak", NOTHING_TO_SPEAK)
        body: dict[str, Any] = {"input": job.text, "response_format": "pcm"}
        if settings.model:
            body["model"] = settings.model
        if job.speed != 1.0:
            body["speed"] = job.speed
        if job.instruction:
            if not settings.instructions:
                raise _FinalError("instructions_not_supported", NO_INSTRUCTIONS)
            told = job.instruction
            body["instructions"] = (
                told if settings.dialect == "chorus" else instructions.instruction_prompt(told)
            )
        if settings.dialect == "chorus":
            body |= {"language": job.language, "seed": job.seed % 2**31}
        # vLLM-Omni refuses streams at another speed; they come in one piece then.
        if job.stream and (job.speed == 1.0 or settings.dialect != "vllm-omni"):
            body["stream_format"] = "audio"
        if job.voice.preset:
            body["voice"] = job.voice.preset
        elif settings.dialect != "vllm-omni" or job.voice.prompt_audio is None:
            raise _FinalError("voice_not_available", NO_CLONING)
        elif not job.voice.transcript:
            raise _FinalError("transcript_needed", NO_TRANSCRIPT)
        else:
            clip = base64.b64encode(job.voice.prompt_audio()).decode("ascii")
            body |= {"ref_audio": f"data:audio/wav;base64,{clip}", "ref_text": job.voice.transcript}
        return body

    async def _speak(
        self, job: SegmentJob, body: dict[str, Any], heard: queue.SimpleQueue[tuple[str, Event | None]]
    ) -> None:
        """One job, at one server after the other until one can; its events go to `heard`, then None."""
        tried: list[Upstream] = []
        try:
            while True:
                upstream = self._upstreams.choose(tried)
                if upstream is None:
                    if self._upstreams.is_hopeless(tried):
                        raise _FinalError("upstream_unavailable", AWAY, retryable=True)
                    await asyncio.sleep(_WAIT)
                    continue
                tried.append(upstream)
                upstream.in_flight += 1
                said = 0
                try:
                    async for samples in self._samples(upstream, body):
                        said += len(samples)
                        heard.put((job.key, Audio(job.key, samples)))
                    if not said:
                        raise _FinalError("sound_empty", SILENT, retryable=True)
                    self._upstreams.answered(upstream)
                    heard.put((job.key, Finished(job.key)))
                    return
                except _TryAnotherError:
                    if said:
                        # Another server would begin again from the start, after what was heard already.
                        raise _FinalError("upstream_broke_off", BROKE_OFF, retryable=True) from None
                finally:
                    upstream.in_flight -= 1
        except _FinalError as error:
            heard.put((job.key, Failed(job.key, error.code, error.message, retryable=error.retryable)))
        finally:
            heard.put((job.key, None))

    async def _samples(self, upstream: Upstream, body: dict[str, Any]) -> AsyncIterator[Samples]:
        """The sound of one answer, (n,) float32 at our rate, as it arrives."""
        try:
            async with self._connected.stream("POST", f"{upstream.url}/audio/speech", json=body) as answer:
                if answer.status_code != 200:
                    await self._refused(upstream, answer)
                content_type = answer.headers.get("content-type", "")
                if content_type.startswith(("text/", "application/json")):
                    # A body that is no sound would be heard as noise.
                    raise _FinalError("upstream_refused", REFUSED)
                decode = _Pcm(_rate(content_type) or self.settings.sample_rate, self.capabilities.sample_rate)
                async for chunk in answer.aiter_bytes():
                    if len(samples := decode(chunk)):
                        yield samples
                if len(samples := decode(b"", last=True)):
                    yield samples
        except httpx.HTTPError as error:
            logger.warning("speech server %s: %s", upstream.url, type(error).__name__)
            self._upstreams.failed(upstream)
            raise _TryAnotherError from error

    async def _refused(self, upstream: Upstream, answer: httpx.Response) -> None:
        """What an answer other than 200 means: _FinalError for this job, or _TryAnotherError."""
        status = answer.status_code
        # The body may quote the text, so only the number is logged.
        logger.warning("speech server %s answered %d", upstream.url, status)
        if status in (400, 404, 409, 413, 422):
            raise _FinalError("upstream_refused", REFUSED)
        self._upstreams.failed(upstream, retry_after=_seconds(answer.headers.get("retry-after", "")))
        raise _TryAnotherError


class _Pcm:
    """Signed 16-bit samples in bytes of any division, to float32 at another rate."""

    def __init__(self, rate: int, wanted: int) -> None:
        self._rest = b""
        self._resample = None if rate == wanted else soxr.ResampleStream(rate, wanted, 1, dtype="float32")
        self._left = _MOST_SECONDS * rate

    def __call__(self, data: bytes, *, last: bool = False) -> Samples:
        data = self._rest + data
        whole = len(data) - len(data) % 2
        self._rest = data[whole:]
        samples = (np.frombuffer(data[:whole], "<i2") / np.float32(32_768)).astype(np.float32)
        self._left -= len(samples)
        if self._left < 0:
            raise _FinalError("sound_too_long", REFUSED)
        if self._resample is None:
            return samples
        return np.asarray(self._resample.resample_chunk(samples, last=last), np.float32)


def _rate(content_type: str) -> int:
    """The sample rate in Hz that a `Content-Type` such as `audio/pcm;rate=24000` names, or 0."""
    found = re.search(r"\brate=(\d{4,6})\b", content_type)
    return int(found.group(1)) if found else 0


def _seconds(retry_after: str) -> float:
    """A `Retry-After` in seconds; 0 for none, or for a date."""
    return float(retry_after) if retry_after.isdecimal() else 0.0
