"""The command as callers have it: its wheel, built and installed into an environment that holds nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from accounts.redis import client as redis_client
from gpu_worker.engines import load_engine
from tests import asgi, factories
from tests.synthesis import speaking

CLIENT = asgi.ROOT / "platform" / "client"


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """The program `chorus`. Without an index: the wheel must need nothing."""
    folder = tmp_path_factory.mktemp("client")
    _must([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=CLIENT)
    (wheel,) = folder.glob("chorus_voice-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    _must([sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "-q", str(wheel)])
    return folder / "venv" / "bin" / "chorus"


def _must(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass
class Command:
    """`chorus`, with a home of its own."""

    program: Path
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments, **options):
        """A process; its standard output and error are pipes."""
        return subprocess.Popen(
            [str(self.program), *map(str, arguments)],
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder), "LANG": "C.UTF-8", **self.environment},
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **options,
        )

    def __call__(self, *arguments, stdin: bytes | None = None):
        """(status, standard output, standard error); never a traceback, never more than a line of error."""
        process = self.start(*arguments, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=60)
        assert b"Traceback" not in err, err.decode()
        return process.returncode, out, err.decode()


@pytest.fixture
def command(installed, tmp_path):
    return Command(installed, tmp_path)


@pytest.fixture(scope="module")
def running(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as streams:
        yield streams


@pytest.fixture
def alice(running):
    redis_client().flushdb()
    factories.preset()
    return factories.owner("Alice")


@pytest.fixture
def chorus(command, running, alice):
    """Signed in as Alice."""
    command.environment |= {"CHORUS_URL": running.url, "CHORUS_API_KEY": alice.secret}
    return command


@pytest.fixture(scope="session")
def engine():
    return load_engine("hibari")


@pytest.fixture
def worker(engine):
    with speaking.worker(engine):
        yield
