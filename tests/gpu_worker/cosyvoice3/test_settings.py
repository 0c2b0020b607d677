"""What an operator can set, and what is said about values that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_worker.engines.base import EngineUnavailable
from gpu_worker.engines.cosyvoice3.settings import MODEL, Settings


def test_safe_without_anything() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings(home=None, model=MODEL)
    assert (settings.fp16, settings.trt, settings.vllm) == (False, False, False)
    assert settings.concurrency == 1


def test_everything_from_the_environment() -> None:
    settings = Settings.from_environment(
        {
            "COSYVOICE_HOME": "/opt/cosyvoice",
            "COSYVOICE_MODEL": "/models/three",
            "CHORUS_COSYVOICE_FP16": "yes",
            "CHORUS_COSYVOICE_TRT": "1",
            "CHORUS_COSYVOICE_VLLM": "off",
            "CHORUS_COSYVOICE_CONCURRENCY": "4",
            "CHORUS_COSYVOICE_TIMEOUT": "30",
            "CHORUS_COSYVOICE_ATTEMPTS": "5",
            "CHORUS_COSYVOICE_CACHE_MB": "64",
            "CHORUS_COSYVOICE_CHECKS": "0",
            "CHORUS_ENGINE_THREADS": "2",
        }
    )
    assert settings == Settings(
        home=Path("/opt/cosyvoice"),
        model="/models/three",
        fp16=True,
        trt=True,
        vllm=False,
        concurrency=4,
        timeout=30.0,
        attempts=5,
        cache_bytes=64 * 2**20,
        checks=False,
        threads=2,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHORUS_COSYVOICE_FP16", "maybe"),
        ("CHORUS_COSYVOICE_CONCURRENCY", "0"),
        ("CHORUS_COSYVOICE_CONCURRENCY", "many"),
        ("CHORUS_COSYVOICE_ATTEMPTS", "-1"),
    ],
)
def test_nonsense_is_named(name: str, value: str) -> None:
    with pytest.raises(EngineUnavailable, match=name):
        Settings.from_environment({name: value})


def test_the_engine_can_be_imported_without_torch() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import gpu_worker.engines.cosyvoice3; "
        "print([name for name in ('torch', 'torchaudio', 'onnxruntime', 'cosyvoice') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
