"""What is changed about the official package, and about what it imports, without touching its files.

Each is held against the real code by `tests/gpu_worker/cosyvoice3/test_official.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import soundfile

#: Upstream's own lowest rate for a clip, in Hz.
LEAST_RATE = 16_000


@contextlib.contextmanager
def logging_kept() -> Iterator[None]:
    """Put the root logger back as it was: importing upstream sets it to DEBUG and gives it a handler, for the
    whole process, and upstream logs every user's words.
    """
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    # Upstream's `basicConfig` adds a handler only where there is none yet.
    root.addHandler(logging.NullHandler())
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextlib.contextmanager
def hidden(*modules: str) -> Iterator[None]:
    """Make `import` fail for `modules`, as if they were not installed."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(dict.fromkeys(modules))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def import_torchaudio() -> Any:
    """torchaudio, without its binary part where that does not fit the torch that is installed.

    Wheels of torchaudio link the CUDA that they were built for and fail to import beside a CPU build of
    torch. Upstream needs the filter bank and the resampler, which are plain Python.
    """
    try:
        return importlib.import_module("torchaudio")
    except OSError:
        pass
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]:
        del sys.modules[name]
    stand_in = types.ModuleType("torchaudio._extension")
    stand_in.__dict__.update(
        _IS_TORCHAUDIO_EXT_AVAILABLE=False,
        _IS_ALIGN_AVAILABLE=False,
        _IS_RIR_AVAILABLE=False,
        _check_cuda_version=lambda: None,
        fail_if_no_align=lambda function: function,
        fail_if_no_rir=lambda function: function,
        lazy_import_sox_ext=lambda: None,
    )
    sys.modules[stand_in.__name__] = stand_in
    return importlib.import_module("torchaudio")


def load_wav(wav: Any, target_sr: int, min_sr: int = LEAST_RATE) -> Any:
    """Upstream's `load_wav` by soundfile: (1, samples) float32 at `target_sr`, from a path or a file in
    memory.

    `torchaudio.load` needs torchcodec, and with it FFmpeg, since 2.9. Raises AssertionError below `min_sr`,
    as upstream does.
    """
    torch, torchaudio = importlib.import_module("torch"), importlib.import_module("torchaudio")
    if hasattr(wav, "seek"):
        wav.seek(0)
    samples, rate = soundfile.read(wav, dtype="float32", always_2d=True)
    speech = torch.from_numpy(samples.mean(axis=1)).unsqueeze(0)
    if rate != target_sr:
        assert rate >= min_sr, f"wav sample rate {rate} must be greater than {target_sr}"  # noqa: S101
        speech = torchaudio.transforms.Resample(orig_freq=rate, new_freq=target_sr)(speech)
    return speech


class _NoMask:
    """An attention mask that is none, whichever part of it is asked for."""

    def __getitem__(self, _: object) -> None:
        return None


def without_mask(forward_one_step: Callable[..., Any]) -> Callable[..., Any]:
    """Upstream's `Qwen2Encoder.forward_one_step` with the plain causal mask that it means.

    It passes the mask of the new tokens alone beside a cache of all earlier ones. transformers up to 4.51 saw
    through that; from 4.57 on the result is off by 0.1 and the speech garbled. There is one sequence and no
    padding, so no mask is the right mask for every version.
    """

    def step(xs: Any, masks: Any, cache: Any = None) -> Any:
        return forward_one_step(xs, masks=_NoMask(), cache=cache)

    return step


class SeededSampling:
    """Upstream's sampling of the next token, seeded for each call instead of by the process's one generator.

    On the CPU, where the scores (6,761 numbers) are sampled as fast as on a GPU, whose every comparison would
    be waited for: so the same scores and seed give the same token on any device.
    """

    def __init__(self, torch: Any, sampling: Callable[..., int]) -> None:
        self._torch = torch
        self._sampling = sampling
        self._lock = threading.Lock()
        self._calls = threading.local()

    def seed(self, seed: int) -> None:
        """Let `seed` decide what the calling thread samples from here on."""
        self._calls.seed = seed
        self._calls.state = self._torch.Generator().manual_seed(seed).get_state()

    def __call__(self, scores: Any, decoded: list[int], sampling: int) -> int:
        """The next token, as upstream chooses it."""
        with self._lock:
            self._torch.set_rng_state(self._calls.state)
            token = self._sampling(scores.cpu(), decoded, sampling)
            self._calls.state = self._torch.get_rng_state()
        return token

    def seeding(self, add_request: Callable[..., None]) -> Callable[..., None]:
        """vLLM's `add_request` with the calling thread's seed put into the parameters."""

        def add(request_id: str, prompt: Any, params: Any) -> None:
            params.seed = self._calls.seed % 2**32
            add_request(request_id, prompt, params)

        return add
