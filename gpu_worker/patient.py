"""An RQ worker that outlives its Valkey, which may be flushed, restarted or away at any moment.

RQ's own worker quits when a command fails outside of its wait for the next job, even with a job in hand; it
does not come back into the list of workers after a flush, and a signal that finds it between taking a job and
noting it loses the job. This one waits, registers itself again with every heartbeat, and looks for signals
only where nothing is lost. It works on one queue: only then does RQ move jobs atomically.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue, Worker, worker_registration
from rq.exceptions import DequeueTimeout, InvalidJobOperation, NoSuchJobError, StopRequested
from rq.executions import Execution
from rq.job import Job
from rq.utils import now
from rq.worker.base import WorkerStatus

from gpu_worker.ticker import Ticker

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: Seconds that one wait for a job takes. Short, so that a signal need not break into a read and lose its
#: answer.
WAIT_SECONDS = 1


class PatientWorker(Worker):
    """To be completed by a subclass: `execute_job`, and `prepare`, which is called before a job is taken."""

    #: How often the worker says that it is alive.
    beat_seconds = 5.0

    def __init__(self, queues: list[Queue], name: str | None = None, **options: Any) -> None:
        # RQ notices a killed worker after at most job_monitoring_interval + maintenance_interval + 60 s.
        options = {"worker_ttl": 30, "maintenance_interval": 15, "job_monitoring_interval": 5} | options
        super().__init__(queues, name, default_result_ttl=0, **options)
        # By default redis-py tries for about ten seconds before it says that the server is away.
        self.connection.set_retry(Retry(ExponentialBackoff(cap=0.2, base=0.02), 3))
        #: The job in hand, for the threads that report.
        self.in_hand: tuple[Job, Execution] | None = None
        # A thread, so that a Valkey that hangs does not keep the main thread from watching the job in hand.
        self.valkey_ticker = Ticker(
            "Telling Valkey that the worker is alive", self._say_alive, self.beat_seconds
        )

    # --- Waiting for Valkey ---------------------------------------------------------------------------------

    def quietly(self, action: Callable[[], object]) -> None:
        """Do what can be left undone when Valkey does not answer."""
        try:
            action()
        except RedisError as error:
            logger.debug("Valkey does not answer: %s", type(error).__name__)

    def patiently(self, action: Callable[[], T]) -> T:
        """Do what must be done, however long Valkey is away; raises StopRequested when asked to stop
        meanwhile."""
        waited = 0
        while True:
            try:
                result = action()
            except RedisError as error:
                if self._stop_requested:
                    raise StopRequested from error
                if waited % 10 == 0:
                    logger.warning("Valkey does not answer (%s): waiting for it", type(error).__name__)
                waited += 1
                time.sleep(1)
            else:
                if waited:
                    logger.warning("Valkey answers again")
                return result

    def _say_alive(self) -> None:
        in_hand = self.in_hand
        if in_hand:
            self.maintain_heartbeats(*in_hand)
            return
        with self.connection.pipeline() as pipeline:
            self.heartbeat(pipeline=pipeline)
            pipeline.execute()

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """RQ's heartbeat; it also registers the worker again, in case Valkey was flushed since the last
        one."""
        if pipeline is None:
            self.quietly(self._say_alive)
            return
        super().heartbeat(timeout, pipeline)
        pipeline.hset(self.key, mapping={**self.serialize(), "state": self.get_state()})
        worker_registration.register(self, pipeline)

    def get_heartbeat_ttl(self, job: Job, working_time: float = 0.0) -> int:
        """Seconds. RQ's value falls below zero once a job has taken longer than its limit."""
        return int(self.job_monitoring_interval) + 60

    def set_state(self, state: str, pipeline: Pipeline | None = None) -> None:
        """RQ's state of the worker; the next heartbeat repeats it where Valkey does not answer now."""
        if pipeline is not None:
            super().set_state(state, pipeline)
            return
        self._state = state
        self.quietly(lambda: self.connection.hset(self.key, "state", state))

    def _pubsub_exception_handler(self, exc: Exception, pubsub: Any, pubsub_thread: Any) -> None:
        # RQ's ends the thread, and with it the listening for commands, on anything but a ConnectionError.
        if not isinstance(exc, RedisError):
            raise exc
        time.sleep(1)

    # --- Start and end --------------------------------------------------------------------------------------

    def register_birth(self) -> None:
        """Take over the name: a worker that was killed keeps its key for 90 s, and RQ would refuse to
        start."""
        for execution in self.get_current_executions(refresh=True):
            try:
                job = self.job_class.fetch(execution.job_id, self.connection, self.serializer)
            except NoSuchJobError:
                continue
            error = "The worker ended with this job in hand."
            self.handle_job_failure(job, self.queues[0], exc_string=error, execution=execution)
        self.connection.delete(self.key, self.executions_key)
        super().register_birth()  # type: ignore[no-untyped-call]

    def bootstrap(self, *args: Any, **kwargs: Any) -> None:
        """Register, and go on to say that the worker is alive."""
        self.patiently(lambda: super(PatientWorker, self).bootstrap(*args, **kwargs))
        self.valkey_ticker.start()

    def teardown(self) -> None:
        """Sign off, if Valkey answers."""
        self.valkey_ticker.stop()
        self.quietly(super().teardown)

    def _shutdown(self) -> None:
        # Called by the signal handler. RQ's raises StopRequested wherever the signal finds the worker.
        self._stop_requested = True

    # --- Between jobs ---------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Called again and again before a job is taken; StopRequested ends the worker."""

    @property
    def dequeue_timeout(self) -> int:
        """Seconds; RQ also derives the connection's time-out from it."""
        return WAIT_SECONDS

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """The next job; None when there is none and `timeout` is None."""
        self.set_state(WorkerStatus.IDLE)
        while not self._stop_requested:
            self.prepare()
            if self.should_run_maintenance_tasks:
                self.run_maintenance_tasks()
            try:
                return self.patiently(lambda: self._dequeue(timeout))
            except DequeueTimeout:
                continue
        raise StopRequested

    def _dequeue(self, timeout: int | None) -> tuple[Job, Queue] | None:
        return self.queue_class.dequeue_any(
            self.queues,
            timeout,
            connection=self.connection,
            job_class=self.job_class,
            serializer=self.serializer,
            death_penalty_class=self.death_penalty_class,
        )

    def check_for_suspension(self, burst: bool) -> None:
        """Wait while all workers are suspended."""
        self.patiently(lambda: super(PatientWorker, self).check_for_suspension(burst))

    def run_maintenance_tasks(self) -> None:
        """RQ's cleaning of its registries."""
        self.quietly(super().run_maintenance_tasks)
        self.last_cleaned_at = now()  # type: ignore[assignment]

    def begin(self, job: Job) -> Execution:
        """RQ's first notes of a job that was taken."""

        def note() -> Execution:
            self.executions.clear()
            execution = self.prepare_execution(job)
            self.prepare_job_execution(job, remove_from_intermediate_queue=True)
            return execution

        return self.patiently(note)

    def finish(self, job: Job, queue: Queue, execution: Execution, error: str) -> None:
        """RQ's last notes of a job; `error` is empty for success."""

        def note() -> None:
            self.handle_execution_ended(job, queue, 60)
            try:
                if error:
                    self.handle_job_failure(job, queue, exc_string=error, execution=execution)
                else:
                    self.handle_job_success(job, queue, queue.started_job_registry, execution)
            except InvalidJobOperation:
                # Valkey was flushed meanwhile: leave no half of a job there.
                self.connection.delete(job.key, execution.key)

        self.patiently(note)
        self.executions.clear()
