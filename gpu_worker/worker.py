"""The resident worker: an RQ worker whose child keeps the engine in memory from one job to the next.

RQ's own worker forks for every job, which breaks CUDA and loads the model again each time. Here the parent
keeps all of RQ's bookkeeping, never imports the engine, and hands tasks to one child (`gpu_worker.child`).
During a job it waits for the child alone; what it reports to Valkey and Postgres is reported by threads, so
that neither delays the moment in which a dead child is noticed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import FrameType
from typing import Any, NoReturn

from rq import Queue
from rq.exceptions import DeserializationError, StopRequested
from rq.job import Job
from rq.utils import now
from rq.worker.base import WorkerStatus

from gpu_worker import gpu_load
from gpu_worker.engine_process import ChildLost, EngineProcess, Watch
from gpu_worker.messages import NotReady, Outcome, Ready, Task
from gpu_worker.patient import PatientWorker
from gpu_worker.ticker import Ticker

logger = logging.getLogger(__name__)

#: Seconds within which a second signal is the first one again: a terminal and a supervisor may both send it.
SAME_SIGNAL_SECONDS = 1.0
#: The longest pause in seconds before the next child when one after the other was lost without finishing a
#: job.
MAX_PAUSE_SECONDS = 30.0
#: After so many losses in a row, a loss while loading is left to the supervisor.
LOADING_LOSSES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """When to replace the child, between jobs (0: never), and the longest time for loading the engine."""

    requests: int = 0
    rss_bytes: int = 0
    load_seconds: float = 1800.0


@dataclass(frozen=True, slots=True)
class Report:
    """What the worker says about itself; `state` is loading, idle, busy, draining or gone."""

    name: str
    host: str
    pid: int
    engine: str
    state: str
    started_at: datetime
    requests_done: int
    rss_bytes: int
    gpu: str
    last_error: str
    gpu_percent: int | None = None
    gpu_memory_bytes: int | None = None


#: Orders that hold until they are taken back: nothing is taken meanwhile.
HOLDING = frozenset({"pause", "stop"})


class ResidentWorker(PatientWorker):
    """`loader` is the dotted name of a function that returns the loaded engine, called in the child.

    `on_child_lost` gets the worker's name, the child's exit status and whether somebody had it stopped, and gives back
    the requests that were in hand. The status is None where no child was lost: at the start, for a predecessor of the
    same name, and after a job that raised. It is called until it succeeds, and no job is taken before.

    `beat` gets a `Report` every five seconds, and at once when an engine begins or ends to load. What it returns is
    an operator's order (`synthesis.models.Worker.Order`), or nothing; `obeyed` hears of those that are done once.
    """

    def __init__(
        self,
        queues: list[Queue],
        name: str | None = None,
        *,
        loader: str = "gpu_worker.child.load_engine",
        engine: str = "",
        on_child_lost: Callable[[str, int | None, bool], object] = lambda name, exit_code, stopped: None,
        beat: Callable[[Report], object] = lambda report: None,
        obeyed: Callable[[str, str], object] = lambda name, order: None,
        limits: Limits | None = None,
        **options: Any,
    ) -> None:
        super().__init__(queues, name, **options)
        #: Why the worker ended by itself.
        self.failure = ""
        self._loader = loader
        self._engine = engine
        self._on_child_lost = on_child_lost
        self._beat = beat
        self._obeyed = obeyed
        self._order = ""
        self._limits = limits or Limits()
        self._child: EngineProcess | None = None
        self._loading = True
        self._forced = False
        self._stopped = False
        self._losses = 0
        self._requests_done = 0
        self._child_requests = 0
        self._last_error = ""
        self._started_at = datetime.now(UTC)
        self._database_ticker = Ticker(
            "Telling the database that the worker is alive",
            self._tell_database,
            self.beat_seconds,
        )

    def report(self) -> Report:
        """The state of affairs."""
        child = self._child
        if self.in_hand:
            state = "draining" if self._stop_requested else "busy"
        elif self._order in HOLDING:
            state = "paused"
        else:
            state = "loading" if self._loading else "idle"
        gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        load = gpu_load.sample(gpu)
        return Report(
            name=self.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            engine=self._engine,
            state=state,
            started_at=self._started_at,
            requests_done=self._requests_done,
            rss_bytes=child.rss_bytes() if child else 0,
            gpu=gpu,
            last_error=self._last_error,
            gpu_percent=load.percent,
            gpu_memory_bytes=load.memory_bytes,
        )

    # --- Orders ---------------------------------------------------------------------------------------------

    def _tell_database(self) -> None:
        """Report, and hear what is wanted. In the reporting thread: what it cannot do itself, `prepare` does."""
        order = self._beat(self.report())
        self._order = order if isinstance(order, str) else ""
        child = self._child
        if self._order == "stop" and self.in_hand and child:
            logger.info("%s: told to stop at once", self.name)
            self._stopped = True
            child.kill()

    def _obey(self) -> None:
        """Between two jobs: wait as long as nothing is to be taken; start anew, or load the engine anew, once."""
        while self._order in HOLDING:
            if self._order == "stop":
                self._end_child()
            self._sleep(0.25)
        order = self._order
        if order not in {"restart", "recycle"}:
            return
        logger.info("%s: told to %s", self.name, order)
        try:
            self._obeyed(self.name, order)
        except Exception:
            # The database is away: carried out, but not noted, it would be carried out again and again.
            logger.exception("%s: the order cannot be noted, trying again", self.name)
            self._sleep(1.0)
            return
        self._order = ""
        if order == "restart":
            # The supervisor starts the next process at once.
            raise StopRequested
        self._end_child()

    # --- Start and end --------------------------------------------------------------------------------------

    def bootstrap(self, *args: Any, **kwargs: Any) -> None:
        """Register, and give back what a predecessor of the same name had in hand."""
        super().bootstrap(*args, **kwargs)
        self._database_ticker.start()
        self._give_back(None)

    def teardown(self) -> None:
        """End the child and sign off everywhere, as far as the others answer."""
        self._database_ticker.stop()
        self._end_child()
        super().teardown()
        with contextlib.suppress(Exception):
            self._beat(replace(self.report(), state="gone"))

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Stop now: the child is killed, and whoever waits for it gives back what it had in hand."""
        requested = self._shutdown_requested_date
        if requested and (now() - requested).total_seconds() < SAME_SIGNAL_SECONDS:
            return
        self._forced = self._stopped = True
        if self._child:
            self._child.kill()

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """RQ's command to stop the job in hand."""
        child = self._child
        if child and self.in_hand:
            self._stopped = True
            child.kill()

    # --- The child ------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """No job is taken before there is an engine for it, or while none is to be taken."""
        self._obey()
        self._ready_child()

    def _ready_child(self) -> EngineProcess:
        """A child whose engine is loaded. StopRequested when it cannot be (`failure` says why) or when asked
        to stop meanwhile."""
        while not self._child or self._child.ended():
            if self._child:
                self._note_loss(ChildLost(self._end_child()), "while idle")
            self._loading = True
            self._database_ticker.poke()
            # The first loss is no reason to wait; one after the other is.
            self._sleep(0.0 if self._losses < 2 else min(2.0 ** (self._losses - 2), MAX_PAUSE_SECONDS))
            self._child = EngineProcess(worker_name=self.name, loader=self._loader)
            self._child_requests = 0
            try:
                message = self._first_words(self._child)
            except ChildLost as lost:
                self._note_loss(lost, "while loading the engine")
                if self._losses < LOADING_LOSSES:
                    continue
                message = NotReady(f"Loading the engine failed {self._losses} times: {lost}.")
            if not isinstance(message, Ready):
                self._give_up(message.reason)
            self._welcome(self._child, message)
        return self._child

    def _first_words(self, child: EngineProcess) -> Ready | NotReady:
        deadline = time.monotonic() + self._limits.load_seconds
        while time.monotonic() < deadline and not self._stop_requested:
            message = child.receive(0.25)
            if isinstance(message, Ready | NotReady):
                return message
        child.kill()
        return NotReady(f"The engine was not loaded within {self._limits.load_seconds:.0f} seconds.")

    def _give_up(self, reason: str) -> NoReturn:
        self._end_child()
        if not self._stop_requested:
            self.failure = self._last_error = reason
            logger.error("%s: the engine cannot be loaded: %s", self.name, reason)
        raise StopRequested

    def _welcome(self, child: EngineProcess, ready: Ready) -> None:
        self._engine = ready.engine
        self._loading = False
        self._database_ticker.poke()
        logger.info(
            "%s: %s is loaded (%.1f s, process %d)", self.name, ready.engine, ready.seconds, child.pid
        )
        if self._limits.rss_bytes and child.rss_bytes() > self._limits.rss_bytes * 0.9:
            logger.warning("The memory ceiling is below what the engine takes when loaded, and is not used")
            self._limits = replace(self._limits, rss_bytes=0)

    def _end_child(self) -> int:
        child, self._child = self._child, None
        return child.close(0.0 if self._forced else 5.0) if child else 0

    def _note_loss(self, lost: ChildLost, when: str) -> bool:
        """Whether somebody had it stopped, so that nothing is wrong with the engine."""
        self._child = None
        stopped, self._stopped = self._stopped, False
        if stopped:
            logger.info("%s: %s, as somebody wanted it", self.name, lost)
            return True
        self._losses += 1
        self._last_error = str(lost)
        logger.error("%s: %s %s", self.name, lost, when)
        return False

    def _give_back(self, exit_code: int | None, stopped: bool = False) -> None:
        """Return the requests of a lost child to the queue. Before the next job is taken: later, they could
        not be told from that job's."""
        failing = False
        while True:
            try:
                self._on_child_lost(self.name, exit_code, stopped)
            except Exception as error:
                # The database may be away. A worker that is asked to stop leaves it to the lease.
                if self._stop_requested:
                    raise StopRequested from error
                if not failing:
                    logger.warning("Requests cannot be given back, trying again: %r", error)
                failing = True
                self._sleep(1.0)
            else:
                return

    def _sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._stop_requested:
                raise StopRequested
            time.sleep(min(left, 0.25))

    def _outgrown(self) -> str:
        limits, child = self._limits, self._child
        if limits.requests and self._child_requests >= limits.requests:
            return f"it has served {self._child_requests} requests"
        if limits.rss_bytes and child and (rss := child.rss_bytes()) > limits.rss_bytes:
            return f"it has grown to {rss // 2**20} MiB"
        return ""

    # --- Jobs -----------------------------------------------------------------------------------------------

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Perform one job in the child, from RQ's first note of it to the last."""
        execution = self.begin(job)
        self.in_hand = (job, execution)
        try:
            outcome = self._perform(job)
            if outcome.error:
                # Also where the child lives: what it raised may have kept it from noting how its requests
                # ended.
                self._give_back(outcome.exit_code, outcome.stopped)
        finally:
            self.in_hand = None
        self._requests_done += outcome.requests
        self._child_requests += outcome.requests
        if outcome.error and not outcome.stopped:
            self._last_error = outcome.error.rstrip().rpartition("\n")[2]
            logger.error("%s: a job failed: %s", self.name, outcome.error)
        if outcome.exit_code is None:
            self._losses = 0
            if reason := outcome.retire or self._outgrown():
                logger.info("%s: replacing the engine's process: %s", self.name, reason)
                self._end_child()
        self.finish(job, queue, execution, outcome.error)
        self.set_state(WorkerStatus.IDLE)

    def _perform(self, job: Job) -> Outcome:
        try:
            task = Task(str(job.func_name), tuple(job.args), job.kwargs)
        except DeserializationError:
            return Outcome(error="The job cannot be read.")
        while True:
            child = self._ready_child()
            watch = Watch(job.timeout)
            try:
                return watch.follow(child, task)
            except ChildLost as lost:
                where = "in the middle of a job" if watch.begun else "before a job"
                stopped = self._note_loss(lost, watch.verdict or where)
                why = "it was stopped" if stopped else watch.verdict
                if watch.begun or why or self._stop_requested or self._losses >= LOADING_LOSSES:
                    error = f"{lost}: {why}" if why else str(lost)
                    return Outcome(error=error, exit_code=lost.exit_code, stopped=stopped)
