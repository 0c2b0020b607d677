"""What a job finds in the process that keeps the engine: the engine, the worker's name, and a line to the
parent.

`gpu_worker.child` installs this once per process; tests may do the same to run a job in their own process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_worker.engines.base import Engine


@dataclass(slots=True)
class _Resident:
    engine: Engine
    worker_name: str
    promise: Callable[[float], None]
    retire: str = ""


_resident: _Resident | None = None


def install(
    *, engine: Engine, worker_name: str, promise: Callable[[float], None] = lambda seconds: None
) -> None:
    """Make `engine` the one that jobs of this process use. `promise` passes `expect_progress` on to the
    parent."""
    global _resident
    _resident = _Resident(engine=engine, worker_name=worker_name, promise=promise)


def remove() -> None:
    """Undo `install`."""
    global _resident
    _resident = None


def _installed() -> _Resident:
    if _resident is None:
        raise RuntimeError("There is no engine here: jobs run in the child of a resident worker.")
    return _resident


def engine() -> Engine:
    """The loaded engine; RuntimeError outside of a worker's child."""
    return _installed().engine


def worker_name() -> str:
    """The name of this worker (`host:instance:slot`), which stays the same across restarts."""
    return _installed().worker_name


def expect_progress(*, within: float) -> None:
    """Promise the parent to call this again, or to finish the job, within that many seconds.

    A promise that is broken means a hung call: the parent kills this process and its requests return to the
    queue. Without a promise only the job's own time limit counts, which must fit the longest text.
    """
    _installed().promise(within)


def request_retirement(reason: str) -> None:
    """Have this process replaced by a fresh one after the job in hand, because of `reason` (for the log)."""
    _installed().retire = reason


def retirement() -> str:
    """The reason given to `request_retirement`, or an empty string."""
    return _installed().retire
