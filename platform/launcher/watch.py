"""Keep children running: one that ends unasked is started again, after a pause that grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from launcher.errors import LauncherError
from launcher.process import Child

FIRST_PAUSE = 0.2  # seconds; doubles with each failure
LONGEST_PAUSE = 30.0
#: Seconds after which a child counts as well again.
WELL_AFTER = 60.0


@dataclass
class Watched:
    """A child, how to start it again, and how it has been doing."""

    child: Child
    start: Callable[[], None]
    started: float = 0.0
    failures: int = 0
    due: float | None = None


class Watch:
    """The children of one launcher. `tick()` is called a few times a second, from the main thread."""

    def __init__(self, say: Callable[[str], None], changed: Callable[[list[int]], None]) -> None:
        """`changed` gets all process ids each time that one of them is new."""
        self._say = say
        self._changed = changed
        self._watched: list[Watched] = []

    def add(self, child: Child, start: Callable[[], None] | None = None) -> None:
        """Watch a child, and start it unless it runs already."""
        watched = Watched(child, start or child.start, started=time.monotonic())
        self._watched.append(watched)
        if not child.running():
            watched.start()
        self._changed(self.pids())

    def forget(self, children: Sequence[Child]) -> None:
        """Their end is wanted."""
        self._watched = [watched for watched in self._watched if watched.child not in children]

    def pids(self) -> list[int]:
        """Process ids of what runs."""
        return [watched.child.pid for watched in self._watched if watched.child.running()]

    def worst(self) -> Watched | None:
        """The child that has failed most often since it was last well."""
        return max(self._watched, key=lambda watched: watched.failures, default=None)

    def tick(self) -> None:
        """Start again what has ended and whose pause is over."""
        now = time.monotonic()
        for watched in self._watched:
            watched.child.bound_log()
            if watched.child.running():
                if watched.failures and now - watched.started > WELL_AFTER:
                    watched.failures = 0
            elif watched.due is None:
                self._note_failure(watched, now)
            elif now >= watched.due:
                self._restart(watched)

    def _note_failure(self, watched: Watched, now: float) -> None:
        pause = min(FIRST_PAUSE * 2**watched.failures, LONGEST_PAUSE)
        watched.failures += 1
        watched.due = now + pause
        child = watched.child
        code = child.exit_code or 0
        how = f"signal {-code}" if code < 0 else f"status {code}"
        self._say(f"{child.name} ended with {how}; starting it again in {pause:.1f} s (see {child.log})")

    def _restart(self, watched: Watched) -> None:
        watched.due = None
        watched.started = time.monotonic()
        try:
            watched.start()
        except (LauncherError, OSError) as error:
            self._say(f"{watched.child.name} cannot be started: {error}")
        self._changed(self.pids())
