"""Several servers that can do the same: which one next, and which ones to leave alone for a while."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

#: Seconds that a server is left alone after its first failure in a row, doubled with each, up to the longest.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0


@dataclass(slots=True)
class Upstream:
    """One server. `in_flight` requests are at it; `until` (monotonic seconds) it is left alone."""

    url: str
    in_flight: int = 0
    failures: int = 0
    until: float = 0.0


class Upstreams:
    """Chooses the server with the least to do among those that answer. Used by one thread."""

    def __init__(self, urls: Sequence[str], *, concurrency: int) -> None:
        self.all = [Upstream(url) for url in urls]
        self._concurrency = concurrency
        self._turn = 0

    def choose(self, tried: Sequence[Upstream] = ()) -> Upstream | None:
        """The server for the next request, not one of `tried`; None where every other is full or out of
        order.
        """
        now = time.monotonic()
        self._turn += 1
        # In turns among equals: a single caller at a time should not always meet the first.
        order = [self.all[(index + self._turn) % len(self.all)] for index in range(len(self.all))]
        free = [
            upstream
            for upstream in order
            if upstream not in tried and upstream.until <= now and upstream.in_flight < self._concurrency
        ]
        return min(free, key=lambda upstream: upstream.in_flight, default=None)

    def is_hopeless(self, tried: Sequence[Upstream]) -> bool:
        """Whether waiting for a free place is of no use: each server was tried or is out of order."""
        now = time.monotonic()
        return all(upstream in tried or upstream.until > now for upstream in self.all)

    def answered(self, upstream: Upstream) -> None:
        """It works (again)."""
        upstream.failures = 0
        upstream.until = 0.0

    def failed(self, upstream: Upstream, *, retry_after: float = 0.0) -> None:
        """Leave it alone for a while: as long as it asks for itself, within reason, or longer each time."""
        upstream.failures += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (upstream.failures - 1))
        upstream.until = time.monotonic() + max(pause, min(retry_after, LONGEST_PAUSE))
