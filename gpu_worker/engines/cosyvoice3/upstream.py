"""The seam between our engine and the official package: a loaded model, and the few things that need torch.

`official.load` makes one from the real package; the contract tests make one from a fake without torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

#: Speech tokens per second of sound, and mel frames per token (upstream's cosyvoice3.yaml).
TOKEN_RATE = 25
MEL_PER_TOKEN = 2


class Runtime(Protocol):
    """What the engine needs of the tensor library and the device."""

    device: str

    def tensor(self, array: NDArray[Any]) -> Any:
        """`array` as a tensor on the device."""

    def array(self, tensor: Any) -> NDArray[np.float32]:
        """A tensor of sound as float32 on the host."""

    def seed(self, seed: int) -> None:
        """From here on, sampling in the calling thread depends on `seed` alone, whatever other threads do."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether `error` says that there was not enough memory."""

    def is_broken(self, error: BaseException) -> bool:
        """Whether after `error` the device can no longer be used by this process."""

    def release(self) -> None:
        """Give unused memory back to the device and the system."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A loaded CosyVoice3: upstream's `CosyVoice3Model` and `CosyVoiceFrontEnd`.

    `fingerprint` names the models that features of a voice are made with: features of another are of no use.
    `longest` is how many seconds of sound, prompt included, the model can hold.
    """

    model: Any
    frontend: Any
    runtime: Runtime
    sample_rate: int
    fingerprint: str
    longest: float
    #: A clip and its transcript that come with upstream's checkout: (WAV bytes, transcript, language), or
    #: None.
    sample: tuple[bytes, str, str] | None = None
