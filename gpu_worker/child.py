"""The child of a resident worker: loads the engine once and performs one task after the other until it is
retired.

Started by `gpu_worker.engine_process` as `python -m gpu_worker.child`, a fresh interpreter: CUDA does not
survive a fork. It never talks to RQ; all that it knows of a job is which function to call.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from gpu_worker import processes, resident
from gpu_worker.messages import Begun, Message, NotReady, Outcome, Promise, Ready, Task

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from gpu_worker.engines.base import Engine

#: Promises are passed on at most once in so many seconds: a fast engine finishes hundreds of segments in one.
PROMISE_SECONDS = 1.0
#: Errors raised by the clients of other services say nothing about the engine's health.
_CLIENTS = frozenset({"botocore", "boto3", "psycopg", "psycopg_pool", "redis", "urllib3"})


class _Line:
    """The child's end of the pipe; promises may come from any of the engine's threads."""

    def __init__(self, channel: Connection) -> None:
        self.channel = channel
        self._lock = threading.Lock()
        self._promised = (0.0, 0.0)

    def send(self, message: Message) -> None:
        with self._lock:
            self.channel.send(message)

    def promise(self, within: float) -> None:
        moment, last = self._promised
        now = time.monotonic()
        if within != last or now - moment >= min(PROMISE_SECONDS, within / 4):
            self._promised = (now, within)
            self.send(Promise(within))


def end_with_the_lease(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    """Have PostgreSQL end a connection that rests within a transaction for as long as a lease lasts.

    A process that stands still there (its machine swaps, somebody stopped it) would keep its request locked, and
    nobody could take it over.
    """
    from django.conf import settings

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', %s, false)",
            [f"{settings.CHORUS_LEASE_SECONDS}s"],
        )


def load_engine() -> Engine:
    """The engine that the settings name, loaded; raises EngineUnavailable."""
    from django.conf import settings
    from django.db.backends.signals import connection_created

    connection_created.connect(end_with_the_lease)
    # The first request should not wait for the imports of its job.
    from gpu_worker import engines, jobs  # noqa: F401

    return engines.load_engine(settings.CHORUS_ENGINE)


def serve(channel: Connection, *, worker_name: str, loader: str) -> None:
    """Load the engine through `loader` (the dotted name of a function that returns it), then perform tasks
    until the parent closes the pipe."""
    import django
    from django.utils.module_loading import import_string

    from gpu_worker.engines.base import EngineUnavailable

    started = time.monotonic()
    line = _Line(channel)
    django.setup()
    try:
        engine: Engine = import_string(loader)()
    except EngineUnavailable as error:
        line.send(NotReady(str(error)))
        raise SystemExit(1) from None
    except Exception as error:
        line.send(NotReady(describe(error)))
        raise
    resident.install(engine=engine, worker_name=worker_name, promise=line.promise)
    line.send(Ready(engine.capabilities.name, time.monotonic() - started))
    while True:
        try:
            task: Task = channel.recv()
        except EOFError:
            return
        line.send(Begun())
        line.send(perform(task))


def perform(task: Task) -> Outcome:
    """Call the task's function; its result, if a whole number, is how many requests it took.

    Anything that it raises ends the task, and, unless another service or a business rule is to blame, the
    child: the engine may be broken in ways that nothing in this process can see.
    """
    from django.db import close_old_connections
    from django.utils.module_loading import import_string

    close_old_connections()
    try:
        result = import_string(task.function)(*task.args, **(task.kwargs or {}))
    except Exception as error:  # noqa: BLE001 (the parent records it and replaces this process)
        reason = "" if _blameless(error) else f"{type(error).__name__} was raised out of a job"
        return Outcome(error=describe(error), retire=resident.retirement() or reason)
    finally:
        close_old_connections()
    return Outcome(requests=result if type(result) is int else 1, retire=resident.retirement())


def _blameless(error: Exception) -> bool:
    """Whether the engine has nothing to do with `error`."""
    from django.db import Error

    from accounts.errors import ChorusError

    return isinstance(error, ChorusError | Error) or type(error).__module__.partition(".")[0] in _CLIENTS


def describe(error: BaseException) -> str:
    """Where `error` and its causes were raised, and their types. Never their messages: those may hold a
    user's words, and this text goes to the log and to Redis."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < 5:
        stack = "".join(traceback.format_tb(cause.__traceback__))
        parts.append(f"{stack}{type(cause).__module__}.{type(cause).__qualname__}")
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n\nwhich came from:\n\n".join(parts)


def main() -> None:
    """The command line of the child; only `gpu_worker.engine_process` uses it."""
    parser = argparse.ArgumentParser(prog="gpu_worker.child")
    parser.add_argument("--worker", required=True)
    parser.add_argument("--loader", required=True)
    parser.add_argument("--channel", type=int, required=True, help="number of the inherited socket")
    parser.add_argument("--parent", type=int, required=True, help="process id of the parent")
    options = parser.parse_args()
    processes.die_with_parent(options.parent)
    # Ctrl-C is for the parent, which lets the task in hand finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()
    processes.offer_to_oom_killer()
    processes.step_back()
    os.set_inheritable(options.channel, False)
    serve(Connection(options.channel), worker_name=options.worker, loader=options.loader)


if __name__ == "__main__":
    main()
