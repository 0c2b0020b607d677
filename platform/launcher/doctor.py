"""`./chorus doctor`: what CosyVoice3 lacks on this machine, on one screen."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from launcher import cosyvoice, hub
from launcher.cosyvoice import COMMIT, GPU_MIB, Installation, commit_of, is_whole_checkout
from launcher.errors import LauncherError

State = Literal["ok", "note", "fault"]
_INSTALL = "run ./chorus cosyvoice install"
#: Asked inside CosyVoice's environment; prints one line of JSON.
_PROBE = """
import importlib.metadata as packages, json, sys
found = {"python": "%d.%d" % sys.version_info[:2]}
for name in ("torch", "torchaudio", "transformers", "onnxruntime-gpu", "onnxruntime", "modelscope", "chorus-server"):
    try:
        found[name] = packages.version(name)
    except packages.PackageNotFoundError:
        pass
try:
    import torch
    found["cuda"] = torch.version.cuda
    found["gpu"] = torch.cuda.is_available()
    if found["gpu"]:
        free, total = torch.cuda.mem_get_info()
        found["free_mib"], found["total_mib"] = free >> 20, total >> 20
        found["name"] = torch.cuda.get_device_name()
        torch.ones(8, device="cuda").sum().item()
except Exception as error:
    found["torch_error"] = f"{type(error).__name__}: {error}"
try:
    import onnxruntime
    found["providers"] = onnxruntime.get_available_providers()
except Exception as error:
    found["onnx_error"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Finding:
    """One line of the screen: what was looked at, how it is, and what to do."""

    state: State
    part: str
    text: str


def examine(root: Path, options: argparse.Namespace) -> int:
    """Look at everything, print it, and with --speak speak; 0 where CosyVoice3 can be used."""
    print("CosyVoice3 on this machine")
    faults = 0
    place: Installation | None = None
    for finding in _findings(root, options.dir):
        if isinstance(finding, Installation):
            place = finding
            continue
        faults += finding.state == "fault"
        print(f"  {finding.state:6} {finding.part:12} {finding.text}", flush=True)
    if place is None or faults:
        print(f"{faults} thing{'' if faults == 1 else 's'} to mend before CosyVoice3 can speak.")
        return 1
    if not options.speak:
        print("Everything is there. ./chorus doctor --speak loads the model and lets you hear it.")
        return 0
    return _speak(root, place, options)


def _findings(root: Path, folder: Path) -> Iterator[Finding | Installation]:
    gpu = _driver()
    yield gpu
    try:
        place = cosyvoice.installation(root, folder=folder)
    except LauncherError as error:
        yield Finding("fault", "environment", str(error))
        return
    probe = _probe(place.python)
    yield from _environment(place, probe, has_driver=gpu.state == "ok")
    yield _code(place.home)
    yield _weights(place)
    yield place


def _driver() -> Finding:
    query = "name,driver_version,memory.total,memory.free"
    try:
        done = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except FileNotFoundError:
        return Finding(
            "note", "GPU", "no NVIDIA driver: CosyVoice3 will run on the CPU, slower than it speaks"
        )
    except (subprocess.SubprocessError, OSError) as error:
        output = (getattr(error, "stdout", "") or "").strip().splitlines()
        return Finding(
            "fault", "GPU", f"the driver does not answer ({(output or [error])[-1]}): reinstall it, or reboot"
        )
    lines = [[part.strip() for part in line.split(",")] for line in done.stdout.strip().splitlines()]
    if not lines:
        return Finding(
            "note", "GPU", "the driver finds no GPU: CosyVoice3 will run on the CPU, slower than it speaks"
        )
    shown = "; ".join(
        f"{name}, driver {driver}, {total} MiB ({free} free)" for name, driver, total, free in lines
    )
    return Finding("ok", "GPU", shown)


def _probe(python: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [str(python), "-c", _PROBE], capture_output=True, text=True, check=True, timeout=300, cwd="/"
        )
        found = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        return {"error": f"{type(error).__name__}"}
    return found if isinstance(found, dict) else {"error": "no answer"}


def _environment(place: Installation, probe: dict[str, Any], *, has_driver: bool) -> Iterator[Finding]:
    if "error" in probe:
        yield Finding("fault", "environment", f"{place.python} does not run ({probe['error']}): {_INSTALL}")
        return
    missing = [name for name in ("torch", "torchaudio", "transformers", "chorus-server") if name not in probe]
    if missing:
        yield Finding("fault", "environment", f"{place.python} has no {', '.join(missing)}: {_INSTALL}")
    else:
        yield Finding("ok", "environment", f"{place.python} (Python {probe['python']})")
    if "torch" in probe:
        yield _torch(probe, has_driver=has_driver)
    if "transformers" in probe and probe["transformers"] != "4.51.3":
        yield Finding("note", "transformers", f"{probe['transformers']}; Chorus was tried with 4.51.3")
    yield _onnx(probe)


def _torch(probe: dict[str, Any], *, has_driver: bool) -> Finding:
    shown = f"{probe['torch']} with torchaudio {probe.get('torchaudio', '(none)')}"
    if "torch_error" in probe:
        return Finding("fault", "torch", f"{shown}: {probe['torch_error']}"[:300])
    if not probe.get("gpu"):
        if has_driver:
            reason = f"CUDA {probe['cuda']}" if probe.get("cuda") else "a build without CUDA"
            return Finding(
                "fault",
                "torch",
                f"{shown} ({reason}) does not see the GPU: a newer driver is needed, or {_INSTALL}",
            )
        return Finding("note", "torch", f"{shown}, on the CPU")
    free = int(probe.get("free_mib", 0))
    if free < GPU_MIB:
        return Finding(
            "fault",
            "torch",
            f"{probe.get('name')} has {free} MiB free and {GPU_MIB} are needed: end what uses it",
        )
    return Finding(
        "ok", "torch", f"{shown}, CUDA {probe.get('cuda')}, sees {probe.get('name')}, {free} MiB free"
    )


def _onnx(probe: dict[str, Any]) -> Finding:
    version = probe.get("onnxruntime-gpu") or probe.get("onnxruntime")
    if "onnx_error" in probe or not version:
        return Finding("fault", "onnxruntime", f"{probe.get('onnx_error', 'not installed')}: {_INSTALL}")
    if "onnxruntime-gpu" in probe and "onnxruntime" in probe:
        return Finding(
            "fault", "onnxruntime", "both onnxruntime and onnxruntime-gpu are installed; uninstall the first"
        )
    if probe.get("gpu") and "CUDAExecutionProvider" not in probe.get("providers", []):
        return Finding("note", "onnxruntime", f"{version} without CUDA: new voices take a second longer")
    return Finding("ok", "onnxruntime", str(version))


def _code(home: Path) -> Finding:
    if not (home / "cosyvoice" / "cli" / "cosyvoice.py").is_file():
        return Finding("fault", "code", f"{home} is no checkout of FunAudioLLM/CosyVoice: {_INSTALL}")
    if not (home / cosyvoice.MATCHA / "matcha").is_dir():
        return Finding(
            "fault", "code", f"{home}/{cosyvoice.MATCHA} is empty: git submodule update --init --recursive"
        )
    if is_whole_checkout(home):
        return Finding("ok", "code", f"{home} ({COMMIT[:7]})")
    commit = commit_of(home)[:7] or "no git checkout"
    return Finding("note", "code", f"{home} ({commit}); Chorus was tried with {COMMIT[:7]}")


def _weights(place: Installation) -> Finding:
    folder = Path(place.model)
    if not folder.is_dir():
        candidates = [place.home / "pretrained_models" / name for name in (place.model, folder.name)]
        folder = next((path for path in candidates if path.is_dir()), folder)
    if not folder.is_dir():
        return Finding("fault", "weights", f"{place.model} is no folder here: {_INSTALL}")
    needed = [
        *hub.NEEDED[:-1],
        hub.LLM,
        "CosyVoice-BlankEN/config.json",
        "CosyVoice-BlankEN/model.safetensors",
    ]
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        return Finding("fault", "weights", f"{folder} lacks {', '.join(missing)}: {_INSTALL}")
    known = hub._manifest(folder)
    short = [
        name
        for name, entry in known.items()
        if (folder / name).is_file() and (folder / name).stat().st_size != entry.get("size")
    ]
    if short:
        return Finding("fault", "weights", f"{', '.join(short)} in {folder} changed in size: {_INSTALL}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Finding("ok", "weights", f"{folder} ({hub.amount(size)})")


def _speak(root: Path, place: Installation, options: argparse.Namespace) -> int:
    """Speak in every mode in CosyVoice's environment; then, where the service's own environment can, listen
    to it.
    """
    out = options.out.absolute()
    command = [str(place.python), "-m", "gpu_worker.engines.cosyvoice3.trial", "--out", str(out)]
    if options.prompt:
        command += ["--prompt", str(options.prompt.absolute()), "--transcript", options.transcript]
    environment = {
        **os.environ,
        **place.environment(),
        "PYTHONPATH": f"{root}{os.pathsep}{root / 'platform'}",
    }
    done = subprocess.run(command, cwd=root, env=environment, check=False)
    if done.returncode != 0:
        return 1
    listener = root / ".venv" / "bin" / "python"
    if not listener.exists():
        print("To have the words and the voice checked as well, run ./chorus up once and this again.")
        return 0
    command = [str(listener), "-m", "gpu_worker.engines.cosyvoice3.listen", str(out)]
    return subprocess.run(command, cwd=root, env=environment, check=False).returncode
