"""How busy a worker's GPU is, from NVIDIA's management library. It needs no CUDA context of its own."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from typing import Any

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """`percent` of the last sampling period in which the GPU was busy, and the bytes in use on it by everybody."""

    percent: int | None = None
    memory_bytes: int | None = None


@cache
def _library() -> Any:
    """NVML, ready for questions; None where there is no driver or no binding."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 (no binding, no driver, a driver of another version: all mean no numbers)
        logger.debug("No GPU load is reported: %s", error)
        return None
    return pynvml


def sample(device: str) -> Load:
    """The load of a device as CUDA_VISIBLE_DEVICES names it: an index or a UUID. Of several, the first.

    What cannot be told (no GPU, a MIG slice's utilisation) stays None.
    """
    name = device.split(",")[0].strip()
    library = _library() if name else None
    if library is None:
        return Load()
    try:
        if name.isdigit():
            handle = library.nvmlDeviceGetHandleByIndex(int(name))
        else:
            handle = library.nvmlDeviceGetHandleByUUID(name)
    except library.NVMLError:
        return Load()
    return Load(
        _ask(library, lambda: int(library.nvmlDeviceGetUtilizationRates(handle).gpu)),
        _ask(library, lambda: int(library.nvmlDeviceGetMemoryInfo(handle).used)),
    )


def _ask(library: Any, question: Any) -> int | None:
    try:
        return int(question())
    except library.NVMLError:
        return None
