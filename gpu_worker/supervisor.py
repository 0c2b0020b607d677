"""Keeps the workers of one machine running: one process per slot, restarted when it ends, told to stop
together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType

from gpu_worker import processes

logger = logging.getLogger(__name__)

#: A worker that ran so many seconds was healthy: its end does not lengthen the pause before the next start.
HEALTHY_SECONDS = 60.0
#: The longest pause in seconds. The first restart comes at once, the next ones after 1, 2, 4, …
MAX_PAUSE_SECONDS = 60.0
#: A terminal and a launcher may both send the same signal: within so many seconds it is one.
SAME_SIGNAL_SECONDS = 1.0
_POLL_SECONDS = 0.1


@dataclass
class Slot:
    """Where one worker runs: its command and its environment."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0


def gpus(environment: Mapping[str, str]) -> list[str]:
    """The GPUs to use, as CUDA_VISIBLE_DEVICES names them: from CHORUS_GPUS ("0,1", "none"), else from
    CUDA_VISIBLE_DEVICES, else all that nvidia-smi lists. Empty for a machine that has none."""
    for name in ("CHORUS_GPUS", "CUDA_VISIBLE_DEVICES"):
        if (chosen := environment.get(name)) is not None:
            words = [word.strip() for word in chosen.split(",") if word.strip()]
            return [] if words == ["none"] else words
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return listing.stdout.split()


def slot_environment(
    slot: int, *, count: int, devices: Sequence[str], cores: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """What the worker in `slot` of `count` adds to the environment; what the operator has set is kept.

    Must be set before the process starts: CUDA, OpenMP and malloc read it once.
    """
    threads = environment.get("CHORUS_ENGINE_THREADS") or str(max(1, cores // count))
    wanted = {
        "CHORUS_ENGINE_THREADS": threads,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # onnxruntime's threads otherwise get a heap each, which only grow.
        "MALLOC_ARENA_MAX": "2",
    }
    added = {name: value for name, value in wanted.items() if not environment.get(name)}
    added["CHORUS_WORKERS"] = str(count)
    if devices:
        added["CUDA_VISIBLE_DEVICES"] = devices[slot % len(devices)]
    elif environment.get("CHORUS_GPUS") is not None:
        added["CUDA_VISIBLE_DEVICES"] = ""
    return added


class Supervisor:
    """Runs the slots until SIGTERM or SIGINT, which it passes on as SIGTERM: the workers finish the job in
    hand. A second signal is passed on too: they stop at once."""

    def __init__(
        self,
        slots: Sequence[Slot],
        *,
        healthy_seconds: float = HEALTHY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slots = slots
        self._healthy_seconds = healthy_seconds
        self._clock = clock
        self._signals = 0
        self._last_signal = 0.0

    def run(self) -> None:
        """Returns when all workers have ended after a signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        forwarded = 0
        while not self._signals or any(slot.process for slot in self._slots):
            for slot in self._slots:
                self._tend(slot)
            if self._signals > forwarded:
                forwarded = self._signals
                self._stop()
            time.sleep(_POLL_SECONDS)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        now = self._clock()
        if not self._signals or now - self._last_signal >= SAME_SIGNAL_SECONDS:
            self._signals += 1
            self._last_signal = now

    def _tend(self, slot: Slot) -> None:
        if slot.process:
            status = slot.process.poll()
            if status is not None:
                self._ended(slot, status)
        elif not self._signals and self._clock() >= slot.due:
            self._start(slot)

    def _start(self, slot: Slot) -> None:
        slot.started = self._clock()
        slot.process = subprocess.Popen(
            slot.argv,
            stdin=subprocess.DEVNULL,
            env=dict(slot.environment),
            # Ctrl-C at a terminal is for the supervisor alone.
            process_group=0,
            # In the new process before its program begins; this process has one thread, so a fork is safe.
            preexec_fn=partial(processes.die_with_parent, os.getpid()),
        )

    def _ended(self, slot: Slot, status: int) -> None:
        slot.process = None
        if self._signals:
            return
        ran = self._clock() - slot.started
        slot.failures = 0 if status == 0 or ran >= self._healthy_seconds else slot.failures + 1
        pause = 0.0 if slot.failures < 2 else min(2.0 ** (slot.failures - 2), MAX_PAUSE_SECONDS)
        slot.due = self._clock() + pause
        logger.warning(
            "Worker %s ended with status %d after %.0f s; starting it again in %.0f s",
            slot.name,
            status,
            ran,
            pause,
        )

    def _stop(self) -> None:
        for slot in self._slots:
            if slot.process and slot.process.poll() is None:
                slot.process.send_signal(signal.SIGTERM)
