"""Child processes that never outlive the launcher, and the loopback ports that they listen on.

Linux only: every child asks the kernel for a signal at its parent's death (PR_SET_PDEATHSIG), so that nothing
stays behind even after `kill -9`. The kernel ties that to the parent *thread*: start children from the main thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from launcher.errors import LauncherError

PR_SET_PDEATHSIG = 1
#: What asks the launcher to stop.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOG_LIMIT = 10 * 1024 * 1024  # bytes per log file before it is moved aside; one older part is kept
_libc = ctypes.CDLL(None, use_errno=True)
_random = random.SystemRandom()


def die_with_parent(death_signal: signal.Signals, *, parent: int | None = None) -> Callable[[], None]:
    """A `preexec_fn`: the child gets `death_signal` when its parent ends, and ends if it already has.

    `parent` is the process that calls this, unless a child calls it for itself.
    """
    parent = parent or os.getpid()

    def apply() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return apply


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold back the signals that stop us while a child is born, then have them again.

    A handler that raises inside `Popen`, after the fork, would leave a child that nobody knows of. Not by a mask, which
    holds for one thread only, while Python's handlers always run in the main one.
    """
    held: list[int] = []
    before = {number: signal.signal(number, lambda got, _frame: held.append(got)) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for got in held[:1]:
            signal.raise_signal(got)


class Child:
    """One child process: started with a log file of its own, stopped by its own process id.

    The child leads its own session, so that Ctrl-C at the terminal reaches only the launcher, which then
    stops the children in the right order.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        death_signal: signal.Signals = signal.SIGTERM,
        stop_timeout: float = 10.0,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.argv = [str(part) for part in argv]
        self.log = log
        self.env = dict(os.environ if env is None else env)
        self.cwd = cwd
        self.stop_signal = stop_signal
        self.death_signal = death_signal
        self.stop_timeout = stop_timeout
        self.pass_fds = tuple(pass_fds)
        self.process: subprocess.Popen[bytes] | None = None
        self._logged_before = 0

    def start(self) -> None:
        """Start it. Must be called from the main thread, see the module's docstring."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("children must be started from the main thread")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.log.open("ab") as output, _signals_held():
                self._logged_before = output.tell()
                self.process = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self.env,
                    cwd=self.cwd,
                    start_new_session=True,
                    pass_fds=self.pass_fds,
                    preexec_fn=die_with_parent(self.death_signal),
                )
        except OSError as error:
            raise LauncherError(
                f"{self.name} cannot be started: {error.strerror} ({self.argv[0]})"
            ) from error

    @property
    def pid(self) -> int:
        """The process id; only of a child that was started."""
        return self._started().pid

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self.process

    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit status, negative for a signal, None while it runs."""
        return None if self.process is None else self.process.poll()

    def signal_stop(self) -> None:
        """Ask it to stop, without waiting."""
        if self.running():
            os.kill(self.pid, self.stop_signal)

    def kill(self) -> None:
        """End it and whatever it started in its session, at once."""
        if self.running():
            os.killpg(self.pid, signal.SIGKILL)
            self._started().wait()

    def stop(self) -> None:
        """Ask it to stop, wait `stop_timeout` seconds, then end it."""
        self.signal_stop()
        self.join(self.stop_timeout)

    def join(self, timeout: float) -> None:
        """Wait until it has ended; after `timeout` seconds it is ended."""
        if self.process is None:
            return
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def bound_log(self) -> None:
        """Move a log past its limit aside. The child appends, so its next line starts an empty file."""
        try:
            if self.log.stat().st_size > LOG_LIMIT:
                older = self.log.with_suffix(".log.1")
                older.write_bytes(self.log.read_bytes())
                os.truncate(self.log, 0)
        except OSError:
            return  # a full disk is reported by the services themselves

    def said(self) -> bytes:
        """What it has written to its log since it was started."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._logged_before)
                return file.read()
        except OSError:
            return b""

    def last_lines(self, count: int = 3) -> str:
        """The end of its log as one line, for messages."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - 4096))
                lines = [
                    line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()
                ]
        except OSError:
            return ""
        return " | ".join(lines[-count:])


def wait_until(
    ready: Callable[[], bool], child: Child, *, timeout: float, tick: Callable[[], None] | None = None
) -> None:
    """Wait until `ready()` holds; LauncherError when the child ends first, or after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    pause = 0.02
    while not ready():
        if not child.running():
            raise LauncherError(
                f"{child.name} ended with status {child.exit_code} while starting: "
                f"{child.last_lines()} (see {child.log})"
            )
        if time.monotonic() > deadline:
            raise LauncherError(f"{child.name} is not ready after {timeout:.0f} s (see {child.log})")
        if tick:
            tick()
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on `host:port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(taken: set[int], preferred: int | None = None) -> int:
    """A free loopback port whose partner, 10,000 above, is free too (SeaweedFS opens both); now in `taken`.

    From 12000 to 21999: below the range that Linux gives to outgoing connections (32768 and up), so the port
    is still free when the server binds it a moment later.
    """
    for attempt in range(200):
        port = preferred if preferred and attempt == 0 else _random.randrange(12000, 22000)
        if port not in taken and port_is_free(port) and port_is_free(port + 10000):
            taken.add(port)
            return port
    raise LauncherError(
        "no free port was found on 127.0.0.1 between 12000 and 22000: stop something that listens there"
    )


def start_time(pid: int) -> int | None:
    """When a process began, in the kernel's ticks since boot; with its id that names it for good. None: no such."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # after the name, which may hold spaces and brackets
    return None if fields[0] == "Z" else int(fields[19])


def end_leftovers(children: Sequence[tuple[int, int]], patience: float = 10.0) -> None:
    """Wait for processes of an earlier launcher (id and start time) that are still ending; then end them."""
    deadline = time.monotonic() + patience
    while running := [pid for pid, started in children if start_time(pid) == started]:
        if time.monotonic() > deadline:
            for pid in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            deadline += 1
        time.sleep(0.02)
