"""`./chorus bench`: what is needed to measure, installed; then the package `benchmarks` has the word."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from launcher.errors import LauncherError
from launcher.install import install
from launcher.process import die_with_parent
from launcher.progress import Progress

EXTRAS = ("embedded", "cpu", "dev")
#: The engines that are measured.
WEIGHTS = ("kokoro", "hibari")


def run_bench(root: Path, arguments: Sequence[str]) -> int:
    """The exit status of the benches."""
    venv = install(root, EXTRAS, Progress())
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(venv / "bin"), os.environ.get("PATH", os.defpath))),
    }
    python = str(venv / "bin" / "python")
    weights = subprocess.run(
        [python, "-m", "launcher.weights", *WEIGHTS],
        cwd=root,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    if weights.returncode != 0:
        lines = weights.stdout.strip().splitlines() or ["no message"]
        raise LauncherError(lines[-1].removeprefix("chorus: "))
    process = subprocess.Popen(
        [python, "-m", "benchmarks", *arguments],
        cwd=root,
        env=environment,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the terminal sends it to both; what was started there is ended there
