"""What `./chorus doctor --speak` runs: a sentence in every mode, and whether it sounds as it should."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from gpu_worker.engines.base import EngineUnavailable, VoiceSpec
from gpu_worker.engines.cosyvoice3 import CosyVoice3, listen, trial
from gpu_worker.engines.cosyvoice3.features import SAMPLE_PRESET
from gpu_worker.engines.cosyvoice3.settings import Settings
from tests.gpu_worker.cosyvoice3 import fake


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> CosyVoice3:
    made = CosyVoice3(Settings(), loader=fake.load)
    made.load()
    monkeypatch.setattr(trial, "CosyVoice3", lambda: made)
    return made


def test_speaks_in_every_mode(engine: CosyVoice3, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trial.main(["--out", str(tmp_path)]) == 0
    made = json.loads((tmp_path / "trial.json").read_text())
    assert [entry["name"] for entry in made] == [
        "zero-shot", "stream", "cross-lingual", "conversion", "faster", "cantonese", "happy", "tags",
    ]  # fmt: skip
    assert all((tmp_path / entry["file"]).stat().st_size > 10_000 for entry in made)
    assert (tmp_path / "prompt.wav").read_bytes() == fake.clip(0)
    printed = capsys.readouterr().out
    assert "on cpu" in printed
    assert printed.count("real-time factor") == 8


def test_in_a_voice_of_ones_own(engine: CosyVoice3, tmp_path: Path) -> None:
    prompt = tmp_path / "me.wav"
    prompt.write_bytes(fake.clip(4))
    arguments = ["--out", str(tmp_path / "out"), "--prompt", str(prompt), "--transcript", "你好"]
    assert trial.main(arguments) == 0
    assert (tmp_path / "out" / "prompt.wav").read_bytes() == fake.clip(4)


def test_what_goes_wrong_is_said(
    engine: CosyVoice3, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.upstream.model.llm.length = lambda text: 0
    assert trial.main(["--out", str(tmp_path)]) == 1
    assert "fault  zero-shot      sound_empty: The model made no sound" in capsys.readouterr().out
    (tmp_path / "noise.wav").write_bytes(b"no sound")
    assert trial.main(["--out", str(tmp_path), "--prompt", str(tmp_path / "noise.wav")]) == 1
    assert capsys.readouterr().err == "chorus: The voice's recording cannot be read.\n"

    def unavailable() -> CosyVoice3:
        raise EngineUnavailable("COSYVOICE_HOME does not name the official checkout")

    monkeypatch.setattr(trial, "CosyVoice3", unavailable)
    assert trial.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("chorus: COSYVOICE_HOME")


class TestListening:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("prompt", "one", "two"):
            soundfile.write(tmp_path / f"{name}.wav", np.ones(24_000, np.float32) * 0.1, 24_000)
        entries = [
            {
                "name": "one",
                "file": "one.wav",
                "text": "你好，世界。",
                "language": "zh",
                "heard": True,
                "problem": "",
            },
            {
                "name": "two",
                "file": "two.wav",
                "text": "[sigh]",
                "language": "zh",
                "heard": False,
                "problem": "",
            },
            {
                "name": "three",
                "file": "three.wav",
                "text": "",
                "language": "zh",
                "heard": True,
                "problem": "x",
            },
        ]
        (tmp_path / "trial.json").write_text(json.dumps(entries))
        return tmp_path

    def test_words(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(listen, "_embedding", lambda path: None)
        assert listen.listen(folder, lambda samples, rate, language: "你好世界") == 0
        assert "0% of the characters misheard" in capsys.readouterr().out
        assert listen.listen(folder, lambda samples, rate, language: "somebody else") == 1

    def test_voices(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        voices = {"prompt": np.array([1.0, 0]), "one": np.array([0.9, 0.44]), "two": np.array([0.3, 0.95])}
        monkeypatch.setattr(listen, "_embedding", lambda path: voices[path.stem])
        assert listen.listen(folder, None) == 1
        printed = capsys.readouterr().out
        assert "ok     one            voice 0.90 alike" in printed
        assert "fault  two            voice 0.30 alike" in printed

    def test_without_anything_installed(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("CHORUS_MODELS_DIR", str(folder / "nothing"))
        assert listen.main([str(folder)]) == 0
        printed = capsys.readouterr().out
        assert "words are not checked" in printed
        assert "voices are not compared" in printed

    @pytest.mark.parametrize(
        ("wanted", "heard", "errors"),
        [
            ("你好，世界。", "你好世界", 0.0),
            ("Hello There!", "hello, there", 0.0),
            ("abcd", "abxd", 0.25),
            ("ab", "", 1.0),
        ],
    )
    def test_character_errors(self, wanted: str, heard: str, errors: float) -> None:
        assert listen.character_errors(wanted, heard) == errors


def test_the_sample_is_a_voice(engine: CosyVoice3) -> None:
    assert engine.prepare(VoiceSpec("s", "zh", preset=SAMPLE_PRESET)).seconds == pytest.approx(3.0)
