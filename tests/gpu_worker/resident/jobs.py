"""A tiny engine and jobs for it, called in the worker's child."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from types import SimpleNamespace

from accounts.errors import InvalidInput
from gpu_worker import resident
from gpu_worker.engines.base import EngineUnavailable
from tests.gpu_worker.resident import journal

_ballast: list[bytes] = []


class Engine:
    """Nothing but a name."""

    capabilities = SimpleNamespace(name="tiny")


def load() -> Engine:
    """Load, unless the test has put up a sign that says not to."""
    if Path(os.environ["CHORUS_TEST_JOURNAL"]).with_name("no-weights").exists():
        raise EngineUnavailable("The weights are missing: run the installer.")
    journal.write("loaded")
    return Engine()


def quick(tag: str = "") -> int:
    """Done at once."""
    journal.write("job", tag=tag, engine=id(resident.engine()), worker=resident.worker_name())
    return 1


def slow(seconds: float, tag: str = "") -> None:
    """Busy for a while."""
    journal.write("started", tag=tag)
    time.sleep(seconds)
    journal.write("job", tag=tag)


def hang() -> None:
    """A C call that keeps the GIL: no signal handler and no other thread of this process ever runs again."""
    journal.write("started")
    ctypes.PyDLL(None).sleep(60)


def silent(within: float) -> None:
    """Promise to be heard of, keep it twice, then break it."""
    for _ in range(3):
        journal.write("started")
        resident.expect_progress(within=within)
        time.sleep(within / 2)
    time.sleep(60)


def broken() -> None:
    """What a bug or a poisoned CUDA context looks like; the message is a user's text."""
    raise ValueError(" ".join(["the words", "of a user"]))


def mistaken() -> None:
    """A business rule was not met."""
    raise InvalidInput


def retiring() -> None:
    """Ask to be replaced."""
    resident.request_retirement("its hop length is stuck")


def growing(mib: int) -> None:
    """Leak."""
    _ballast.append(b"x" * mib * 2**20)


def crash() -> None:
    """A segmentation fault."""
    journal.write("started")
    ctypes.string_at(0)
