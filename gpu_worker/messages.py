"""What the parent and the child of a resident worker say to each other over their pipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ready:
    """Child: the engine is loaded. `seconds` is what loading took."""

    engine: str
    seconds: float


@dataclass(frozen=True, slots=True)
class NotReady:
    """Child: the engine cannot be loaded here, and why. The child ends after it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Task:
    """Parent: call this function, given by its dotted name."""

    function: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """Child: it has the task. A child that is lost before it says so has done nothing, and another may
    try."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Child: another promise or an outcome follows within so many seconds, or something hangs."""

    within: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a task, from the child or, when the child was lost (`exit_code` is set), from the parent.

    `error` is empty for success; it names the exception and where it was raised, never its message, which may
    hold a user's words. `retire` is the reason to replace the child; `stopped`: somebody had it ended.
    """

    requests: int = 0
    error: str = ""
    retire: str = ""
    exit_code: int | None = None
    stopped: bool = False


Message = Ready | NotReady | Begun | Promise | Outcome
