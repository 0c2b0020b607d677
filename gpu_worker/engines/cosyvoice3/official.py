"""The official package: found, imported, patched (`patches`) and loaded. Nothing else of ours imports torch."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_worker.engines.base import EngineUnavailable
from gpu_worker.engines.cosyvoice3 import patches
from gpu_worker.engines.cosyvoice3.settings import Settings
from gpu_worker.engines.cosyvoice3.upstream import Upstream
from gpu_worker.engines.runtime import release_memory

logger = logging.getLogger(__name__)

#: Seconds of sound, prompt included, that the flow's noise and the vocoder's source hold, and with TensorRT
#: its longest input of 3,000 frames.
LONGEST = 300.0
LONGEST_TRT = 60.0
#: What the model folder must hold.
FILES = (
    "cosyvoice3.yaml",
    "llm.pt",
    "flow.pt",
    "hift.pt",
    "campplus.onnx",
    "speech_tokenizer_v3.onnx",
    "CosyVoice-BlankEN/config.json",
)
#: The transcript of the clip in upstream's `asset/`, from its `example.py`.
SAMPLE = ("zero_shot_prompt.wav", "希望你以后能够做的比我还好呦。", "zh")
_SAMPLED = 1 << 20
_NO_MEMORY = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "allocate memory",
)
_INSTALL = "`./chorus cosyvoice install` gets it"


def load(settings: Settings) -> Upstream:
    """A loaded CosyVoice3; raises EngineUnavailable with what is missing and how to get it."""
    home = find_home(settings)
    folder = find_model(settings, home)
    torch = _import("torch", "PyTorch")
    if settings.threads:
        torch.set_num_threads(settings.threads)
    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        asked = [name for name in ("fp16", "trt", "vllm") if getattr(settings, name)]
        if asked:
            names = ", ".join(f"CHORUS_COSYVOICE_{name.upper()}" for name in asked)
            raise EngineUnavailable(f"{names}: this needs a GPU, and torch finds none")
        logger.warning("CosyVoice3 runs on the CPU: several seconds of computing for each second of speech")
    # Without the two normalisers, of which one would download its rules: our own text comes normalised.
    with patches.logging_kept(), patches.hidden("wetext", "ttsfrd"):
        cosyvoice = _import_package(home)
        if settings.vllm:
            _register_with_vllm()
        try:
            loaded = cosyvoice.CosyVoice3(
                str(folder),
                load_trt=settings.trt,
                load_vllm=settings.vllm,
                fp16=settings.fp16,
                trt_concurrent=settings.concurrency,
            )
        except Exception as error:
            raise EngineUnavailable(
                f"the model in {folder} could not be loaded ({type(error).__name__}: {error}); if a file is "
                "damaged, `./chorus cosyvoice install` replaces it"
            ) from error
    llm = loaded.model.llm
    llm.llm.forward_one_step = patches.without_mask(llm.llm.forward_one_step)
    llm.sampling = sampling = patches.SeededSampling(torch, llm.sampling)
    if settings.vllm:
        llm.vllm.add_request = sampling.seeding(llm.vllm.add_request)
    return Upstream(
        model=loaded.model,
        frontend=loaded.frontend,
        runtime=TorchRuntime(torch, str(loaded.model.device), sampling),
        sample_rate=loaded.sample_rate,
        fingerprint=fingerprint(folder),
        longest=LONGEST_TRT if settings.trt else LONGEST,
        sample=_sample(home),
    )


def find_home(settings: Settings) -> Path:
    """The official checkout; EngineUnavailable where it is not, or not whole."""
    home = settings.home
    if home is None:
        raise EngineUnavailable(f"COSYVOICE_HOME does not name the official checkout; {_INSTALL}")
    if not (home / "cosyvoice" / "cli" / "cosyvoice.py").is_file():
        raise EngineUnavailable(f"COSYVOICE_HOME={home} is no checkout of FunAudioLLM/CosyVoice; {_INSTALL}")
    if not (home / "third_party" / "Matcha-TTS" / "matcha").is_dir():
        raise EngineUnavailable(
            f"{home}/third_party/Matcha-TTS is empty; run `git submodule update --init --recursive` there"
        )
    return home


def find_model(settings: Settings, home: Path) -> Path:
    """The folder with the weights: COSYVOICE_MODEL itself, or where a model of that id was downloaded to.

    Never downloads: nine gigabytes are fetched by a person who knows of it. Raises EngineUnavailable.
    """
    name = settings.model
    places = [Path(name), home / "pretrained_models" / name, home / "pretrained_models" / Path(name).name]
    folder = next((place for place in places if place.is_dir()), None) or _downloaded(name)
    if folder is None:
        raise EngineUnavailable(f"there are no weights {name!r} (COSYVOICE_MODEL); {_INSTALL}")
    missing = [file for file in FILES if not (folder / file).is_file()]
    if missing:
        raise EngineUnavailable(f"{folder} lacks {', '.join(missing)}; {_INSTALL}")
    return folder


def _downloaded(name: str) -> Path | None:
    """Where the hubs' own clients keep the model `name`, if they have it."""
    if name.count("/") != 1:
        return None
    for package in ("modelscope", "huggingface_hub"):
        with contextlib.suppress(Exception):
            hub = importlib.import_module(package)
            return Path(hub.snapshot_download(name, local_files_only=True))
    return None


def _import(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EngineUnavailable(
            f"{name} is not installed for {sys.executable}; `./chorus cosyvoice install` makes an environment "
            "with everything"
        ) from error


def _import_package(home: Path) -> Any:
    """Upstream's `cosyvoice.cli.cosyvoice`, with its ways of reading files replaced."""
    for folder in (home / "third_party" / "Matcha-TTS", home):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    # Said for every segment, about upstream's code.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"cosyvoice\.")
    try:
        patches.import_torchaudio()
        package = importlib.import_module("cosyvoice.cli.cosyvoice")
        frontend: Any = importlib.import_module("cosyvoice.cli.frontend")
    except ImportError as error:
        raise EngineUnavailable(
            f"the official package cannot be imported ({error}); `./chorus cosyvoice install` makes an environment "
            "with what it needs"
        ) from error
    frontend.load_wav = patches.load_wav
    return package


def _register_with_vllm() -> None:
    """What upstream's `vllm_example.py` does before it loads."""
    models = importlib.import_module("cosyvoice.vllm.cosyvoice2")
    _import("vllm", "vLLM").ModelRegistry.register_model(
        "CosyVoice2ForCausalLM", models.CosyVoice2ForCausalLM
    )


def _sample(home: Path) -> tuple[bytes, str, str] | None:
    name, transcript, language = SAMPLE
    try:
        return (home / "asset" / name).read_bytes(), transcript, language
    except OSError:
        return None


def fingerprint(folder: Path) -> str:
    """A name for the models that features are made with: 32 hexadecimal digits over the files' sizes,
    beginnings and ends (the largest has a gigabyte).
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in ("cosyvoice3.yaml", "campplus.onnx", "speech_tokenizer_v3.onnx"):
        with (folder / name).open("rb") as file:
            size = file.seek(0, 2)
            digest.update(f"{name}:{size}:".encode())
            for start in (0, max(0, size - _SAMPLED)):
                file.seek(start)
                digest.update(file.read(_SAMPLED))
    return digest.hexdigest()


class TorchRuntime:
    """`upstream.Runtime` by torch."""

    def __init__(self, torch: Any, device: str, sampling: patches.SeededSampling) -> None:
        self.device = device
        self._torch = torch
        self._sampling = sampling

    def tensor(self, array: NDArray[Any]) -> Any:
        """`array` on the device."""
        return self._torch.from_numpy(array).to(self.device)

    def array(self, tensor: Any) -> NDArray[np.float32]:
        """`tensor` as float32 on the host."""
        found: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
        return found

    def seed(self, seed: int) -> None:
        """Seed the calling thread's sampling."""
        self._sampling.seed(seed)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether GPU or host memory ran out, in the words of torch, cuBLAS, cuDNN or onnxruntime."""
        if isinstance(error, MemoryError | self._torch.OutOfMemoryError):
            return True
        return any(words in str(error) for words in _NO_MEMORY)

    def is_broken(self, error: BaseException) -> bool:
        """Whether the GPU no longer answers: after an illegal access every call of the process fails."""
        if self.device.startswith("cpu"):
            return False
        try:
            self._torch.cuda.synchronize()
            return bool((self._torch.ones(1, device=self.device) + 1).item() != 2.0)
        except Exception:  # noqa: BLE001 - whatever it is, it is the answer
            return True

    def release(self) -> None:
        """Give cached blocks back to the GPU, and freed pages to the system."""
        release_memory()
        if not self.device.startswith("cpu"):
            self._torch.cuda.empty_cache()
