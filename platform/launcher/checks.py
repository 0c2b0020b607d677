"""`./chorus test`: what is needed to test, installed; then every check, or pytest with the arguments given."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from launcher.errors import LauncherError
from launcher.install import install
from launcher.process import die_with_parent
from launcher.progress import Progress

EXTRAS = ("embedded", "cpu", "asr", "dev")
#: Speech weights that the tests use; "asr" is what listens to the result.
WEIGHTS = ("kokoro", "hibari", "asr")
#: The first is the same browser without what draws windows: a page takes it a third of the processor time.
LEAN_BROWSER = "chromium-headless-shell"
BROWSERS = (LEAN_BROWSER, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Processes of pytest at once: each has its own database servers, and some tests start a whole service. One more than
#: there are cores, since tests also wait, for processes that start and for time-outs.
MOST_AT_ONCE = 4
#: Without servers; makemigrations warns that it cannot ask the database which migrations have been applied.
_MANAGE = ("python", "-W", "ignore::RuntimeWarning", "manage.py")
_SETTINGS = (("DJANGO_SETTINGS_MODULE", "tests.typing_settings"),)


@dataclass(frozen=True)
class Check:
    """A tool that looks at the code without running it."""

    name: str
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


CHECKS = (
    Check("ruff check", ("ruff", "check", "--quiet", ".")),
    Check("ruff format", ("ruff", "format", "--quiet", "--check", ".")),
    Check("mypy", ("mypy", "--no-error-summary")),
    Check("import-linter", ("lint-imports", "--no-logo")),
    Check("missing migrations", (*_MANAGE, "makemigrations", "--check", "--dry-run"), _SETTINGS),
    Check("untranslated strings", (*_MANAGE, "messages", "--check"), _SETTINGS),
)


def run_checks(root: Path, arguments: Sequence[str]) -> int:
    """The exit status: not 0 when anything failed. The last line is pytest's own."""
    say = Progress()
    os.chdir(root)
    venv = install(root, EXTRAS, say)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(venv / "bin"), os.environ.get("PATH", os.defpath))),
    }
    _prepare(root, venv, environment, say)
    browser = _browser(environment, say)
    if arguments:
        return _stream(["pytest", *arguments], environment)
    running = _Running(environment, say)
    if not browser and environment.get("CI") == "true":
        running.failed.append("browser")
    return _pytest(environment, say, running)


def _prepare(root: Path, venv: Path, environment: Mapping[str, str], say: Progress) -> None:
    steps = {
        "Speech weights are there and checked": ["python", "-m", "launcher.weights", *WEIGHTS],
        "Translations are compiled": [
            "pybabel",
            "--quiet",
            "compile",
            "--domain=django",
            f"--directory={root / 'locale'}",
        ],
    }
    for done, argv in steps.items():
        outcome = _capture(argv, environment)
        if outcome.returncode != 0:
            lines = outcome.stdout.strip().splitlines() or ["no message"]
            raise LauncherError(lines[-1].removeprefix("chorus: "))
        say(done)


def _browser(environment: Mapping[str, str], say: Progress) -> bool:
    """Whether there is a Chromium for the browser tests; root gets Debian's lean one where it is missing."""
    lean = shutil.which(LEAN_BROWSER, path=environment["PATH"]) is not None
    if not lean and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"Installing Debian's {LEAN_BROWSER} for the browser tests")
        quiet = {**environment, "DEBIAN_FRONTEND": "noninteractive"}
        for argv in (
            ["apt-get", "update"],
            ["apt-get", "install", "--yes", "--no-install-recommends", LEAN_BROWSER],
        ):
            outcome = _capture(argv, quiet)
            if outcome.returncode != 0:
                say(
                    f"{' '.join(argv[:2])} failed: {(outcome.stdout.strip().splitlines() or ['no message'])[-1]}"
                )
                break
    if any(shutil.which(name, path=environment["PATH"]) for name in BROWSERS):
        return True
    say(f"The browser tests are skipped: there is no chromium (as root: apt-get install {LEAN_BROWSER})")
    return False


class _Running:
    """The checks, which run beside the tests; one line for each as soon as it has ended, and what it found."""

    def __init__(self, environment: Mapping[str, str], say: Progress) -> None:
        self._say = say
        self._started = time.monotonic()
        self._left = [self._start(check, environment) for check in CHECKS]
        self.failed: list[str] = []

    @staticmethod
    def _start(
        check: Check, environment: Mapping[str, str]
    ) -> tuple[Check, subprocess.Popen[bytes], IO[bytes]]:
        output = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it has been read)
        process = subprocess.Popen(
            check.argv,
            env={**environment, **dict(check.environment)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        return check, process, output

    def tell(self, *, all_of_them: bool = False) -> None:
        """Say what has ended since the last call; wait for `all_of_them`."""
        for check, process, output in self._left[:]:
            if all_of_them:
                process.wait()
            if process.poll() is None:
                continue
            self._left.remove((check, process, output))
            seconds = time.monotonic() - self._started
            with output:
                output.seek(0)
                found = output.read().decode(errors="replace").rstrip()
            if process.returncode == 0:
                self._say(f"passed  {check.name} ({seconds:.1f} s)")
            else:
                self._say(f"FAILED  {check.name} ({seconds:.1f} s)")
                self._say.plain(found)
                self.failed.append(check.name)


def _pytest(environment: Mapping[str, str], say: Progress, running: _Running) -> int:
    """Run pytest beside the checks; its own summary line is held back to be the very last one."""
    colour = ["--color=yes"] if sys.stdout.isatty() else []
    at_once = [
        "-n",
        str(min(MOST_AT_ONCE, 1 + (os.cpu_count() or 1))),
        "--dist=loadfile",
        "--no-loadscope-reorder",
    ]
    process = subprocess.Popen(
        ["pytest", *at_once, *colour],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=die_with_parent(signal.SIGTERM),
    )
    held = ""
    if process.stdout is None:
        raise RuntimeError("pytest has no output to read")
    for line in process.stdout:
        if held:
            say.plain(held)
        running.tell()
        held = line.rstrip("\n")
    status = process.wait()
    running.tell(all_of_them=True)
    failed = [*running.failed, *(["pytest"] if status != 0 else [])]
    say(f"FAILED: {', '.join(failed)}" if failed else "All checks passed")
    say.plain(held)
    return 1 if failed else 0


def _stream(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run it with our own output; its exit status."""
    return subprocess.run(
        argv, env=dict(environment), check=False, preexec_fn=die_with_parent(signal.SIGTERM)
    ).returncode


def _capture(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        env=dict(environment),
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
