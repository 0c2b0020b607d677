"""What the apps above `accounts`, which it cannot import, tell it about a team or a person.

They register when Django starts (`AppConfig.ready`). Without them everything here still works, and says less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from accounts.models import User


class InUse(Protocol):
    """How much of each limit (`concurrent_requests`, `queued_requests`, `stored_voices`) is taken right now."""

    def __call__(self, team_id: UUID, user_id: UUID | None) -> dict[str, int]:
        """Of a team, or of one person in it."""


class CancelWaiting(Protocol):
    """Cancel what waits to be spoken; how many requests."""

    def __call__(self, *, team_id: UUID | None, user_id: UUID | None) -> int:
        """Of a team, of a person in every team, or of a person in one team."""


@dataclass(frozen=True)
class PersonalData:
    """A kind of things that belong to a person: how to hand them out, and how to remove them.

    `export` yields (path inside the archive, content); `erase` removes and returns what was removed by kind.
    """

    name: str
    export: Callable[[User], Iterator[tuple[str, bytes | Iterator[bytes]]]]
    erase: Callable[[User], dict[str, int]]


@dataclass
class _Registry:
    in_use: list[InUse] = field(default_factory=list)
    cancel_waiting: list[CancelWaiting] = field(default_factory=list)
    personal_data: list[PersonalData] = field(default_factory=list)


registry = _Registry()


def in_use(team_id: UUID, user_id: UUID | None = None) -> dict[str, int]:
    """How much of each limit is taken right now."""
    result: dict[str, int] = {}
    for ask in registry.in_use:
        result |= ask(team_id, user_id)
    return result


def cancel_waiting(*, team_id: UUID | None = None, user_id: UUID | None = None) -> int:
    """Cancel what waits to be spoken; how many requests. In the caller's transaction."""
    return sum(cancel(team_id=team_id, user_id=user_id) for cancel in registry.cancel_waiting)
