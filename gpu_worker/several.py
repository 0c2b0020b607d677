"""Several requests at once, for engines that take them: each in a thread of its own, another as soon as one ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from django.db import connection

from gpu_worker import resident

Work = TypeVar("Work")

#: Seconds after which no more requests are taken, so that the worker can be told to stop or to recycle its child. What
#: is being spoken is finished first.
ROUND_SECONDS = 600.0
#: Seconds between looks at the queue while there is a free place.
_LOOK_SECONDS = 0.5
#: The parent is promised an answer each time; the engine watches over what it speaks by itself.
_PROMISE_SECONDS = 60.0


def run(places: int, *, claim: Callable[[int], Sequence[Work]], work: Callable[[Work], None]) -> int:
    """Do `work` for all that `claim` (up to so many) gives, `places` at once; how many there were.

    One that fails leaves the others alone: what it raised is raised at the end, and nothing more is taken meanwhile.
    """
    count = 0
    failed: BaseException | None = None
    until = time.monotonic() + ROUND_SECONDS

    def in_thread(item: Work) -> None:
        try:
            work(item)
        finally:
            connection.close()

    with ThreadPoolExecutor(places, thread_name_prefix="request") as pool:
        busy: set[Future[None]] = set()
        while True:
            if failed is None and len(busy) < places and time.monotonic() < until:
                taken = claim(places - len(busy))
                count += len(taken)
                busy |= {pool.submit(in_thread, item) for item in taken}
            if not busy:
                break
            done, busy = wait(busy, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            resident.expect_progress(within=_PROMISE_SECONDS)
            failed = failed or next((error for future in done if (error := future.exception())), None)
    if failed is not None:
        raise failed
    return count
