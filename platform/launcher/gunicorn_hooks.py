"""Configuration of the web process that is not on its command line: what gunicorn calls in its own processes."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any

from launcher.process import die_with_parent


def on_starting(server: Any) -> None:
    """Before the parent listens: the socket is the launcher's and must stay where it is, as one of systemd's must."""
    server.systemd = True


def pre_fork(server: Any, worker: Any) -> None:
    """Before a worker comes: what was loaded stays for good and is no longer looked through for garbage.

    Python otherwise waits, before it looks for what is left of requests, until that is a quarter of all there is; and
    each look would take copies of what the workers share.
    """
    gc.freeze()


def post_fork(server: Any, worker: Any) -> None:
    """In a new worker: it ends with its parent, also with one that was killed, and at once."""
    die_with_parent(signal.SIGKILL, parent=server.pid)()


def worker_exit(server: Any, worker: Any) -> None:
    """The last call in a worker that ends as asked: leave the memory to the kernel.

    Python would take all of Django apart first, object by object, which is most of the time that a stop takes.
    """
    error = sys.exc_info()[1]
    # gunicorn also calls this in the parent, for a worker that is gone.
    if worker.pid == os.getpid() and isinstance(error, SystemExit) and not error.code:
        _leave()


def on_exit(server: Any) -> None:
    """The last call in the parent, after its workers have ended and its socket is gone."""
    if sys.exc_info()[1] is None:
        _leave()


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
