"""Weights from a model hub, file by file: what it takes is said first, what is there stays, what arrives is
checked.

Runs inside CosyVoice's environment, which has the hubs' own clients; they resume what was interrupted:

    python -m launcher.hub --source modelscope|huggingface --model OWNER/NAME --into DIR [--rl] [--trt]
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

Log = Callable[[str], None]

#: What speaking needs of the model's folder (5.2 of its 9 GB), and what two of the options add.
NEEDED = (
    "cosyvoice3.yaml",
    "flow.pt",
    "hift.pt",
    "campplus.onnx",
    "speech_tokenizer_v3.onnx",
    "CosyVoice-BlankEN/*",
)
LLM, LLM_RL = "llm.pt", "llm.rl.pt"
FOR_TRT = "flow.decoder.estimator.fp32.onnx"
MANIFEST = "chorus-weights.json"
#: Left free on the disk, in bytes: the hubs' clients write beside the file before they move it.
MARGIN = 256 * 1024 * 1024
ATTEMPTS = 3
_BLOCK = 1 << 20


class HubError(Exception):
    """The weights could not be had; the message is one line and says what to do."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on the hub: its path in the model's folder, its size in bytes, its SHA-256 (empty where the hub
    names none, as for small text files).
    """

    path: str
    size: int
    sha256: str


class Hub(Protocol):
    """A model on a hub, by the hub's own client."""

    name: str

    def files(self) -> list[RemoteFile]:
        """All files of the model."""

    def fetch(self, path: str, folder: Path) -> None:
        """Bring one file to `folder`/`path`, going on where an earlier try was interrupted."""


class ModelScope:
    """ModelScope, or what MODELSCOPE_ENDPOINT names, by the client that comes with the `modelscope` package."""

    name = "ModelScope"

    def __init__(self, model: str) -> None:
        self._model = model
        endpoint = os.environ.get("MODELSCOPE_ENDPOINT") or None
        self._api: Any = import_module("modelscope_hub").HubApi(endpoint=endpoint)

    def files(self) -> list[RemoteFile]:
        """All files of the model."""
        return [
            RemoteFile(entry.path, entry.size, entry.sha256 or "")
            for entry in self._api.list_repo_files(self._model, "model")
            if not entry.is_dir
        ]

    def fetch(self, path: str, folder: Path) -> None:
        """Bring one file."""
        self._api.download_file(self._model, "model", path, local_dir=str(folder))


class HuggingFace:
    """Hugging Face, or the mirror that HF_ENDPOINT names, by the `huggingface_hub` package."""

    name = "Hugging Face"

    def __init__(self, model: str) -> None:
        self._model = model
        self._hub: Any = import_module("huggingface_hub")

    def files(self) -> list[RemoteFile]:
        """All files of the model."""
        info = self._hub.HfApi().model_info(self._model, files_metadata=True)
        return [
            RemoteFile(entry.rfilename, int(entry.size or 0), entry.lfs.sha256 if entry.lfs else "")
            for entry in info.siblings
        ]

    def fetch(self, path: str, folder: Path) -> None:
        """Bring one file."""
        self._hub.hf_hub_download(self._model, path, local_dir=str(folder))


HUBS: dict[str, Callable[[str], Hub]] = {"modelscope": ModelScope, "huggingface": HuggingFace}


def wanted(files: Sequence[RemoteFile], *, rl: bool, trt: bool) -> list[RemoteFile]:
    """Those of `files` that are needed; HubError where the hub lacks one."""
    patterns = [*NEEDED, LLM_RL if rl else LLM, *([FOR_TRT] if trt else [])]
    chosen = [file for file in files if any(fnmatch(file.path, pattern) for pattern in patterns)]
    for pattern in patterns:
        if not any(fnmatch(file.path, pattern) for file in chosen):
            raise HubError(f"the model has no {pattern}: is it a CosyVoice3? (--model)")
    return sorted(chosen, key=lambda file: file.path)


def download(hub: Hub, files: Sequence[RemoteFile], folder: Path, say: Log) -> None:
    """Bring `files` to `folder`, checked. Raises HubError; a second call goes on where the first one ended."""
    folder.mkdir(parents=True, exist_ok=True)
    known = _manifest(folder)
    missing = [file for file in files if not is_whole(folder / file.path, file, known)]
    if not missing:
        say(f"All {len(files)} files are in {folder} and whole")
        return
    size = sum(file.size for file in missing)
    free = shutil.disk_usage(folder).free
    say(
        f"Getting {len(missing)} of {len(files)} files from {hub.name}: {amount(size)} ({amount(free)} are free)"
    )
    if free < size + MARGIN:
        raise HubError(
            f"the disk has {amount(free)} free and the weights need {amount(size + MARGIN)}: free some space, or "
            "choose another disk with --dir"
        )
    for number, file in enumerate(missing, start=1):
        say(f"[{number}/{len(missing)}] {file.path}, {amount(file.size)}")
        _bring(hub, file, folder, say)
        known[file.path] = {"size": file.size, "sha256": digest(folder / file.path)}
        (folder / MANIFEST).write_text(json.dumps(known, indent=2, sort_keys=True), encoding="utf-8")
    say(f"The weights are in {folder}")


def _bring(hub: Hub, file: RemoteFile, folder: Path, say: Log) -> None:
    target = folder / file.path
    for attempt in range(1, ATTEMPTS + 1):
        try:
            hub.fetch(file.path, folder)
        except Exception as error:
            problem = explain(error, hub.name)
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise HubError("the disk is full; free some space and run this again, it goes on") from error
            if attempt == ATTEMPTS:
                raise HubError(f"{file.path}: {problem}; run this again, it goes on where it was") from error
            say(f"{file.path}: {problem}; trying again")
            continue
        if is_whole(target, file, {}):
            return
        # The client takes what is there for finished; only without it, it begins anew.
        target.unlink(missing_ok=True)
        say(f"{file.path} arrived damaged (its checksum is wrong); getting it again")
    raise HubError(
        f"{file.path} arrives damaged every time (SHA-256 differs from what {hub.name} says): a proxy may change it; "
        "try another --source"
    )


def is_whole(path: Path, file: RemoteFile, known: dict[str, Any]) -> bool:
    """Whether `path` has the size and checksum of `file`; where the hub names no checksum, what `known` has."""
    try:
        if path.stat().st_size != file.size:
            return False
    except OSError:
        return False
    expected = file.sha256 or str(known.get(file.path, {}).get("sha256", ""))
    return not expected or digest(path) == expected


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def explain(error: BaseException, name: str) -> str:
    """One line for what a hub's client raised."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"{name} refuses access ({status}): the model may need an account; log in with its own client"
    if status == 404:
        return f"{name} has no such model or file (404): check --model"
    if status == 429 or (status is not None and status >= 500):
        return f"{name} cannot answer at the moment ({status})"
    kinds = {kind.__name__ for kind in type(error).__mro__}
    words = " ".join(str(error).split())[:200]
    if kinds & {"ConnectionError", "ConnectTimeout", "Timeout", "LocalEntryNotFoundError", "NetworkError"}:
        return f"no connection to {name} (try the other --source, or set HTTPS_PROXY): {words}"
    return f"{type(error).__name__}: {words}"


def amount(size: float) -> str:
    """A number of bytes in words: `5.2 GB`."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def with_rl(folder: Path) -> Path:
    """A folder beside `folder` that is the same model with the reinforcement-tuned language model in its
    place.

    Upstream loads `llm.pt` and nothing else, and keeps what it compiles in the model's folder: one folder for
    each.
    """
    tuned = folder.with_name(f"{folder.name}-RL")
    tuned.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name in (LLM, LLM_RL, MANIFEST) or path.name.startswith("."):
            continue
        _link(tuned / path.name, path)
    _link(tuned / LLM, folder / LLM_RL)
    return tuned


def _link(link: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(Path("..") / target.parent.name / target.name)


def main(arguments: list[str] | None = None) -> int:
    """Get the weights; prints what happens, and as the last line the folder to use."""
    parser = argparse.ArgumentParser(prog="python -m launcher.hub", description=main.__doc__)
    parser.add_argument("--source", choices=sorted(HUBS), required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--rl", action="store_true")
    parser.add_argument("--trt", action="store_true")
    options = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, flush=True)

    try:
        try:
            hub = HUBS[options.source](options.model)
            files = wanted(hub.files(), rl=options.rl, trt=options.trt)
        except HubError:
            raise
        except Exception as error:
            raise HubError(explain(error, options.source)) from error
        download(hub, files, options.into, say)
        folder = with_rl(options.into) if options.rl else options.into
    except HubError as error:
        print(f"chorus: {error}", file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
