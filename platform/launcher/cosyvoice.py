"""`./chorus cosyvoice install` and `./chorus doctor`: from a bare GPU machine to CosyVoice3, and what is
wrong with it.

Everything lies in one folder (`.chorus-cosyvoice` beside this program, or --dir): `venv`, the official
checkout, the weights, and `installation.json`, which says where they are. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launcher import install
from launcher.errors import LauncherError
from launcher.files import read_json
from launcher.hub import HUBS, amount
from launcher.progress import Progress

REPOSITORY = "https://github.com/FunAudioLLM/CosyVoice.git"
#: The state of upstream that our patches are held against (March 2026).
COMMIT = "ace7c47f41bbd303aa6bf1ea80e6f9fbd595cd40"
MATCHA = "third_party/Matcha-TTS"
MODEL = "FunAudioLLM/Fun-CosyVoice3-0.5B-2512"
FOLDER = ".chorus-cosyvoice"
#: Bytes that the parts need: the packages (torch with its CUDA libraries) while they are unpacked, the
#: checkout, the weights without and with the reinforcement-tuned language model.
VENV_BYTES = 12_000_000_000
CHECKOUT_BYTES = 300_000_000
WEIGHTS_BYTES = 5_500_000_000
TRT_BYTES = 3_000_000_000
#: Memory of the GPU in MiB that the weights and one segment need.
GPU_MIB = 6_000


@dataclass(frozen=True)
class Installation:
    """Where CosyVoice3 is on this machine."""

    python: Path
    home: Path
    model: str

    def environment(self) -> dict[str, str]:
        """What its workers need in their environment."""
        return {"COSYVOICE_HOME": str(self.home), "COSYVOICE_MODEL": self.model}


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], root: Path) -> None:
    """Add `cosyvoice install` and `doctor` to the launcher's command line."""
    place = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    place.add_argument(
        "--dir",
        type=Path,
        default=root / FOLDER,
        help=f"folder for environment, checkout and weights (default: {FOLDER} beside this program)",
    )
    cosyvoice = subparsers.add_parser("cosyvoice", help="install CosyVoice3 on a GPU machine")
    actions = cosyvoice.add_subparsers(dest="action", required=True, metavar="install")
    get = actions.add_parser(
        "install", parents=[place], help="get environment, checkout and weights; goes on if interrupted"
    )
    get.add_argument(
        "--source",
        choices=sorted(HUBS),
        default="modelscope",
        help="hub of the weights (default: %(default)s)",
    )
    get.add_argument("--model", default=MODEL, help="the model's id on the hub (default: %(default)s)")
    get.add_argument(
        "--rl", action="store_true", help="the reinforcement-tuned language model: fewer wrong words"
    )
    get.add_argument("--trt", action="store_true", help="also what TensorRT needs (CHORUS_COSYVOICE_TRT=1)")
    get.add_argument("--python-only", action="store_true", help="only the environment")
    get.add_argument("--repository", default=REPOSITORY, help="where to clone the official code from")
    doctor = subparsers.add_parser(
        "doctor", parents=[place], help="say what CosyVoice3 lacks on this machine"
    )
    doctor.add_argument(
        "--speak", action="store_true", help="load the model, speak in every mode, listen to it"
    )
    doctor.add_argument("--out", type=Path, default=Path("doctor"), help="folder for what --speak makes")
    doctor.add_argument(
        "--prompt", type=Path, help="speak in the voice of this recording (with --transcript)"
    )
    doctor.add_argument("--transcript", default="", help="what is said in --prompt")


def run(root: Path, options: argparse.Namespace) -> int:
    """Carry out `cosyvoice …` or `doctor`; the exit status. Raises LauncherError."""
    if options.command == "doctor":
        from launcher.doctor import examine

        return examine(root, options)
    _install(root, options, Progress())
    return 0


def installation(
    root: Path, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> Installation:
    """Where CosyVoice3 is: what the environment names, else what `install` made. LauncherError where there is
    none.

    COSYVOICE_HOME, COSYVOICE_MODEL and CHORUS_COSYVOICE_PYTHON are for those who have set it up by
    themselves.
    """
    values = os.environ if environ is None else environ
    made = read_json((folder or root / FOLDER) / "installation.json")
    python = values.get("CHORUS_COSYVOICE_PYTHON") or made.get("python")
    home = values.get("COSYVOICE_HOME") or made.get("home")
    model = values.get("COSYVOICE_MODEL") or made.get("model")
    if not (python and home):
        raise LauncherError("CosyVoice3 is not installed here: run ./chorus cosyvoice install")
    if not os.access(str(python), os.X_OK):
        raise LauncherError(f"{python} is no Python: run ./chorus cosyvoice install")
    # Only where we made it: what is in another environment is its owner's affair.
    packages = read_json(Path(python).parent.parent / "chorus.json").get("packages")
    if packages is not None and packages != _wanted_packages(root):
        raise LauncherError(
            f"{python} has the packages of another version of Chorus: run ./chorus cosyvoice install again"
        )
    return Installation(Path(python), Path(home), str(model or MODEL))


# --- Installing
# -----------------------------------------------------------------------------------------------------


def _install(root: Path, options: argparse.Namespace, say: Progress) -> None:
    folder: Path = options.dir.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LauncherError(
            f"{folder} cannot be made ({error.strerror}): choose another with --dir"
        ) from None
    venv, home = folder / "venv", folder / "CosyVoice"
    python = venv / "bin" / "python"
    has_packages = read_json(venv / "chorus.json").get("packages") == _wanted_packages(root)
    need = 0 if has_packages else VENV_BYTES
    if not options.python_only:
        need += CHECKOUT_BYTES if not is_whole_checkout(home) else 0
        need += WEIGHTS_BYTES + (TRT_BYTES if options.trt else 0) if not _has_weights(folder) else 0
    check_disk(folder, need, say)
    if not has_packages:
        _packages(root, venv, say)
    if options.python_only:
        say(f"The environment is there: {python}")
        return
    _checkout(home, options.repository, say)
    model = _weights(root, python, folder, options, say)
    made = Installation(python, home, str(model))
    (folder / "installation.json").write_text(
        json.dumps({name: str(value) for name, value in asdict(made).items()} | {"commit": COMMIT}, indent=2)
    )
    say("CosyVoice3 is installed")
    elsewhere = "" if folder == (root / FOLDER).absolute() else f" --dir {folder}"
    say.plain(f"Next: ./chorus doctor --speak{elsewhere}, then ./chorus up --engine cosyvoice3")
    if elsewhere:
        say.plain(
            "For `up`, set "
            + " ".join(f"{name}={value}" for name, value in made.environment().items())
            + f" CHORUS_COSYVOICE_PYTHON={python}"
        )


def check_disk(folder: Path, need: int, say: Progress) -> None:
    """Say how much disk is needed before anything is fetched; LauncherError where it is not there."""
    free = shutil.disk_usage(folder).free
    say(f"This needs up to {amount(need)} in {folder}; {amount(free)} are free")
    if free < need:
        raise LauncherError(
            f"{folder} has {amount(free)} free and {amount(need)} are needed: choose another disk with --dir"
        )


def _has_weights(folder: Path) -> bool:
    return any((folder / "models").glob("*/llm*.pt"))


def _wanted_packages(root: Path) -> list[Any]:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [project["dependencies"], project["optional-dependencies"]["gpu"], list(sys.version_info[:2])]


def _packages(root: Path, venv: Path, say: Progress) -> None:
    """The environment: the project itself with what `gpu` pins. torch brings CUDA; only the driver must be
    there.
    """
    stamp = venv / "chorus.json"
    if not install._usable(venv, root):
        say(f"Making {venv}")
        install._make(venv)
    stamp.unlink(missing_ok=True)
    say("Installing packages (torch with CUDA and about 140 others, 8 GB; some minutes)")
    install._install_packages(root, venv, ["gpu"], say)
    stamp.write_text(json.dumps({"root": str(root), "packages": _wanted_packages(root)}))
    say("Packages are installed")


def is_whole_checkout(home: Path) -> bool:
    """Whether the official code is there in the state that we were written for."""
    needed = (home / "cosyvoice" / "cli" / "cosyvoice.py", home / MATCHA / "matcha" / "__init__.py")
    return all(path.is_file() for path in needed) and commit_of(home) == COMMIT


def commit_of(home: Path) -> str:
    """The commit that is checked out at `home`, or an empty string."""
    if not (home / ".git").exists():
        return ""
    done = subprocess.run(
        ["git", "-C", str(home), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _checkout(home: Path, repository: str, say: Progress) -> None:
    """The official code at the pinned commit, with its Matcha-TTS; goes on where it was interrupted."""
    if is_whole_checkout(home):
        say(f"The official code is there ({COMMIT[:7]})")
        return
    if shutil.which("git") is None:
        raise LauncherError(
            "git is needed to get the official code: install it, for example by apt-get install git"
        )
    say(f"Getting the official code from {repository} ({COMMIT[:7]})")
    home.mkdir(parents=True, exist_ok=True)
    steps = [
        ["init", "--quiet"],
        ["fetch", "--quiet", "--depth", "1", repository, COMMIT],
        ["checkout", "--quiet", "--force", COMMIT],
        ["submodule", "--quiet", "update", "--init", "--depth", "1", MATCHA],
    ]
    for step in steps:
        _git(home, step)
    if not is_whole_checkout(home):
        raise LauncherError(
            f"{home} is not the official code after all: delete that folder and run this again"
        )


def _git(home: Path, arguments: list[str]) -> None:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    # Seldom, but seen: a connection that stands still for ever.
    command = [
        "git",
        "-c",
        "http.lowSpeedLimit=1000",
        "-c",
        "http.lowSpeedTime=60",
        "-C",
        str(home),
        *arguments,
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
    raise LauncherError(
        f"git could not {arguments[0]}: {lines[-1].strip()}; is the network there? Another address can be given "
        "with --repository"
    )


def _weights(root: Path, python: Path, folder: Path, options: argparse.Namespace, say: Progress) -> Path:
    """The weights, by the hub's own client in CosyVoice's environment, whose progress is seen as it is."""
    into = folder / "models" / options.model.rpartition("/")[2]
    say(f"Getting the weights {options.model}")
    command = [
        *(str(python), "-m", "launcher.hub", "--source", options.source),
        *("--model", options.model, "--into", str(into)),
        *(["--rl"] if options.rl else []),
        *(["--trt"] if options.trt else []),
    ]
    environment = {**os.environ, "PYTHONPATH": str(root / "platform")}
    last = ""
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if last:
                say(last)
            last = line.rstrip()
    if process.returncode != 0:
        raise LauncherError(
            "the weights are not all there (see above); run this again, it goes on where it was"
        )
    return Path(last)
