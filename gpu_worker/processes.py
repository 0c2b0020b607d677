"""What the worker's processes need from Linux: to die with their parent, to hold a name, to know their
size."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import sysconfig
from pathlib import Path

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class NameTaken(Exception):
    """Another process on this machine holds the name."""


def die_with_parent(parent_pid: int, death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send `death_signal` to this process when `parent_pid` ends; exit at once if it already
    has.

    The kernel watches the parent's *thread*: the parent must have started this process from its main thread.
    """
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal))
    if os.getppid() != parent_pid:
        os._exit(1)


def hold_name(name: str) -> socket.socket:
    """Hold `name` on this machine for as long as the returned socket is open; raises NameTaken.

    An abstract Unix socket: no file to clean up, and the kernel lets go of it however the process ends.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0chorus-worker:{name}")
    except OSError as error:
        holder.close()
        raise NameTaken(f"A worker named {name} already runs on this machine.") from error
    return holder


def module_path() -> str:
    """A PYTHONPATH with which another interpreter finds the modules of this project that this one finds, however it
    was started. Not those of its environment: an engine may live in an environment of its own."""
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [Path(entry).absolute() for entry in sys.path if entry and not entry.endswith(".zip")]
    return os.pathsep.join(
        str(folder) for folder in folders if not any(folder.is_relative_to(other) for other in installed)
    )


def rss_bytes(pid: int) -> int:
    """Resident memory of `pid` in bytes; 0 when there is no such process."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def offer_to_oom_killer(score: int = 500) -> None:
    """Make this process the one that the kernel kills when memory runs out: its loss costs a reload, while
    the loss of its parent or of a database costs more. Raising one's own score needs no privilege."""
    try:
        Path("/proc/self/oom_score_adj").write_text(str(score))
    except OSError:
        return  # some sandboxes forbid it, and nothing depends on it


def step_back(by: int = 10) -> None:
    """Let everybody else on this machine go first: who speaks computes for seconds, who answers for milliseconds.

    Where an engine uses all cores, pages and `/healthz` would otherwise wait for their share of time like one more of
    its threads.
    """
    with contextlib.suppress(OSError):  # some sandboxes forbid it, and nothing depends on it
        os.nice(by)


def usable_cores() -> int:
    """Cores that this process may use: its affinity, cut to the container's CPU limit (cgroup v2), at least
    1."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, int(quota) // int(period))
    except (OSError, ValueError):
        return cores
    return max(1, cores)
