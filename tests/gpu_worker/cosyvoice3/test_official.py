"""The contract on the official code, with a tiny model of random weights that is made here.

Needs COSYVOICE_HOME (a checkout of FunAudioLLM/CosyVoice with third_party/Matcha-TTS filled) and an
interpreter with torch, onnx and what upstream needs (`./chorus cosyvoice install --python-only` makes one);
skipped elsewhere.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_worker.engines.base import EngineUnavailable, VoiceSpec
from gpu_worker.engines.cosyvoice3 import CosyVoice3, features, official, patches
from gpu_worker.engines.cosyvoice3.calls import Call, inputs_for
from gpu_worker.engines.cosyvoice3.prompt import END, PREFIX, plan
from gpu_worker.engines.cosyvoice3.settings import Settings
from tests.gpu_worker.cosyvoice3 import fake, tiny
from tests.gpu_worker.cosyvoice3.contract import LONG, TEXT, Contract, job, say, voice

HOME = Path(os.environ.get("COSYVOICE_HOME") or "/nonexistent")


def _reason_to_skip() -> str:
    if not (HOME / "cosyvoice").is_dir():
        return "COSYVOICE_HOME names no checkout of the official CosyVoice"
    missing = [name for name in ("torch", "onnx", "transformers") if importlib.util.find_spec(name) is None]
    return f"this interpreter has no {', '.join(missing)}" if missing else ""


pytestmark = [
    pytest.mark.skipif(bool(_reason_to_skip()), reason=_reason_to_skip() or "-"),
    # Upstream and what it imports warn about themselves; that is not ours to fix.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's files, built by the official classes."""
    with patches.logging_kept():
        official._import_package(HOME)
        return tiny.build(tmp_path_factory.mktemp("tiny-cosyvoice3"))


@pytest.fixture(scope="module")
def loaded(model_folder: Path) -> CosyVoice3:
    """The real engine with the tiny model."""
    made = CosyVoice3(Settings(home=HOME, model=str(model_folder), checks=False, threads=1))
    made.load()
    return made


@pytest.fixture
def engine(loaded: CosyVoice3) -> CosyVoice3:
    return loaded


class TestOnTheOfficialCode(Contract):
    """Every promise, on upstream's own classes."""


# -- Against upstream's own functions


def _upstreams_own(loaded: CosyVoice3) -> Any:
    """Upstream's `CosyVoice3` around the same model, as its examples use it."""
    package = official._import_package(HOME)
    own = package.CosyVoice3.__new__(package.CosyVoice3)
    own.model, own.frontend = loaded.upstream.model, loaded.upstream.frontend
    own.sample_rate = loaded.upstream.sample_rate
    return own


def _joined(generator: Iterator[dict[str, Any]]) -> Any:
    return np.concatenate([piece["tts_speech"].numpy()[0] for piece in generator])


@pytest.fixture
def unseeded(loaded: CosyVoice3, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Upstream as it is: one random generator for all, which the test seeds."""
    sampling = loaded.upstream.model.llm.sampling
    monkeypatch.setattr(loaded.upstream.model.llm, "sampling", sampling._sampling)
    return _upstreams_own(loaded)


def _raw(loaded: CosyVoice3, seed: int, *, stream: bool = False, **fields: Any) -> Any:
    """What our call makes, before silences are evened out."""
    given = job(**fields)
    inputs = inputs_for(loaded.upstream, plan(given), loaded.prepare(given.voice))
    return np.concatenate(list(Call(loaded.upstream, inputs, seed=seed, speed=1.0, stream=stream).pieces()))


@pytest.mark.parametrize("stream", [False, True])
def test_zero_shot_is_upstreams_zero_shot(
    loaded: CosyVoice3, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    import torch

    ours = _raw(loaded, 3, stream=stream)
    monkeypatch.setattr(loaded.upstream.model.llm, "sampling", loaded.upstream.model.llm.sampling._sampling)
    torch.manual_seed(3)
    theirs = _joined(
        _upstreams_own(loaded).inference_zero_shot(
            TEXT, f"{PREFIX}{END}你好吗", io.BytesIO(fake.clip(0)), stream=stream, text_frontend=False
        )
    )
    loaded.upstream.model.token_hop_len = 25
    assert np.array_equal(ours, theirs)


def test_instruct_is_upstreams_instruct2(loaded: CosyVoice3, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    ours = _raw(loaded, 3, instruction="dialect-guangdong")
    monkeypatch.setattr(loaded.upstream.model.llm, "sampling", loaded.upstream.model.llm.sampling._sampling)
    torch.manual_seed(3)
    theirs = _joined(
        _upstreams_own(loaded).inference_instruct2(
            TEXT, f"{PREFIX} 请用广东话表达。{END}", io.BytesIO(fake.clip(0)), text_frontend=False
        )
    )
    assert np.array_equal(ours, theirs)


def test_cross_lingual_reads_the_tokens_that_upstream_reads(loaded: CosyVoice3) -> None:
    given = job(voice=voice(transcript=""))
    inputs = inputs_for(loaded.upstream, plan(given), loaded.prepare(given.voice))
    theirs = loaded.upstream.frontend.frontend_cross_lingual(
        f"{PREFIX}{END}{TEXT}", io.BytesIO(fake.clip(0)), 24_000, ""
    )
    ours = [*inputs["prompt_text"][0].tolist(), *inputs["text"][0].tolist()]
    assert ours == theirs["text"][0].tolist()
    assert "llm_prompt_speech_token" not in inputs


def test_conversion_is_upstreams_conversion(loaded: CosyVoice3) -> None:
    from gpu_worker.engines.cosyvoice3.calls import conversion_inputs

    source = features.source_tokens(loaded.upstream, fake.clip(5))
    inputs = conversion_inputs(loaded.upstream, source, loaded.prepare(voice()))
    ours = np.concatenate(list(Call(loaded.upstream, inputs, seed=0, speed=1.0, stream=False).pieces()))
    theirs = _joined(_upstreams_own(loaded).inference_vc(io.BytesIO(fake.clip(5)), io.BytesIO(fake.clip(0))))
    assert np.array_equal(ours, theirs)


# -- The traps are still there


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_upstream_hangs_without_the_special_token(loaded: CosyVoice3, unseeded: Any) -> None:
    model = loaded.upstream.model
    finished = threading.Event()

    def listen() -> None:
        with contextlib.suppress(RuntimeError):
            list(unseeded.inference_zero_shot(TEXT, "你好吗", io.BytesIO(fake.clip(0)), stream=True))
        finished.set()

    threading.Thread(target=listen, daemon=True).start()
    assert not finished.wait(3)
    assert model.tts_speech_token_dict
    for this in model.llm_end_dict:
        model.llm_end_dict[this] = True
    assert finished.wait(30)
    assert model.tts_speech_token_dict, "an error leaves its state behind"
    for state in (model.tts_speech_token_dict, model.llm_end_dict, model.hift_cache_dict):
        state.clear()


def test_upstream_ignores_an_instruction_for_a_kept_speaker(unseeded: Any) -> None:
    frontend = unseeded.frontend
    unseeded.add_zero_shot_spk(f"{PREFIX}{END}你好吗", io.BytesIO(fake.clip(0)), "kept")
    told = frontend.frontend_instruct2(TEXT, f"{PREFIX} 请用广东话表达。{END}", None, 24_000, "kept")
    old = frontend._extract_text_token(f"{PREFIX}{END}你好吗")[0]
    assert told["prompt_text"].tolist() == old.tolist()
    frontend.spk2info.clear()


def test_upstream_leaves_state_behind_after_an_early_end(loaded: CosyVoice3, unseeded: Any) -> None:
    model = loaded.upstream.model
    stream = unseeded.inference_zero_shot(
        LONG, f"{PREFIX}{END}你好吗", io.BytesIO(fake.clip(0)), stream=True, text_frontend=False
    )
    next(stream)
    stream.close()
    assert len(model.tts_speech_token_dict) == 1
    assert model.token_hop_len > 25, "and the next stream begins later"
    for thread in threading.enumerate():
        if "llm_job" in thread.name:
            thread.join(60)
    for state in (model.tts_speech_token_dict, model.llm_end_dict, model.hift_cache_dict):
        state.clear()
    model.token_hop_len = 25


def test_upstreams_sources_of_chance_are_the_sampling_alone(loaded: CosyVoice3) -> None:
    """Flow and vocoder have their noise from loading: that is why a seed for the sampling is a seed for the
    sound.
    """
    import torch

    first = _raw(loaded, 9)
    torch.manual_seed(12345)
    torch.rand(1000)
    assert np.array_equal(first, _raw(loaded, 9))


# -- Patches


def test_cached_and_full_forward_agree(loaded: CosyVoice3) -> None:
    """Newer transformers are off by 0.1 with the mask that upstream passes, which garbles the speech."""
    import torch

    encoder = loaded.upstream.model.llm.llm
    torch.manual_seed(0)
    with torch.inference_mode():
        inputs = torch.randn(1, 12, tiny.HIDDEN)
        whole, _ = encoder.forward_one_step(inputs, masks=torch.ones(1, 12, 12, dtype=torch.bool))
        cache: Any = None
        steps: list[Any] = []
        for length in (5, 1, 1, 3, 1, 1):
            begin = sum(step.shape[1] for step in steps)
            part = inputs[:, begin : begin + length]
            mask = torch.tril(torch.ones(1, length, length)).to(torch.bool)
            out, cache = encoder.forward_one_step(part, masks=mask, cache=cache)
            steps.append(out)
    assert (torch.cat(steps, dim=1) - whole).abs().max().item() < 1e-5


def test_the_root_logger_is_put_back(model_folder: Path) -> None:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    CosyVoice3(Settings(home=HOME, model=str(model_folder), threads=1)).load()
    assert (root.level, root.handlers) == (level, handlers)


def test_clips_are_read_by_soundfile_as_upstream_reads_them(tmp_path: Path) -> None:
    import torch

    stereo = tmp_path / "stereo.wav"
    import soundfile

    soundfile.write(stereo, np.stack([np.ones(16_000), np.zeros(16_000)], axis=1) * 0.5, 16_000)
    speech = patches.load_wav(str(stereo), 16_000)
    assert speech.shape == (1, 16_000)
    assert torch.allclose(speech, torch.tensor(0.25), atol=1e-4)
    assert patches.load_wav(io.BytesIO(stereo.read_bytes()), 24_000).shape == (1, 24_000)
    with pytest.raises(AssertionError):
        patches.load_wav(io.BytesIO(fake.clip(0, rate=8_000)), 16_000)


def test_the_normalisers_are_not_loaded(loaded: CosyVoice3) -> None:
    assert loaded.upstream.frontend.text_frontend == ""


def test_special_tokens_have_the_numbers_that_upstream_expects(loaded: CosyVoice3) -> None:
    from synthesis.instructions import KNOWN_TAGS

    encode = loaded.upstream.frontend.tokenizer.encode
    assert encode(END) == [151_646]
    for tag in KNOWN_TAGS:
        assert len(encode(tag)) == 1, f"{tag} is no token of upstream's"


# -- Features


def test_features_survive_storage(loaded: CosyVoice3) -> None:
    kept: list[bytes] = []
    spec = VoiceSpec(
        key="stored",
        language="zh",
        transcript="你好吗",
        prompt_audio=lambda: fake.clip(4),
        store_features=kept.append,
    )
    first = say(loaded, voice=spec)
    assert len(kept) == 1
    again = VoiceSpec(key="elsewhere", language="zh", transcript="你好吗", features=lambda: kept[0])
    assert np.array_equal(first, say(loaded, voice=again))


def test_the_fingerprint_follows_the_models(loaded: CosyVoice3, model_folder: Path) -> None:
    assert loaded.upstream.fingerprint == official.fingerprint(model_folder)
    campplus = model_folder / "campplus.onnx"
    before = campplus.read_bytes()
    try:
        campplus.write_bytes(before[:-1] + b"x")
        assert official.fingerprint(model_folder) != loaded.upstream.fingerprint
    finally:
        campplus.write_bytes(before)


# -- Weeks


#: 1,000 take about ten minutes on one core.
CALLS = int(os.environ.get("CHORUS_TEST_COSYVOICE_CALLS", "200"))


def test_memory_is_flat_over_many_calls(loaded: CosyVoice3) -> None:
    """All modes in turn, with voices that come and go; the figures are printed with `-s`."""
    from gpu_worker.processes import rss_bytes

    kinds: list[dict[str, Any]] = [
        {},
        {"voice": voice(transcript="")},
        {"instruction": "angry"},
        {"source_audio": lambda: fake.clip(5, 1.0)},
        {"stream": True},
        {"speed": 1.5},
    ]
    figures: list[int] = []
    for number in range(CALLS):
        fields = {"voice": voice(number % 20), **kinds[number % len(kinds)]}
        events = loaded.synthesise([job(text="你好。", seed=number, **fields)])
        if number % 10 == 9:
            next(events)
            events.close()  # type: ignore[attr-defined]
        else:
            list(events)
        if number % 20 == 19:
            loaded.free_memory()
            gc.collect()
            figures.append(round(rss_bytes(os.getpid()) / 2**20))
    print("memory in MiB after each 20 calls:", figures)
    assert figures[-1] - figures[2] < 25


# -- What is missing is said


def test_what_is_missing_is_said(model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailable, match="COSYVOICE_HOME"):
        official.load(Settings())
    with pytest.raises(EngineUnavailable, match="no checkout"):
        official.load(Settings(home=tmp_path))
    with pytest.raises(EngineUnavailable, match="no weights"):
        official.load(Settings(home=HOME, model=str(tmp_path / "nothing")))
    (tmp_path / "llm.pt").touch()
    with pytest.raises(EngineUnavailable, match=r"lacks cosyvoice3\.yaml, flow\.pt"):
        official.load(Settings(home=HOME, model=str(tmp_path)))
    with pytest.raises(EngineUnavailable, match=r"CHORUS_COSYVOICE_TRT.*GPU"):
        official.load(Settings(home=HOME, model=str(model_folder), trt=True))


def test_damaged_weights_are_said(model_folder: Path, tmp_path: Path) -> None:
    for path in model_folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "flow.pt").unlink()
    (tmp_path / "flow.pt").write_bytes(b"not a model")
    with pytest.raises(EngineUnavailable, match="could not be loaded"):
        official.load(Settings(home=HOME, model=str(tmp_path)))
