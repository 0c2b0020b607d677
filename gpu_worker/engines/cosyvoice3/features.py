"""What the model knows a voice by, worked out once per version of the voice."""

from __future__ import annotations

import io
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray

from gpu_worker.engines.base import VoiceSpec
from gpu_worker.engines.cosyvoice3.upstream import MEL_PER_TOKEN, TOKEN_RATE, Upstream

#: Raise it when the meaning of the arrays changes.
FORMAT = "chorus-cosyvoice3-features-1"
#: Upstream asserts both; below half a second there is no voice to hear.
LONGEST_PROMPT = 30.0
SHORTEST_PROMPT = 0.5
LEAST_RATE = 16_000
MEL_BINS = 80
EMBEDDING = 192
_ARRAYS = {"speech_tokens": np.int32, "mel": np.float32, "embedding": np.float32}


class UnusableAudio(Exception):
    """A clip that the model cannot take. `code` is stable; `message` may be shown to the user."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ForeignFeatures(Exception):
    """Bytes that are not features made by this model."""


class ExtractionError(Exception):
    """The model stumbled over a clip that looked usable; the cause is what it raised."""


@dataclass(frozen=True, slots=True)
class VoiceFeatures:
    """`speech_tokens` (n,) int32 at 25 Hz, `mel` (2 n, 80) float32 at 50 Hz, `embedding` (192,) float32."""

    speech_tokens: NDArray[np.int32]
    mel: NDArray[np.float32]
    embedding: NDArray[np.float32]
    fingerprint: str

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the arrays take."""
        return self.speech_tokens.nbytes + self.mel.nbytes + self.embedding.nbytes

    @property
    def seconds(self) -> float:
        """Seconds of prompt."""
        return len(self.speech_tokens) / TOKEN_RATE


def features_to_bytes(features: VoiceFeatures) -> bytes:
    """A NumPy archive without pickle, for object storage."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        format=np.array(FORMAT),
        fingerprint=np.array(features.fingerprint),
        speech_tokens=features.speech_tokens,
        mel=features.mel,
        embedding=features.embedding,
    )
    return buffer.getvalue()


def features_from_bytes(data: bytes, fingerprint: str) -> VoiceFeatures:
    """What `features_to_bytes` wrote; ForeignFeatures where it is damaged or made by another model.

    Nothing in `data` is executed and nothing is unpacked to more than its own size.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
                raise ForeignFeatures("compressed")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            made_by = str(arrays["fingerprint"][()])
            if str(arrays["format"][()]) != FORMAT or made_by != fingerprint:
                raise ForeignFeatures("another format or model")
            found = {name: arrays[name] for name in _ARRAYS}
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ForeignFeatures("not readable") from error
    if any(found[name].dtype != dtype for name, dtype in _ARRAYS.items()):
        raise ForeignFeatures("wrong types")
    return _checked(found["speech_tokens"], found["mel"], found["embedding"], fingerprint)


def _checked(
    tokens: NDArray[np.int32], mel: NDArray[np.float32], embedding: NDArray[np.float32], fingerprint: str
) -> VoiceFeatures:
    shapes = (len(tokens.shape), mel.shape, embedding.shape)
    if shapes != (1, (MEL_PER_TOKEN * len(tokens), MEL_BINS), (EMBEDDING,)) or len(tokens) == 0:
        raise ForeignFeatures(f"wrong shapes: {tokens.shape}, {mel.shape}, {embedding.shape}")
    if (
        len(tokens) > LONGEST_PROMPT * TOKEN_RATE
        or not np.isfinite(mel).all()
        or not np.isfinite(embedding).all()
    ):
        raise ForeignFeatures("values that no clip gives")
    return VoiceFeatures(tokens, mel, embedding, fingerprint)


def check_clip(wav: bytes) -> None:
    """Raise UnusableAudio where the model would refuse or misunderstand the clip."""
    try:
        info = soundfile.info(io.BytesIO(wav))
    except soundfile.LibsndfileError as error:
        raise UnusableAudio("voice_audio_unreadable", "The voice's recording cannot be read.") from error
    if info.samplerate < LEAST_RATE:
        raise UnusableAudio(
            "voice_audio_rate",
            f"The recording has {info.samplerate} Hz; at least {LEAST_RATE} Hz are needed.",
        )
    if not SHORTEST_PROMPT <= info.duration <= LONGEST_PROMPT:
        raise UnusableAudio(
            "voice_audio_length",
            f"The recording has {info.duration:.1f} s; from {SHORTEST_PROMPT:g} to {LONGEST_PROMPT:g} s are usable.",
        )


def extract(upstream: Upstream, wav: bytes) -> VoiceFeatures:
    """The features of a clip (WAV bytes, 0.5-30 s, 16 kHz or more); UnusableAudio, ExtractionError."""
    check_clip(wav)
    try:
        # With an empty text and transcript this is what upstream's add_zero_shot_spk does.
        found = upstream.frontend.frontend_zero_shot("", "", io.BytesIO(wav), upstream.sample_rate, "")
    except Exception as error:
        raise ExtractionError from error
    array = upstream.runtime.array
    try:
        return _checked(
            _whole(found["flow_prompt_speech_token"]),
            np.ascontiguousarray(array(found["prompt_speech_feat"])[0], np.float32),
            np.ascontiguousarray(array(found["flow_embedding"])[0], np.float32),
            upstream.fingerprint,
        )
    except ForeignFeatures as error:
        raise UnusableAudio("voice_audio_unusable", "No voice could be found in the recording.") from error


def source_tokens(upstream: Upstream, wav: bytes) -> NDArray[np.int32]:
    """(n,) speech tokens of a recording whose words another voice shall say; UnusableAudio where it is
    none."""
    check_clip(wav)
    tokens, _ = upstream.frontend._extract_speech_token(io.BytesIO(wav))
    return _whole(tokens)


def _whole(tokens: Any) -> NDArray[np.int32]:
    return np.asarray(tokens.tolist()[0], np.int32)


class FeatureCache:
    """Features of the voices used last, at most `limit` bytes of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, VoiceFeatures] = OrderedDict()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: str) -> VoiceFeatures | None:
        """The features of the voice version `key`, if they are still here."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: str, features: VoiceFeatures) -> None:
        """Keep `features`; those used longest ago make room."""
        old = self._kept.pop(key, None)
        self.nbytes += features.nbytes - (old.nbytes if old else 0)
        self._kept[key] = features
        while self.nbytes > self._limit and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self.nbytes -= dropped.nbytes


def prepare(upstream: Upstream, cache: FeatureCache, voice: VoiceSpec) -> VoiceFeatures:
    """The features of `voice`: from the cache, from what was kept beside the voice, or worked out now and
    kept.

    Raises UnusableAudio, ExtractionError, and whatever the callbacks of `voice` raise.
    """
    found = cache.get(voice.key)
    if found is None:
        found = _kept(upstream, voice)
        if found is None:
            found = extract(upstream, _clip(upstream, voice))
            if voice.store_features is not None:
                voice.store_features(features_to_bytes(found))
        cache.put(voice.key, found)
    return found


def _kept(upstream: Upstream, voice: VoiceSpec) -> VoiceFeatures | None:
    data = voice.features() if voice.features is not None else None
    if not data:
        return None
    try:
        return features_from_bytes(data, upstream.fingerprint)
    except ForeignFeatures:
        return None


def _clip(upstream: Upstream, voice: VoiceSpec) -> bytes:
    if voice.prompt_audio is not None:
        return voice.prompt_audio()
    if voice.preset == SAMPLE_PRESET and upstream.sample is not None:
        return upstream.sample[0]
    raise UnusableAudio(
        "voice_not_available", "This engine speaks in recorded voices only; choose or record one."
    )


#: The one voice that needs no recording of one's own: the clip in upstream's checkout.
SAMPLE_PRESET = "cosyvoice-sample"
