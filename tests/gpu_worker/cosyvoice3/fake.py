"""A stand-in for the official CosyVoice3, in NumPy, with the official traps.

It has the shape of `CosyVoice3Model` and `CosyVoiceFrontEnd` as far as our engine and upstream's own
`inference_*` functions touch them, and it fails as they do: a language model without `<|endofprompt|>` dies
in its thread and leaves a stream waiting for ever; what a call keeps in dictionaries stays there after an
error or an early end; the first long stream changes all later ones; speed is ignored in a stream; a kept
speaker is deaf to instructions; the random generator is everybody's. `test_official.py` holds the same tests
against the real code.
"""

from __future__ import annotations

import hashlib
import io
import random
import threading
import time
import uuid as uuids
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import soundfile

from gpu_worker.engines.cosyvoice3.settings import Settings
from gpu_worker.engines.cosyvoice3.upstream import Upstream

END = 151_646
RATE = 24_000
SAMPLES_PER_TOKEN = RATE // 25
NOTHING = np.zeros((1, 0), np.int32)
NOBODY = np.zeros((0, 192), np.float32)
#: Tokens of sound for one character of text: 0.16 s, plausible for letters and for Chinese characters.
TOKENS_PER_CHARACTER = 4


class FakeOutOfMemory(RuntimeError):
    """The GPU has no memory left."""


class FakeDeviceLost(RuntimeError):
    """The GPU answers no more."""


class FakeLanguageModel:
    """Says tokens that follow from what it reads and hears, and from the random generator."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime
        #: Called before each token with (number of the token, text); tests make it fail, wait or say the same
        #: thing.
        self.before_token: Callable[[int, str], int | None] = lambda number, text: None
        #: How many tokens a text of so many characters gets.
        self.length: Callable[[str], int] = lambda text: TOKENS_PER_CHARACTER * len(text)
        self.calls = 0

    def inference(
        self, *, text: Any, prompt_text: Any, prompt_speech_token: Any, embedding: Any, uuid: str = ""
    ) -> Iterator[int]:
        self.calls += 1
        assert END in text or END in prompt_text, "<|endofprompt|> not detected"
        words = "".join(chr(code) for code in text[0] if code != END)
        heard = b"".join(np.asarray(part).tobytes() for part in (text, prompt_text, prompt_speech_token))
        meaning = int.from_bytes(hashlib.blake2b(heard, digest_size=4).digest())
        for number in range(self.length(words)):
            told = self.before_token(number, words)
            chance = self.runtime.generator().randrange(6561)
            yield told if told is not None else 30 + (meaning + chance) % 6500


class FakeModel:
    """`CosyVoice3Model`."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self.llm = FakeLanguageModel(runtime)
        self.token_hop_len = 25
        self.lock = threading.Lock()
        self.tts_speech_token_dict: dict[str, list[int]] = {}
        self.llm_end_dict: dict[str, bool] = {}
        self.hift_cache_dict: dict[str, Any] = {}
        #: Called with the number of tokens before they become sound; tests make it fail.
        self.before_sound: Callable[[int], None] = lambda tokens: None

    def llm_job(self, text: Any, prompt_text: Any, speech_token: Any, embedding: Any, uuid: str) -> None:
        for token in self.llm.inference(
            text=text,
            prompt_text=prompt_text,
            prompt_speech_token=speech_token,
            embedding=embedding,
            uuid=uuid,
        ):
            self.tts_speech_token_dict[uuid].append(token)
        self.llm_end_dict[uuid] = True

    def vc_job(self, source_speech_token: Any, uuid: str) -> None:
        self.tts_speech_token_dict[uuid] = source_speech_token.flatten().tolist()
        self.llm_end_dict[uuid] = True

    def token2wav(
        self, *, token: Any, embedding: Any, token_offset: int, uuid: str, speed: float = 1.0
    ) -> Any:
        """(1, samples): a tone for each token, as high as the token says, as loud as the voice says."""
        fresh = token[0][token_offset:]
        if not len(fresh):
            raise RuntimeError("Calculated padded input size per channel: (2). Kernel size: (5).")
        self.before_sound(len(fresh))
        loudness = 0.1 + 0.3 * (float(np.abs(embedding).sum()) % 1.0)
        clock = np.arange(int(SAMPLES_PER_TOKEN / speed)) / RATE
        return np.concatenate(
            [loudness * np.sin(2 * np.pi * (100 + value / 10) * clock) for value in fresh]
        ).astype(np.float32)[None]

    def tts(
        self,
        text: Any = NOTHING,
        flow_embedding: Any = NOBODY,
        llm_embedding: Any = NOBODY,
        prompt_text: Any = NOTHING,
        llm_prompt_speech_token: Any = NOTHING,
        flow_prompt_speech_token: Any = NOTHING,
        prompt_speech_feat: Any = None,
        source_speech_token: Any = NOTHING,
        stream: bool = False,
        speed: float = 1.0,
        **kwargs: Any,
    ) -> Iterator[dict[str, Any]]:
        this = str(uuids.uuid1())
        self.tts_speech_token_dict[this], self.llm_end_dict[this] = [], False
        self.hift_cache_dict[this] = None
        if source_speech_token.shape[1] == 0:
            arguments = (text, prompt_text, llm_prompt_speech_token, llm_embedding, this)
            thread = threading.Thread(target=self.llm_job, args=arguments, daemon=True)
        else:
            thread = threading.Thread(target=self.vc_job, args=(source_speech_token, this), daemon=True)
        thread.start()
        offset = 0
        if stream:
            while True:
                time.sleep(0.005)
                hop = self.token_hop_len
                said = self.tts_speech_token_dict[this]
                if len(said) - offset >= hop + 3:
                    sound = self.token2wav(
                        token=np.array([said[: offset + hop]]),
                        embedding=flow_embedding,
                        token_offset=offset,
                        uuid=this,
                    )
                    offset += hop
                    self.token_hop_len = min(100, self.token_hop_len * 2)
                    yield {"tts_speech": sound}
                if self.llm_end_dict[this] and len(self.tts_speech_token_dict[this]) - offset < hop + 3:
                    break
        thread.join()
        sound = self.token2wav(
            token=np.array([self.tts_speech_token_dict[this]]),
            embedding=flow_embedding,
            token_offset=offset,
            uuid=this,
            speed=1.0 if stream else speed,
        )
        yield {"tts_speech": sound}
        for state in (self.tts_speech_token_dict, self.llm_end_dict, self.hift_cache_dict):
            state.pop(this)


class FakeFrontEnd:
    """`CosyVoiceFrontEnd`."""

    def __init__(self) -> None:
        self.spk2info: dict[str, dict[str, Any]] = {}
        #: How often a clip was looked at.
        self.clips = 0

    def _extract_text_token(self, text: str) -> tuple[Any, Any]:
        codes: list[int] = []
        for number, part in enumerate(text.split("<|endofprompt|>")):
            codes += ([END] if number else []) + [ord(character) for character in part]
        return np.array([codes], np.int32).reshape(1, -1), np.array([len(codes)], np.int32)

    def _extract_speech_token(self, prompt_wav: Any) -> tuple[Any, Any]:
        samples = _read(prompt_wav)
        count = len(samples) // SAMPLES_PER_TOKEN
        blocks = samples[: count * SAMPLES_PER_TOKEN].reshape(count, SAMPLES_PER_TOKEN)
        tokens = (np.abs(blocks).sum(axis=1) * 1000).astype(np.int32) % 6561
        return tokens[None], np.array([count], np.int32)

    def frontend_zero_shot(
        self, tts_text: str, prompt_text: str, prompt_wav: Any, resample_rate: int, zero_shot_spk_id: str
    ) -> dict[str, Any]:
        if zero_shot_spk_id:
            inputs = {**self.spk2info[zero_shot_spk_id]}
        else:
            self.clips += 1
            tokens, _ = self._extract_speech_token(prompt_wav)
            level = float(np.abs(_read(prompt_wav)).mean())
            embedding = np.full((1, 192), level, np.float32)
            inputs = {
                "prompt_text": self._extract_text_token(prompt_text)[0],
                "llm_prompt_speech_token": tokens,
                "flow_prompt_speech_token": tokens,
                "prompt_speech_feat": np.repeat(tokens[..., None] / 6561, 2, axis=1)
                .repeat(80, axis=2)
                .astype("f4"),
                "llm_embedding": embedding,
                "flow_embedding": embedding,
            }
        inputs["text"] = self._extract_text_token(tts_text)[0]
        return inputs

    def frontend_instruct2(
        self, tts_text: str, instruct_text: str, prompt_wav: Any, resample_rate: int, zero_shot_spk_id: str
    ) -> dict[str, Any]:
        """As upstream: with a kept speaker, what `frontend_zero_shot` returns has the old `prompt_text`."""
        inputs = self.frontend_zero_shot(tts_text, instruct_text, prompt_wav, resample_rate, zero_shot_spk_id)
        del inputs["llm_prompt_speech_token"]
        return inputs


def _read(wav: Any) -> Any:
    wav.seek(0)
    samples, _ = soundfile.read(wav, dtype="float32")
    return samples


class FakeRuntime:
    """`upstream.Runtime` without a tensor library: arrays are tensors, and the random generator is one for
    all until a thread is given its own.
    """

    device = "cpu"

    def __init__(self) -> None:
        self.everybodys = random.Random(0)
        self._own = threading.local()
        self.releases = 0

    def generator(self) -> random.Random:
        return getattr(self._own, "generator", self.everybodys)

    def tensor(self, array: Any) -> Any:
        return array

    def array(self, tensor: Any) -> Any:
        return np.asarray(tensor, np.float32)

    def seed(self, seed: int) -> None:
        self._own.generator = random.Random(seed)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, FakeOutOfMemory)

    def is_broken(self, error: BaseException) -> bool:
        return isinstance(error, FakeDeviceLost)

    def release(self) -> None:
        self.releases += 1


def load(settings: Settings) -> Upstream:
    """What `official.load` makes of the real package."""
    runtime = FakeRuntime()
    return Upstream(
        model=FakeModel(runtime),
        frontend=FakeFrontEnd(),
        runtime=runtime,
        sample_rate=RATE,
        fingerprint="fake",
        longest=300.0,
        sample=(clip(0), "你好", "zh"),
    )


def clip(number: int, seconds: float = 3.0, rate: int = RATE) -> bytes:
    """A WAV file for the voice `number`: a chord of its own, not speech."""
    clock = np.arange(round(seconds * rate)) / rate
    sound = sum(
        0.1 * np.sin(2 * np.pi * (110 + 37 * number) * harmonic * clock) / harmonic
        for harmonic in range(1, 6)
    ) * (0.4 + 0.05 * number + 0.2 * np.sin(2 * np.pi * (1.5 + number / 7) * clock))
    buffer = io.BytesIO()
    soundfile.write(buffer, sound.astype(np.float32), rate, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
