"""The parent's handle on the child that keeps the engine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import wait

from gpu_worker import processes
from gpu_worker.messages import Begun, Message, Outcome, Promise, Task


class ChildLost(Exception):
    """The child has ended; `exit_code` is its status, negative for a signal."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(exit_code)

    def __str__(self) -> str:
        if self.exit_code >= 0:
            return f"the engine's process ended with status {self.exit_code}"
        with contextlib.suppress(ValueError):
            return f"the engine's process was ended by {signal.Signals(-self.exit_code).name}"
        return f"the engine's process was ended by signal {-self.exit_code}"


class EngineProcess:
    """One child, from its start to its end. Must be created in the main thread (see
    `processes.die_with_parent`).

    It leads a process group of its own, so that Ctrl-C at a terminal does not reach it and so that whatever
    the engine starts ends with it.
    """

    def __init__(self, *, worker_name: str, loader: str) -> None:
        self._channel, theirs = multiprocessing.Pipe()
        argv = [
            *(sys.executable, "-m", "gpu_worker.child", "--worker", worker_name, "--loader", loader),
            *("--channel", str(theirs.fileno()), "--parent", str(os.getpid())),
        ]
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env={**os.environ, "PYTHONPATH": processes.module_path()},
            )
        finally:
            theirs.close()
        # Ready when the process ends, while the pipe may be held open by something that the engine has
        # started.
        self._end = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def rss_bytes(self) -> int:
        """Its resident memory in bytes."""
        return processes.rss_bytes(self.pid)

    def send(self, task: Task) -> None:
        """Give it a task; raises ChildLost."""
        try:
            self._channel.send(task)
        except OSError:
            raise ChildLost(self.close()) from None

    def receive(self, timeout: float | None) -> Message | None:
        """What it says next, or None after `timeout` seconds (None: no limit); raises ChildLost as soon as it
        ends."""
        ready = wait([self._channel, self._end], timeout)
        if not ready:
            return None
        try:
            # Its last words may have arrived together with its end.
            if self._channel.poll():
                return self._channel.recv()
        except (EOFError, OSError):
            pass
        raise ChildLost(self.close())

    def ended(self) -> bool:
        """Whether it has ended without being asked to."""
        return bool(wait([self._end], 0))

    def kill(self) -> None:
        """End it now. Safe in other threads and in signal handlers: the one who waits for it gets
        ChildLost."""
        with contextlib.suppress(ProcessLookupError, OSError):
            signal.pidfd_send_signal(self._end, signal.SIGKILL)

    def close(self, grace: float = 5.0) -> int:
        """Let it end by itself within `grace` seconds, or end it; returns its exit status. May be called
        again."""
        status = self._process.returncode
        if status is None:
            self._channel.close()
            if not wait([self._end], grace):
                self.kill()
                wait([self._end], None)
            # It is dead but not yet reaped, so its process id, which is also its group's, cannot be
            # another's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            status = self._process.wait()
            os.close(self._end)
        return status


class Watch:
    """Follows one task in the child, and kills the child when the task takes longer than its limit (seconds;
    None or -1: none) or breaks a promise."""

    def __init__(self, limit: float | None) -> None:
        self.begun = False
        self.verdict = ""
        self._limit = limit if limit and limit > 0 else float("inf")

    def follow(self, child: EngineProcess, task: Task) -> Outcome:
        """Have the child perform the task; raises ChildLost."""
        end = time.monotonic() + self._limit
        deadline, reason = end, f"it took longer than {self._limit} s"
        child.send(task)
        while True:
            message = child.receive(min(max(deadline - time.monotonic(), 0.0), 3600.0))
            if isinstance(message, Outcome):
                return message
            if isinstance(message, Begun):
                self.begun = True
            elif isinstance(message, Promise):
                promised = (
                    time.monotonic() + message.within,
                    f"nothing was heard of it for {message.within} s",
                )
                deadline, reason = min(promised, (end, f"it took longer than {self._limit} s"))
            elif message is None and time.monotonic() >= deadline:
                self.verdict = reason
                deadline = float("inf")
                child.kill()
