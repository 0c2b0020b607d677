"""A thread that does one small thing again and again, whatever happens to it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Ticker(threading.Thread):
    """Calls `action` every `interval` seconds, and soon after `poke()`. An exception is logged once, not
    every time, and never ends it: what it reports to may be away for a while."""

    def __init__(self, name: str, action: Callable[[], object], interval: float) -> None:
        super().__init__(name=name, daemon=True)
        self._action = action
        self._interval = interval
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._failing = False

    def run(self) -> None:
        """The thread's work."""
        while not self._stopped.is_set():
            self._wake.clear()
            self._tick()
            self._wake.wait(self._interval)

    def _tick(self) -> None:
        try:
            self._action()
        except Exception as error:  # noqa: BLE001 (it must go on, see above)
            if not self._failing:
                logger.warning("%s fails and is tried again: %r", self.name, error)
            self._failing = True
        else:
            if self._failing:
                logger.warning("%s works again", self.name)
            self._failing = False

    def poke(self) -> None:
        """Have the next call made now."""
        self._wake.set()

    def stop(self, timeout: float = 2.0) -> None:
        """End after the call in progress; waits for it at most `timeout` seconds."""
        self._stopped.set()
        self._wake.set()
        if self.is_alive():
            self.join(timeout)
