"""Installing CosyVoice3 and looking at what is there: on repositories, weights and programs that are made here."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from launcher import cosyvoice, doctor, hub
from launcher.errors import LauncherError
from launcher.main import main
from launcher.progress import Progress

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COSYVOICE_HOME", "COSYVOICE_MODEL", "CHORUS_COSYVOICE_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        [*command, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the shape of the official one, its submodule beside it; its commit is the pinned one."""
    matcha, official = tmp_path / "matcha", tmp_path / "official"
    for folder, file in ((matcha, "matcha/__init__.py"), (official, "cosyvoice/cli/cosyvoice.py")):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).touch()
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "one")
    git(official, "submodule", "--quiet", "add", str(matcha), cosyvoice.MATCHA)
    git(official, "commit", "--quiet", "-m", "two")
    monkeypatch.setattr(cosyvoice, "COMMIT", git(official, "rev-parse", "HEAD"))
    monkeypatch.setattr(doctor, "COMMIT", cosyvoice.COMMIT)
    # Later commits must not be taken.
    (official / "later").touch()
    git(official, "add", ".")
    git(official, "commit", "--quiet", "-m", "three")
    for number, (key, value) in enumerate({"protocol.file.allow": "always"}.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    return official


class TestCheckout:
    def test_has_the_pinned_commit_and_the_submodule(self, upstream: Path, tmp_path: Path) -> None:
        home = tmp_path / "home"
        cosyvoice._checkout(home, str(upstream), Progress())
        assert cosyvoice.is_whole_checkout(home)
        assert not (home / "later").exists()
        assert (home / cosyvoice.MATCHA / "matcha" / "__init__.py").exists()

    def test_goes_on_where_it_was_interrupted(self, upstream: Path, tmp_path: Path) -> None:
        home = tmp_path / "home"
        home.mkdir()
        git(home, "init", "--quiet")
        git(home, "fetch", "--quiet", str(upstream), cosyvoice.COMMIT)
        assert not cosyvoice.is_whole_checkout(home)
        cosyvoice._checkout(home, str(upstream), Progress())
        assert cosyvoice.is_whole_checkout(home)

    def test_a_second_time_nothing_is_fetched(
        self, upstream: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cosyvoice._checkout(tmp_path / "home", str(upstream), Progress())
        cosyvoice._checkout(tmp_path / "home", "/nonexistent", Progress())
        assert "The official code is there" in capsys.readouterr().out

    def test_what_git_says_is_passed_on(self, upstream: Path, tmp_path: Path) -> None:
        with pytest.raises(LauncherError, match=r"git could not fetch: .*--repository"):
            cosyvoice._checkout(tmp_path / "home", str(tmp_path / "nothing"), Progress())

    def test_no_git(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(LauncherError, match="git is needed"):
            cosyvoice._checkout(tmp_path / "home", "/nonexistent", Progress())


class TestInstall:
    def test_says_how_much_disk_it_needs_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr("shutil.disk_usage", lambda folder: usage(0, 0, 5 * 10**9))
        status = main(str(ROOT), ["cosyvoice", "install", "--dir", str(tmp_path / "cosyvoice")])
        printed = capsys.readouterr()
        assert status == 1
        assert "This needs up to 17.8 GB" in printed.out
        assert printed.err.count("\n") == 1
        assert "has 5.0 GB free and 17.8 GB are needed: choose another disk with --dir" in printed.err
        assert list((tmp_path / "cosyvoice").iterdir()) == []

    def test_everything_but_the_network(
        self,
        upstream: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        folder = tmp_path / "cosyvoice"

        def packages(root: Path, venv: Path, say: Progress) -> None:
            (venv / "bin").mkdir(parents=True)
            (venv / "bin" / "python").symlink_to(sys.executable)
            (venv / "chorus.json").write_text(json.dumps({"packages": cosyvoice._wanted_packages(root)}))

        def weights(root: Path, python: Path, into: Path, options: argparse.Namespace, say: Progress) -> Path:
            model = into / "models" / "three"
            model.mkdir(parents=True, exist_ok=True)
            (model / "llm.pt").touch()
            return model

        monkeypatch.setattr(cosyvoice, "_packages", packages)
        monkeypatch.setattr(cosyvoice, "_weights", weights)
        arguments = ["cosyvoice", "install", "--dir", str(folder), "--repository", str(upstream)]
        assert main(str(ROOT), arguments) == 0
        place = cosyvoice.installation(ROOT, {}, folder)
        assert place.python == folder / "venv" / "bin" / "python"
        assert place.environment() == {
            "COSYVOICE_HOME": str(folder / "CosyVoice"),
            "COSYVOICE_MODEL": str(folder / "models" / "three"),
        }
        assert "./chorus doctor --speak --dir" in capsys.readouterr().out
        monkeypatch.setattr(cosyvoice, "_packages", None)
        assert main(str(ROOT), arguments) == 0
        assert "This needs up to 0 bytes" in capsys.readouterr().out

    def test_weights_by_the_hubs_client(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The real subprocess, with the hub's client replaced by one that has small files."""
        client = tmp_path / "sitecustomize.py"
        client.write_text(
            "import sys, types\n"
            "from pathlib import Path\n"
            "files = {name: name.encode() for name in ('cosyvoice3.yaml', 'flow.pt', 'hift.pt', 'campplus.onnx',\n"
            "    'speech_tokenizer_v3.onnx', 'llm.pt', 'llm.rl.pt', 'CosyVoice-BlankEN/config.json')}\n"
            "Entry = types.SimpleNamespace\n"
            "class HubApi:\n"
            "    def __init__(self, endpoint=None): pass\n"
            "    def list_repo_files(self, model, kind):\n"
            "        return [Entry(path=p, size=len(c), sha256='', is_dir=False) for p, c in files.items()]\n"
            "    def download_file(self, model, kind, path, local_dir):\n"
            "        target = Path(local_dir, path)\n"
            "        target.parent.mkdir(parents=True, exist_ok=True)\n"
            "        target.write_bytes(files[path])\n"
            "sys.modules['modelscope_hub'] = types.SimpleNamespace(HubApi=HubApi)\n"
        )
        fake = tmp_path / "python"
        fake.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
        fake.chmod(0o755)
        options = argparse.Namespace(source="modelscope", model="some/model", rl=True, trt=False)
        model = cosyvoice._weights(ROOT, fake, tmp_path / "dir", options, Progress())
        assert model == tmp_path / "dir" / "models" / "model-RL"
        assert (model / "llm.pt").read_bytes() == b"llm.rl.pt"
        assert "Getting 7 of 7 files from ModelScope" in capsys.readouterr().out

    def test_a_hub_that_fails_is_one_line(self, tmp_path: Path) -> None:
        fake = tmp_path / "python"
        fake.write_text("#!/bin/sh\nexit 1\n")
        fake.chmod(0o755)
        options = argparse.Namespace(source="modelscope", model="some/model", rl=False, trt=False)
        with pytest.raises(LauncherError, match="it goes on where it was"):
            cosyvoice._weights(ROOT, fake, tmp_path / "dir", options, Progress())


class TestInstallation:
    def test_nothing_is_there(self, tmp_path: Path) -> None:
        with pytest.raises(LauncherError, match=r"run ./chorus cosyvoice install"):
            cosyvoice.installation(tmp_path, {})

    def test_the_environment_wins(self, tmp_path: Path) -> None:
        values = {
            "CHORUS_COSYVOICE_PYTHON": sys.executable,
            "COSYVOICE_HOME": "/opt/CosyVoice",
            "COSYVOICE_MODEL": "/opt/model",
        }
        place = cosyvoice.installation(tmp_path, values)
        assert (str(place.python), str(place.home), place.model) == tuple(values.values())

    def test_a_python_that_is_gone(self, tmp_path: Path) -> None:
        with pytest.raises(LauncherError, match="is no Python"):
            cosyvoice.installation(
                tmp_path, {"CHORUS_COSYVOICE_PYTHON": "/nonexistent", "COSYVOICE_HOME": "/opt"}
            )

    def test_an_environment_of_another_version(self, tmp_path: Path) -> None:
        python = tmp_path / "venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        values = {"CHORUS_COSYVOICE_PYTHON": str(python), "COSYVOICE_HOME": "/opt"}
        stamp = tmp_path / "venv" / "chorus.json"
        stamp.write_text(json.dumps({"packages": ["of another version"]}))
        with pytest.raises(LauncherError, match=r"another version of Chorus: run ./chorus cosyvoice install"):
            cosyvoice.installation(ROOT, values)
        stamp.write_text(json.dumps({"packages": cosyvoice._wanted_packages(ROOT)}))
        assert cosyvoice.installation(ROOT, values).python == python

    def test_up_says_what_to_do(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        if (ROOT / cosyvoice.FOLDER).exists():
            pytest.skip("CosyVoice3 is installed here")
        status = main(
            str(ROOT), ["up", "--engine", "cosyvoice3", "--data", str(tmp_path / "data"), "--port", "0"]
        )
        assert status == 1
        assert capsys.readouterr().err == (
            "chorus: CosyVoice3 is not installed here: run ./chorus cosyvoice install\n"
        )


# -- The doctor

WHOLE = {
    "python": "3.11",
    "torch": "2.8.0",
    "torchaudio": "2.8.0",
    "transformers": "4.51.3",
    "onnxruntime-gpu": "1.22.0",
    "chorus-server": "0.1.0",
    "cuda": "12.8",
    "gpu": True,
    "free_mib": 20_000,
    "total_mib": 24_000,
    "name": "NVIDIA L20",
    "providers": ["CUDAExecutionProvider", "CPUExecutionProvider"],
}


class Machine:
    """A machine for the doctor: programs on the PATH, an environment that answers what it is told to, files."""

    def __init__(self, folder: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        monkeypatch.setenv("PATH", f"{self.bin}:{os.environ['PATH']}")
        home, model = folder / "CosyVoice", folder / "models" / "three"
        cosyvoice._checkout(home, str(upstream), Progress())
        for name in (
            *hub.NEEDED[:-1],
            hub.LLM,
            "CosyVoice-BlankEN/config.json",
            "CosyVoice-BlankEN/model.safetensors",
        ):
            (model / name).parent.mkdir(parents=True, exist_ok=True)
            (model / name).write_bytes(b"weights")
        (model / hub.MANIFEST).write_text(json.dumps({"flow.pt": {"size": 7, "sha256": ""}}))
        self.home, self.model = home, model
        self.probe(WHOLE)
        self.program("nvidia-smi", "echo 'NVIDIA L20, 570.86.15, 46068, 45000'")
        (folder / "installation.json").write_text(
            json.dumps({"python": str(self.bin / "python"), "home": str(home), "model": str(model)})
        )

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def probe(self, answer: dict[str, Any]) -> None:
        self.program("python", f"cat <<'END'\n{json.dumps(answer)}\nEND")

    def examine(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        status = main(str(ROOT), ["doctor", "--dir", str(self.folder), *arguments])
        return status, capsys.readouterr().out


@pytest.fixture
def machine(tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    folder = tmp_path / "installed"
    folder.mkdir()
    return Machine(folder, upstream, monkeypatch)


class TestDoctor:
    def test_all_is_well(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        status, printed = machine.examine(capsys)
        assert status == 0, printed
        lines = printed.splitlines()
        assert len(lines) <= 24, "one screen"
        assert [line.split()[:2] for line in lines[1:-1]] == [
            ["ok", part] for part in ("GPU", "environment", "torch", "onnxruntime", "code", "weights")
        ]
        assert "NVIDIA L20, driver 570.86.15, 46068 MiB (45000 free)" in printed
        assert "./chorus doctor --speak" in lines[-1]

    def test_a_cpu_will_do_and_is_said_to_be_slow(
        self, machine: Machine, capsys: pytest.CaptureFixture[str]
    ) -> None:
        machine.program("nvidia-smi", "echo 'No devices were found'; exit 0")
        (machine.bin / "nvidia-smi").unlink()
        machine.probe(WHOLE | {"gpu": False, "cuda": None})
        status, printed = machine.examine(capsys)
        assert status == 0
        assert "will run on the CPU, slower than it speaks" in printed

    @pytest.mark.parametrize(
        ("changed", "expected"),
        [
            ({"gpu": False}, "does not see the GPU: a newer driver is needed"),
            ({"free_mib": 900}, "has 900 MiB free and 6000 are needed: end what uses it"),
            ({"torch_error": "ImportError: libcudart"}, "ImportError: libcudart"),
            ({"onnxruntime": "1.32.0"}, "both onnxruntime and onnxruntime-gpu are installed"),
            ({"torch": None, "torchaudio": None}, "has no torch, torchaudio: run ./chorus cosyvoice install"),
            ({"onnx_error": "ImportError: no module"}, "ImportError: no module"),
        ],
    )
    def test_faults_of_the_environment(
        self, machine: Machine, capsys: pytest.CaptureFixture[str], changed: dict[str, Any], expected: str
    ) -> None:
        answer = {name: value for name, value in (WHOLE | changed).items() if value is not None}
        machine.probe(answer)
        status, printed = machine.examine(capsys)
        assert status == 1
        assert expected in printed
        assert "1 thing to mend" in printed

    def test_notes_do_not_fail(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        machine.probe(WHOLE | {"transformers": "5.24.0", "providers": ["CPUExecutionProvider"]})
        status, printed = machine.examine(capsys)
        assert status == 0
        assert "Chorus was tried with 4.51.3" in printed
        assert "without CUDA: new voices take a second longer" in printed

    def test_an_environment_that_does_not_run(
        self, machine: Machine, capsys: pytest.CaptureFixture[str]
    ) -> None:
        machine.program("python", "exit 3")
        assert "does not run (CalledProcessError)" in machine.examine(capsys)[1]

    def test_a_driver_that_does_not_answer(
        self, machine: Machine, capsys: pytest.CaptureFixture[str]
    ) -> None:
        machine.program(
            "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18"
        )
        status, printed = machine.examine(capsys)
        assert status == 1
        assert "version mismatch): reinstall it, or reboot" in printed

    def test_code_and_weights(self, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
        (machine.model / "flow.pt").write_bytes(b"cut")
        assert "flow.pt in" in machine.examine(capsys)[1]
        (machine.model / "hift.pt").unlink()
        assert "lacks hift.pt: run ./chorus cosyvoice install" in machine.examine(capsys)[1]
        git(machine.home, "checkout", "--quiet", "--detach", "HEAD")
        git(machine.home, "commit", "--quiet", "--allow-empty", "-m", "four")
        assert "Chorus was tried with" in machine.examine(capsys)[1]

    def test_nothing_installed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        status = main(str(ROOT), ["doctor", "--dir", str(tmp_path)])
        assert status == 1
        assert "CosyVoice3 is not installed here: run ./chorus cosyvoice install" in capsys.readouterr().out

    def test_speaking_is_done_in_its_environment(
        self, machine: Machine, capfd: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        probe = json.dumps(WHOLE)
        machine.program(
            "python", f'case "$1" in -c) echo \'{probe}\';; *) echo "$@"; echo $COSYVOICE_HOME; exit 7;; esac'
        )
        status = main(
            str(ROOT), ["doctor", "--dir", str(machine.folder), "--speak", "--out", str(tmp_path / "out")]
        )
        printed = capfd.readouterr().out
        assert status == 1
        assert f"-m gpu_worker.engines.cosyvoice3.trial --out {tmp_path / 'out'}" in printed
        assert str(machine.home) in printed
