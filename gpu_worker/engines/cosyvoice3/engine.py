"""CosyVoice3 behind our engine protocol."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from gpu_worker import resident
from gpu_worker.engines.base import EngineUnavailable, Event, Failed, SegmentJob, VoiceSpec
from gpu_worker.engines.cosyvoice3 import features as voices
from gpu_worker.engines.cosyvoice3 import official, prompt
from gpu_worker.engines.cosyvoice3.features import ExtractionError, FeatureCache, UnusableAudio, VoiceFeatures
from gpu_worker.engines.cosyvoice3.run import GRACE, EngineBrokenError, Run, judged
from gpu_worker.engines.cosyvoice3.settings import Settings
from gpu_worker.engines.cosyvoice3.upstream import Upstream
from gpu_worker.engines.speaking import UNKNOWN_LANGUAGE
from synthesis.engines import ENGINES

logger = logging.getLogger(__name__)

#: Seconds for one attempt at a segment (25 s of speech) where no time-out is set: a GPU of 2018 needs 15.
TIMEOUT_GPU = 120.0
TIMEOUT_CPU = 900.0
#: How often cancellations and time-outs are looked for while nothing is heard, in seconds.
_POLL = 0.1

Loader = Callable[[Settings], Upstream]


class CosyVoice3:
    """Fun-CosyVoice3-0.5B: cloning with and without transcript, instructions, voice conversion, streaming.

    Takes as many segments at once as CHORUS_COSYVOICE_CONCURRENCY says (1 unless set), each in a thread of
    its own; the same seed gives the same samples whatever else is spoken at the time, on one machine and in
    one of the two ways (`stream` or not).
    """

    def __init__(self, settings: Settings | None = None, *, loader: Loader | None = None) -> None:
        """`settings` are read from the environment unless given; `loader` is for tests."""
        self.settings = settings or Settings.from_environment()
        self.capabilities = dataclasses.replace(ENGINES["cosyvoice3"], batch=self.settings.concurrency)
        self._loader = loader or official.load
        self._upstream: Upstream | None = None
        self._cache = FeatureCache(self.settings.cache_bytes)
        self._preparing = threading.Lock()

    def load(self) -> None:
        """Bring the model into memory (20-60 s for the real one); raises EngineUnavailable."""
        if self._upstream is not None:
            return
        self._upstream = self._loader(self.settings)
        if self.settings.vllm:
            # vLLM samples by itself, by a seed for each request, but batches what it computes.
            self.capabilities = dataclasses.replace(self.capabilities, seed=False)
        logger.info("CosyVoice3 is loaded on %s", self._upstream.runtime.device)

    @property
    def upstream(self) -> Upstream:
        """The loaded model; EngineUnavailable before `load`."""
        if self._upstream is None:
            raise EngineUnavailable("CosyVoice3 is not loaded; call load() first")
        return self._upstream

    def prepare(self, voice: VoiceSpec) -> VoiceFeatures:
        """Work out, or find, what the model knows `voice` by, so that its first request need not wait.

        Raises UnusableAudio with what is wrong with its clip.
        """
        with self._preparing:
            return voices.prepare(self.upstream, self._cache, voice)

    def free_memory(self) -> None:
        """Give unused memory back. Features of voices stay; they have a bound of their own."""
        if self._upstream is not None:
            self._upstream.runtime.release()

    def synthesise(self, jobs: Sequence[SegmentJob]) -> Iterator[Event]:
        """Speak `jobs`, several at once where allowed. Raises EngineBrokenError when this process is of no
        more use.
        """
        waiting = deque(jobs)
        active: list[Run] = []
        heard: queue.SimpleQueue[tuple[Run, Event | Exception | None]] = queue.SimpleQueue()
        try:
            while waiting or active:
                while waiting and len(active) < self.settings.concurrency:
                    begun = self._begin(waiting.popleft(), heard)
                    if isinstance(begun, Run):
                        active.append(begun)
                    elif begun is not None:
                        yield begun
                if not active:
                    continue
                self._watch(active)
                with contextlib.suppress(queue.Empty):
                    run, event = heard.get(timeout=_POLL)
                    if event is None:
                        active.remove(run)
                    elif isinstance(event, Exception):
                        raise event
                    elif not run.is_cancelled:
                        yield event
        except EngineBrokenError:
            # Waiting for threads that may hang would only keep the parent from replacing this process.
            for run in active:
                run.stop("cancelled")
            active.clear()
            raise
        finally:
            self._end(active)

    def _begin(
        self, job: SegmentJob, heard: queue.SimpleQueue[tuple[Run, Event | Exception | None]]
    ) -> Run | Failed | None:
        """Start `job`; why it cannot be spoken; or None when nobody wants it any more.

        The voice is prepared here, in the caller's thread, where the callbacks of a job may use its database
        connection.
        """
        if job.cancelled():
            return None
        upstream = self.upstream
        try:
            if job.language.partition("-")[0] not in self.capabilities.languages and job.source_audio is None:
                return Failed(job.key, "language_not_supported", UNKNOWN_LANGUAGE)
            planned = prompt.plan(job, sample=upstream.sample[1:] if upstream.sample else None)
            prepared = self.prepare(job.voice)
            source = None
            if job.source_audio is not None:
                source = voices.source_tokens(upstream, job.source_audio())
        except (prompt.RefusedError, UnusableAudio) as refusal:
            return Failed(job.key, refusal.code, refusal.message)
        except ExtractionError as error:
            verdict = judged(upstream, job.key, error.__cause__ or error)
            if isinstance(verdict, Exception):
                raise verdict from error
            return verdict
        run = Run(
            upstream,
            job,
            planned,
            prepared,
            source,
            attempts=self.settings.attempts,
            checked=self.settings.checks,
            report=lambda run, event: heard.put((run, event)),
            begun=self._has_begun,
        )
        run.start()
        return run

    def _has_begun(self, run: Run) -> None:
        """An attempt begins: its time runs from now, and the worker's parent may wait as long."""
        timeout = self.settings.timeout or (
            TIMEOUT_CPU if self.upstream.runtime.device.startswith("cpu") else TIMEOUT_GPU
        )
        now = time.monotonic()
        run.deadline, run.patience = now + timeout, now + timeout + 2 * GRACE
        with contextlib.suppress(RuntimeError):  # outside of a worker there is nobody to promise anything
            resident.expect_progress(within=timeout + 3 * GRACE)

    def _watch(self, active: list[Run]) -> None:
        now = time.monotonic()
        for run in active:
            if not run.is_stopping and run.job.cancelled():
                run.stop("cancelled")
                run.patience = now + 2 * GRACE
            elif not run.is_stopping and now > run.deadline:
                run.stop("timeout")
            if now > run.patience:
                raise EngineBrokenError("a segment cannot be ended")

    def _end(self, active: list[Run]) -> None:
        """Let nothing go on that nobody listens to. What does not end soon is noticed by the next call's
        watch.
        """
        for run in active:
            run.stop("cancelled")
        for run in active:
            if not run.join(GRACE):
                logger.error("a segment did not end")
