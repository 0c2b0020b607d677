"""The virtual environment: made once, and again only when what it should hold has changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from launcher.errors import LauncherError
from launcher.files import read_json
from launcher.process import die_with_parent
from launcher.progress import Progress

#: Two to three times as fast as pip, which brings it and stays the fallback.
UV = "uv==0.13.9"
#: Megabytes from which a download is worth a line.
LARGE_MB = 20
#: What each engine needs beside the project itself.
ENGINE_EXTRAS = {"kokoro": ("cpu",), "hibari": ("cpu",), "cosyvoice3": (), "remote": ()}
_NO_NETWORK = (
    "error sending request",
    "dns error",
    "client error (Connect)",
    "tunnel error",
    "operation timed out",
    "Temporary failure in name resolution",
    "NewConnectionError",
    "No matching distribution found",
    "Connection refused",
    "Network is unreachable",
    "unreachable",
)


def install(root: Path, extras: tuple[str, ...], say: Progress) -> Path:
    """Make sure that `root`/.venv holds the project with `extras`; its folder. LauncherError says why not."""
    venv = root / ".venv"
    wanted = _fingerprint(root)
    if _installed(venv, wanted) >= set(extras):
        return venv
    if not os.access(root, os.W_OK):
        raise LauncherError(
            f"cannot write to {root}: run this as the owner of that folder, or use a clone of your own"
        )
    with _one_at_a_time(root, say):
        present = _installed(venv, wanted)
        if present >= set(extras):
            return venv
        everything = sorted({*extras, *_listed(venv)})
        stamp = venv / "chorus.json"
        if not _usable(venv, root):
            say(f"Making {venv}")
            _make(venv)
        stamp.unlink(missing_ok=True)
        say(f"Installing packages ({', '.join(everything)})")
        _install_packages(root, venv, everything, say)
        stamp.write_text(json.dumps({"root": str(root), "fingerprint": wanted, "extras": everything}))
        say("Packages are installed")
    return venv


def _fingerprint(root: Path) -> str:
    """Changes when the pinned packages or the interpreter do."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    relevant = [project["project"], project["build-system"], list(sys.version_info[:2]), UV]
    return hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()


def _listed(venv: Path) -> set[str]:
    """The extras that were installed, for whichever state of the project."""
    return set(read_json(venv / "chorus.json").get("extras", []))


def _installed(venv: Path, fingerprint: str) -> set[str]:
    """The extras that are there in the wanted versions; empty also when the environment does not work."""
    stamp = read_json(venv / "chorus.json")
    good = stamp.get("fingerprint") == fingerprint and stamp.get("root") == str(venv.parent)
    return set(stamp.get("extras", [])) if good and (venv / "bin" / "python").exists() else set()


def _usable(venv: Path, root: Path) -> bool:
    """Whether packages can be put into it: not moved here from elsewhere, and its interpreter still there."""
    if read_json(venv / "chorus.json").get("root", str(root)) != str(root):
        return False
    try:
        probe = [str(venv / "bin" / "python"), "-c", "import pip, sys; print(*sys.version_info[:2])"]
        found = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return False
    return [int(part) for part in found] == list(sys.version_info[:2])


@contextlib.contextmanager
def _one_at_a_time(root: Path, say: Progress) -> Iterator[None]:
    """Two starts from one clone, with a data folder each, must not install at once."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another start is installing packages here; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(venv: Path) -> None:
    if venv.is_symlink():
        # Making it anew would empty whatever the link leads to: another clone's environment, for instance.
        raise LauncherError(f"{venv} is a link: remove it, so that this clone gets an environment of its own")
    made = _run([sys.executable, "-m", "venv", "--clear", str(venv)])
    if made.returncode != 0 and "ensurepip" in made.stdout:
        # Debian keeps ensurepip in a package of its own; a pip outside the environment can fill one too.
        made = _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)])
        if made.returncode == 0:
            outside = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(venv / "bin" / "python"),
                "install",
                "-q",
                "pip",
            ]
            if _run(outside).returncode != 0:
                raise LauncherError("Python's venv module is incomplete: run `apt-get install python3-venv`")
    if made.returncode != 0:
        raise LauncherError(_explain(made.stdout, f"{venv} cannot be made"))


def _install_packages(root: Path, venv: Path, extras: list[str], say: Progress) -> None:
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--retries=2", "--disable-pip-version-check"]
    project = f".[{','.join(extras)}]"
    uv = venv / "bin" / "uv"
    brought = _run([*pip, UV])
    if brought.returncode == 0:
        with tempfile.TemporaryDirectory(prefix="chorus-uv-") as scratch:
            command = [str(uv), "pip", "install", "--python", python, *_uv_options(scratch), "-e", project]
            done = _run(command, cwd=root, env=_uv_environment(), each=_progress(say))
        if done.returncode == 0:
            return
    # pip reads settings that uv does not (pip.conf): it has the last word, and names the cause.
    done = _run([*pip, "-e", project], cwd=root)
    if done.returncode != 0:
        raise LauncherError(_explain(done.stdout, "the packages cannot be installed"))


def _uv_options(scratch: str) -> list[str]:
    """pip's settings in the environment, in uv's words; a cache that can be written."""
    options = []
    for link in os.environ.get("PIP_FIND_LINKS", "").split():
        options += ["--find-links", link]
    if address := os.environ.get("PIP_INDEX_URL"):
        options += ["--default-index", address]
    for address in os.environ.get("PIP_EXTRA_INDEX_URL", "").split():
        options += ["--index", address, "--index-strategy", "unsafe-best-match"]
    if os.environ.get("PIP_NO_INDEX", "").lower() in {"1", "true", "yes", "on"}:
        options.append("--no-index")
    cache = Path(os.environ.get("UV_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    while not cache.exists():
        cache = cache.parent
    return options if os.access(cache, os.W_OK) else [*options, "--cache-dir", scratch]


def _uv_environment() -> dict[str, str]:
    environment = dict(os.environ)
    if certificates := environment.get("PIP_CERT"):
        environment.setdefault("SSL_CERT_FILE", certificates)
    return environment


def _run(
    command: list[str],
    *,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    each: Callable[[str], None] = lambda line: None,
) -> subprocess.CompletedProcess[str]:
    """Run it; what it wrote, errors too, is in `stdout`, and goes to `each` line by line while it runs."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=die_with_parent(signal.SIGKILL),
    )
    lines = []
    try:
        for line in process.stdout or ():
            lines.append(line)
            each(line.rstrip())
        status = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return subprocess.CompletedProcess(command, status, "".join(lines))


def _progress(say: Progress) -> Callable[[str], None]:
    """Of uv's lines those that tell how far it is: its steps, and the packages that take long."""

    def each(line: str) -> None:
        size = re.fullmatch(r"Downloading \S+ \((\d+(?:\.\d+)?)MiB\)", line)
        if line.startswith(("Resolved ", "Prepared ")) or (size and float(size[1]) >= LARGE_MB):
            say(line)

    return each


def _explain(output: str, what: str) -> str:
    """One line for the failure of a tool that wrote `output`."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = (
        [line for line in lines if line.lower().startswith(("error", "× ", "caused by"))]
        or lines
        or ["no message"]
    )
    if any("No space left" in line for line in lines):
        return f"{what}: the disk is full; free about 2 GB and start again"
    if any(sign in line for line in lines for sign in _NO_NETWORK):
        return (
            f"{what}: no package index can be reached; connect to the network, "
            f"or set PIP_FIND_LINKS to a folder of wheels ({errors[-1]})"
        )
    return f"{what}: {errors[-1]}"
