"""What an operator can set about CosyVoice3, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_worker.engines.base import EngineUnavailable

MODEL = "FunAudioLLM/Fun-CosyVoice3-0.5B-2512"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Settings:
    """One process's CosyVoice3.

    `home` is the official checkout, `model` a folder with weights or a model id. `fp16`, `trt` and `vllm` are
    upstream's own switches; all three need a GPU and are off unless asked for, since fp16 with TensorRT has
    been reported to give silence. `concurrency` is how many segments are spoken at once; each takes about 1
    GB of GPU memory beside the weights. `timeout` is in seconds per attempt at a segment, 0 for what suits
    the device. `attempts` is how often a segment is tried, with another seed each time, before it fails.
    `cache_bytes` bounds the features of voices kept in memory (a 10 s prompt has 170 kB).
    """

    home: Path | None = None
    model: str = MODEL
    fp16: bool = False
    trt: bool = False
    vllm: bool = False
    concurrency: int = 1
    timeout: float = 0.0
    attempts: int = 3
    cache_bytes: int = 128 * 1024 * 1024
    checks: bool = True
    threads: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """The settings that COSYVOICE_HOME, COSYVOICE_MODEL and CHORUS_COSYVOICE_* name; EngineUnavailable
        for a value that makes no sense."""
        values = os.environ if environ is None else environ
        home = values.get("COSYVOICE_HOME", "")
        return cls(
            home=Path(home) if home else None,
            model=values.get("COSYVOICE_MODEL") or MODEL,
            fp16=_boolean(values, "CHORUS_COSYVOICE_FP16", default=False),
            trt=_boolean(values, "CHORUS_COSYVOICE_TRT", default=False),
            vllm=_boolean(values, "CHORUS_COSYVOICE_VLLM", default=False),
            concurrency=_integer(values, "CHORUS_COSYVOICE_CONCURRENCY", 1, least=1, most=64),
            timeout=float(_integer(values, "CHORUS_COSYVOICE_TIMEOUT", 0, least=0, most=86_400)),
            attempts=_integer(values, "CHORUS_COSYVOICE_ATTEMPTS", 3, least=1, most=10),
            cache_bytes=_integer(values, "CHORUS_COSYVOICE_CACHE_MB", 128, least=1, most=65_536)
            * 1024
            * 1024,
            checks=_boolean(values, "CHORUS_COSYVOICE_CHECKS", default=True),
            threads=_integer(values, "CHORUS_ENGINE_THREADS", 0, least=0, most=1024),
        )


def _boolean(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = values.get(name)
    if value is None:
        return default
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise EngineUnavailable(f"{name} is {value!r}; say 1 or 0")


def _integer(values: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    value = values.get(name, "")
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise EngineUnavailable(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    return number
