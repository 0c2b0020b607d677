"""What the model knows a voice by: as bytes, in the cache, and from clips of every kind."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest

from gpu_worker.engines.base import VoiceSpec
from gpu_worker.engines.cosyvoice3.features import (
    FeatureCache,
    ForeignFeatures,
    UnusableAudio,
    VoiceFeatures,
    extract,
    features_from_bytes,
    features_to_bytes,
    prepare,
)
from gpu_worker.engines.cosyvoice3.settings import Settings
from tests.gpu_worker.cosyvoice3 import fake


@pytest.fixture
def upstream():
    return fake.load(Settings())


def some(tokens: int = 50, fingerprint: str = "fake") -> VoiceFeatures:
    return VoiceFeatures(
        np.arange(tokens, dtype=np.int32),
        np.ones((2 * tokens, 80), np.float32),
        np.ones(192, np.float32),
        fingerprint,
    )


class TestBytes:
    def test_there_and_back(self) -> None:
        before = some()
        after = features_from_bytes(features_to_bytes(before), "fake")
        assert after.seconds == 2.0
        for name in ("speech_tokens", "mel", "embedding"):
            assert np.array_equal(getattr(before, name), getattr(after, name))
            assert getattr(before, name).dtype == getattr(after, name).dtype

    def test_of_another_model(self) -> None:
        with pytest.raises(ForeignFeatures):
            features_from_bytes(features_to_bytes(some()), "another")

    @pytest.mark.parametrize("data", [b"", b"PK", b"not a zip at all", features_to_bytes(some())[:-100]])
    def test_damaged(self, data: bytes) -> None:
        with pytest.raises(ForeignFeatures):
            features_from_bytes(data, "fake")

    def test_pickles_are_not_opened(self) -> None:
        opened: list[int] = []

        class Trap:
            def __reduce__(self):
                return (opened.append, (1,))

        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name in ("format", "fingerprint", "speech_tokens", "mel", "embedding"):
                member = io.BytesIO()
                np.lib.format.write_array(member, np.array([Trap()], dtype=object), allow_pickle=True)
                archive.writestr(f"{name}.npy", member.getvalue())
        with pytest.raises(ForeignFeatures):
            features_from_bytes(buffer.getvalue(), "fake")
        with pytest.raises(ForeignFeatures):
            features_from_bytes(pickle.dumps(Trap()), "fake")
        assert opened == []

    def test_a_zip_bomb_is_not_unpacked(self) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("mel.npy", bytes(10_000_000))
        assert len(buffer.getvalue()) < 20_000
        with pytest.raises(ForeignFeatures):
            features_from_bytes(buffer.getvalue(), "fake")

    @pytest.mark.parametrize(
        "changed",
        [
            {"mel": np.ones((99, 80), np.float32)},
            {"mel": np.full((100, 80), np.nan, np.float32)},
            {"embedding": np.ones(100, np.float32)},
            {"speech_tokens": np.arange(50, dtype=np.int64)},
            {"speech_tokens": np.zeros(0, np.int32), "mel": np.zeros((0, 80), np.float32)},
            {"speech_tokens": np.zeros(800, np.int32), "mel": np.zeros((1600, 80), np.float32)},
        ],
    )
    def test_arrays_that_no_clip_gives(self, changed: dict[str, np.ndarray]) -> None:
        good = some()
        arrays = {name: getattr(good, name) for name in ("speech_tokens", "mel", "embedding")} | changed
        data = features_to_bytes(VoiceFeatures(**arrays, fingerprint="fake"))
        with pytest.raises(ForeignFeatures):
            features_from_bytes(data, "fake")


class TestCache:
    def test_has_a_bound_in_bytes(self) -> None:
        cache = FeatureCache(3 * some().nbytes)
        for number in range(10):
            cache.put(f"v{number}", some())
        assert len(cache) == 3
        assert cache.nbytes == 3 * some().nbytes
        assert cache.get("v0") is None
        assert cache.get("v9") is not None

    def test_what_was_used_last_stays(self) -> None:
        cache = FeatureCache(2 * some().nbytes)
        cache.put("a", some())
        cache.put("b", some())
        cache.get("a")
        cache.put("c", some())
        assert cache.get("a") is not None
        assert cache.get("b") is None

    def test_one_that_is_larger_than_the_bound_is_kept_alone(self) -> None:
        cache = FeatureCache(1)
        cache.put("a", some())
        cache.put("b", some())
        assert len(cache) == 1

    def test_replacing_counts_once(self) -> None:
        cache = FeatureCache(10**9)
        cache.put("a", some())
        cache.put("a", some(tokens=100))
        assert cache.nbytes == some(tokens=100).nbytes


class TestPrepare:
    def test_works_out_once_and_keeps_beside_the_voice(self, upstream) -> None:
        kept: list[bytes] = []
        spec = VoiceSpec(
            "v", "zh", prompt_audio=lambda: fake.clip(1), features=lambda: None, store_features=kept.append
        )
        cache = FeatureCache(10**9)
        first = prepare(upstream, cache, spec)
        assert prepare(upstream, cache, spec) is first
        assert upstream.frontend.clips == 1
        assert len(kept) == 1
        again = prepare(upstream, FeatureCache(10**9), VoiceSpec("v", "zh", features=lambda: kept[0]))
        assert np.array_equal(again.mel, first.mel)
        assert upstream.frontend.clips == 1

    @pytest.mark.parametrize("found", [None, b"", b"rubbish", features_to_bytes(some(fingerprint="older"))])
    def test_works_out_again_what_it_cannot_use(self, upstream, found: bytes | None) -> None:
        kept: list[bytes] = []
        spec = VoiceSpec(
            "v", "zh", prompt_audio=lambda: fake.clip(1), features=lambda: found, store_features=kept.append
        )
        prepare(upstream, FeatureCache(10**9), spec)
        assert len(kept) == 1


@pytest.mark.parametrize(
    ("wav", "code"),
    [
        (b"RIFF", "voice_audio_unreadable"),
        (b"", "voice_audio_unreadable"),
        (fake.clip(0, rate=8_000), "voice_audio_rate"),
        (fake.clip(0, seconds=0.3), "voice_audio_length"),
        (fake.clip(0, seconds=30.5), "voice_audio_length"),
    ],
    ids=["damaged", "empty", "telephone", "short", "long"],
)
def test_clips_that_the_model_cannot_take(upstream, wav: bytes, code: str) -> None:
    with pytest.raises(UnusableAudio) as refused:
        extract(upstream, wav)
    assert refused.value.code == code


def test_thirty_seconds_are_taken(upstream) -> None:
    assert extract(upstream, fake.clip(0, seconds=30.0)).seconds == pytest.approx(30.0)
