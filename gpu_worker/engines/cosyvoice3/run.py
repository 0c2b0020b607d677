"""One job, spoken in a thread: attempts with other seeds, half the text at a time where memory is short."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from django.utils.translation.trans_null import gettext_noop
from numpy.typing import NDArray

from gpu_worker.engines.base import Audio, Event, Failed, Finished, Samples, SegmentJob
from gpu_worker.engines.cosyvoice3 import checks
from gpu_worker.engines.cosyvoice3.calls import Call, StoppedError, conversion_inputs, inputs_for
from gpu_worker.engines.cosyvoice3.features import VoiceFeatures
from gpu_worker.engines.cosyvoice3.prompt import Prompt
from gpu_worker.engines.cosyvoice3.upstream import TOKEN_RATE, Upstream
from gpu_worker.engines.pieces import Joiner
from synthesis.text.characters import weigh
from synthesis.text.cutting import cut_sentence

logger = logging.getLogger(__name__)

#: Seconds that upstream's thread may take to notice that its call is over: one token, and what is queued on
#: the GPU.
GRACE = 20.0
TIMED_OUT = gettext_noop("The model took too long. Try again, or with a shorter text.")
NO_MEMORY = gettext_noop("The model ran out of memory. Try again, or with a shorter text.")
STUMBLED = gettext_noop("The speech engine failed. Your characters were given back; try again.")


class EngineBrokenError(Exception):
    """This process can speak no more: its device is lost, or a thread hangs where Python cannot reach it."""


class Run:
    """A job on its way. `report` gets its events, then None, or the exception that the engine must end with."""

    def __init__(
        self,
        upstream: Upstream,
        job: SegmentJob,
        prompt: Prompt,
        features: VoiceFeatures,
        source: NDArray[np.int32] | None,
        *,
        attempts: int,
        checked: bool,
        report: Callable[[Run, Event | Exception | None], None],
        begun: Callable[[Run], None],
    ) -> None:
        self.job = job
        #: Set by the engine's watch: when the attempt in hand should be over, and when patience ends
        #: (monotonic seconds).
        self.deadline = self.patience = float("inf")
        self._upstream = upstream
        self._prompt = prompt
        self._features = features
        self._source = source
        self._attempts = attempts
        self._checked = checked
        self._report = report
        self._begun = begun
        self._call: Call | None = None
        self._reason = ""
        self._thread = threading.Thread(target=self._run, name="speak", daemon=True)

    def start(self) -> None:
        """Begin to speak."""
        self._thread.start()

    def stop(self, reason: str) -> None:
        """End soon; from any thread."""
        self._reason = self._reason or reason
        if self._call is not None:
            self._call.stop(reason)

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return bool(self._reason)

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody wants to hear any more of it."""
        return self._reason == "cancelled"

    def join(self, timeout: float) -> bool:
        """Whether the thread has ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        end: Event | Exception | None
        try:
            end = self._speak()
        except StoppedError as stopped:
            end = None if stopped.reason == "cancelled" else self._failed_by(stopped)
        except EngineBrokenError as error:
            end = error
        except Exception as error:  # noqa: BLE001 - third-party code; the engine decides what it means
            end = judged(self._upstream, self.job.key, error)
        if end is not None:
            self._report(self, end)
        self._report(self, None)

    def _speak(self) -> Event:
        fault = checks.FAULTS["empty"]
        for attempt in range(self._attempts):
            seed = nth_seed(self.job.seed, attempt)
            try:
                found, sent = self._attempt(seed)
            except StoppedError as stopped:
                if stopped.reason not in checks.FAULTS:
                    raise
                found, sent = checks.FAULTS[stopped.reason], False
            if found is None:
                return Finished(self.job.key)
            fault = found
            logger.warning("segment came out wrong: %s (attempt %d)", fault.code, attempt + 1)
            if sent:
                break
        return Failed(self.job.key, fault.code, fault.message)

    def _attempt(self, seed: int) -> tuple[checks.Fault | None, bool]:
        """What is wrong with what was said, and whether anybody has heard it."""
        if self.job.stream and self.job.speed == 1.0:
            return self._stream(seed)
        raw: Samples | None = None
        try:
            raw = self._say(self._prompt, self._source, seed)
        except Exception as error:
            if not self._upstream.runtime.is_out_of_memory(error):
                raise
            logger.warning("out of memory: trying the segment in two halves")
        if raw is None:
            # Out of the handler on purpose: the error holds on to the tensors of the frames that it passed.
            raw = self._say_halves(seed)
        fault = checks.find_fault(raw, self._upstream.sample_rate, self.job) if self._checked else None
        if fault is None:
            joiner = Joiner(self._upstream.sample_rate)
            self._report(self, Audio(self.job.key, joiner.add(raw, first=True, last=True, ends="")))
        return fault, fault is None

    def _stream(self, seed: int) -> tuple[checks.Fault | None, bool]:
        said: list[Samples] = []
        try:
            for piece in self._pieces(self._prompt, self._source, seed):
                said.append(piece)
                self._report(self, Audio(self.job.key, piece))
        except StoppedError as stopped:
            if stopped.reason in checks.FAULTS:
                return checks.FAULTS[stopped.reason], bool(said)
            raise
        if not said:
            return checks.FAULTS["empty"], False
        whole = np.concatenate(said)
        return (
            checks.find_fault(whole, self._upstream.sample_rate, self.job) if self._checked else None
        ), True

    def _say(self, prompt: Prompt, source: NDArray[np.int32] | None, seed: int) -> Samples:
        pieces = list(self._pieces(prompt, source, seed))
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)

    def _pieces(self, prompt: Prompt, source: NDArray[np.int32] | None, seed: int) -> Iterator[Samples]:
        upstream = self._upstream
        if source is None:
            inputs = inputs_for(upstream, prompt, self._features)
        else:
            inputs = conversion_inputs(upstream, source, self._features)
        call = Call(upstream, inputs, seed=seed, speed=self.job.speed, stream=self.job.stream)
        call.most_tokens = self._most_tokens()
        self._call = call
        self._begun(self)
        if self._reason:
            call.stop(self._reason)
        try:
            yield from call.pieces()
        finally:
            self._call = None
            if not call.has_ended(GRACE):
                raise EngineBrokenError("the language model does not answer")

    def _most_tokens(self) -> int:
        held = int((self._upstream.longest - self._features.seconds) * TOKEN_RATE)
        if not self._checked or self._source is not None:
            return held
        # Speed is applied to the sound that the tokens make, so they are counted at the usual pace.
        return min(held, int(checks.longest_seconds(self.job) * self.job.speed * TOKEN_RATE) + 1)

    def _say_halves(self, seed: int) -> Samples:
        """The segment in two parts, one after the other, after everything unused was given back."""
        self._upstream.runtime.release()
        parts: list[tuple[Prompt, NDArray[np.int32] | None]]
        if self._source is not None:
            parts = [(self._prompt, half) for half in np.array_split(self._source, 2)]
        else:
            text = self._prompt.text
            pieces = cut_sentence(text, max(weigh(text) * 0.6, 1.0))
            parts = [(replace(self._prompt, text=piece.text), None) for piece in pieces]
        sounds = [
            self._say(prompt, source, seed) for prompt, source in parts if source is None or len(source)
        ]
        return np.concatenate(sounds)

    def _failed_by(self, stopped: StoppedError) -> Event:
        logger.warning("segment was stopped: %s", stopped.reason)
        return Failed(self.job.key, "engine_timeout", TIMED_OUT, retryable=True)


def judged(upstream: Upstream, key: str, error: BaseException) -> Failed | EngineBrokenError:
    """What an unexpected `error` of the model means: the end of this job, or of this process."""
    runtime = upstream.runtime
    if runtime.is_out_of_memory(error):
        runtime.release()
        return Failed(key, "out_of_memory", NO_MEMORY, retryable=True)
    # Only kind and place: messages of third-party code quote the text.
    where = "".join(traceback.format_tb(error.__traceback__)[-4:])
    logger.error("segment failed: %s\n%s", type(error).__name__, where)
    if runtime.is_broken(error):
        return EngineBrokenError(f"the device is lost ({type(error).__name__})")
    return Failed(key, "engine_error", STUMBLED, retryable=True)


def nth_seed(seed: int, attempt: int) -> int:
    """The seed of the `attempt`-th try (from 0, which has `seed` itself), below 2**63."""
    return (seed + attempt * 0x9E3779B97F4A7C15) % 2**63
