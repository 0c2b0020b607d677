"""What NVML is asked, on a stand-in: this needs no GPU."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gpu_worker import gpu_load


class NVMLError(Exception):
    """As pynvml's."""


def _unsupported(handle):
    raise NVMLError


@pytest.fixture
def nvml(monkeypatch):
    """Two devices; the second is a MIG slice that does not tell its utilisation."""

    def by_index(index):
        if index > 1:
            raise NVMLError
        return f"device-{index}"

    module = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=by_index,
        nvmlDeviceGetHandleByUUID=lambda name: {"GPU-abc": "device-0", "MIG-abc": "device-1"}[name],
        nvmlDeviceGetUtilizationRates=lambda handle: (
            SimpleNamespace(gpu=73) if handle == "device-0" else _unsupported(handle)
        ),
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=6 << 30),
    )
    monkeypatch.setitem(sys.modules, "pynvml", module)
    gpu_load._library.cache_clear()
    yield
    gpu_load._library.cache_clear()


@pytest.mark.parametrize("device", ["0", "0,1", "GPU-abc"])
def test_load_and_memory(nvml, device):
    assert gpu_load.sample(device) == gpu_load.Load(73, 6 << 30)


def test_what_cannot_be_told_is_left_out(nvml):
    assert gpu_load.sample("MIG-abc") == gpu_load.Load(None, 6 << 30)


def test_an_unknown_device(nvml):
    assert gpu_load.sample("7") == gpu_load.Load()


def test_no_gpu():
    assert gpu_load.sample("") == gpu_load.Load()


def test_no_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    gpu_load._library.cache_clear()
    assert gpu_load.sample("0") == gpu_load.Load()
    gpu_load._library.cache_clear()
