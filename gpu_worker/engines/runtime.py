"""What the engines that run on onnxruntime share: threads, where weights lie, sessions, memory."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_worker.engines.base import EngineUnavailable

if TYPE_CHECKING:
    import onnxruntime


def models_dir() -> Path:
    """Where the launcher puts speech weights: CHORUS_MODELS_DIR, else share/chorus of the environment."""
    return Path(os.environ.get("CHORUS_MODELS_DIR") or Path(sys.prefix) / "share" / "chorus")


def threads() -> int:
    """Threads for one inference: CHORUS_ENGINE_THREADS, else this worker's share of the processors (at least
    1).

    More threads than processors make everything slower, so a container's CPU limit and the number of workers
    on the machine (CHORUS_WORKERS, set by the supervisor) count.
    """
    if chosen := os.environ.get("CHORUS_ENGINE_THREADS"):
        return max(1, int(chosen))
    return max(1, _processors() // max(1, int(os.environ.get("CHORUS_WORKERS") or 1)))


def _processors() -> int:
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))
    except (OSError, ValueError):
        return cores


def session(path: Path, *, intra_threads: int) -> onnxruntime.InferenceSession:
    """An inference session whose memory stays flat: no patterns kept per input length.

    Raises EngineUnavailable where onnxruntime or the file is missing.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineUnavailable(
            "onnxruntime is not installed; install the project with its extra 'cpu'"
        ) from error
    if not path.is_file():
        raise EngineUnavailable(f"{path} is missing; `./chorus up` gets the speech weights")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = intra_threads
    options.inter_op_num_threads = 1
    # Every text has its own length, and a pattern would be kept for each. The arena stays: over 16 texts of 30-330
    # phonemes it was flat at 697 MB from the seventh on, and without it each second of sound took 1.1 s of processor
    # time instead of 0.65.
    options.enable_mem_pattern = False
    # Waiting threads that spin take the processor from the other workers.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def shrink(inference: onnxruntime.InferenceSession, inputs: dict[str, Any]) -> None:
    """Let the arena of `inference` go back to what it was when loaded, after one run with (small) `inputs`."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    inference.run(None, inputs, options)


def settle() -> None:
    """Take what was loaded (a million dictionary entries) out of the garbage collector's rounds: 0.3 s each."""
    gc.collect()
    gc.freeze()


def release_memory() -> None:
    """Give freed heap pages back to the system (glibc keeps them otherwise)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
