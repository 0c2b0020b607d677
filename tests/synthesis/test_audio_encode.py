"""What was encoded is decoded again and measured: length, level, header, tags."""

from __future__ import annotations

import io
import struct
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
import soundfile
import soxr

from synthesis.audio.decode import decode
from synthesis.audio.encode import (
    CONTENT_TYPES,
    EXTENSIONS,
    FORMATS,
    Encoder,
    Format,
    encode_file,
    to_int16,
)

RATE = 24_000
TITLE = "你好，世界 “quoted” 🎧"
SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
IN_CONTAINERS: list[Format] = ["mp3", "wav", "flac", "opus", "aac"]
Samples = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def speech() -> Samples:
    clip = decode((SPEECH / "austen-0870.wav").read_bytes())
    return np.asarray(soxr.resample(clip.samples, clip.rate, RATE), np.float32)


def pieces(samples: Samples, length: int = 5_000) -> list[Samples]:
    return [samples[start : start + length] for start in range(0, len(samples), length)]


def finished(samples: Samples, format: Format, rate: int = RATE, **tags: Any) -> bytes:
    file = io.BytesIO()
    encoded = encode_file(file, pieces(samples), format=format, rate=rate, **tags)
    assert encoded.size == len(file.getvalue())
    assert encoded.seconds == pytest.approx(len(samples) / rate)
    if format in ("mp3", "wav", "flac", "aac"):  # the others always play at 48 kHz, or say nothing
        assert decode(file.getvalue()).rate == encoded.rate
    return file.getvalue()


def streamed(samples: Samples, format: Format, rate: int = RATE, **tags: Any) -> bytes:
    encoder = Encoder(format, rate, **tags)
    return b"".join(encoder.write(piece) for piece in pieces(samples)) + encoder.close()


def level(samples: Samples) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))))


@pytest.mark.parametrize("format", IN_CONTAINERS)
@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 48_000])
def test_a_finished_file_has_the_same_length_and_level(speech: Samples, format: Format, rate: int) -> None:
    samples = np.asarray(soxr.resample(speech, RATE, rate), np.float32)
    clip = decode(finished(samples, format, rate))
    assert clip.seconds == pytest.approx(7.1, abs=0.05)
    assert level(clip.samples) == pytest.approx(level(samples), abs=0.2)


@pytest.mark.parametrize("format", IN_CONTAINERS)
def test_a_stream_has_the_same_length_and_level(speech: Samples, format: Format) -> None:
    clip = decode(streamed(speech, format))
    # A streamed MP3 cannot say how much of its first and last frame is padding.
    assert clip.seconds == pytest.approx(7.1, abs=0.08 if format == "mp3" else 0.05)
    assert level(clip.samples) == pytest.approx(level(speech), abs=0.2)


@pytest.mark.parametrize("format", ["wav", "flac"])
def test_formats_without_loss_give_every_sample_back(speech: Samples, format: Format) -> None:
    for data in (finished(speech, format), streamed(speech, format)):
        np.testing.assert_allclose(decode(data).samples, speech, atol=1 / 32_768)


@pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus"])
def test_the_header_of_a_finished_file_knows_the_length(speech: Samples, format: Format) -> None:
    with av.open(io.BytesIO(finished(speech, format)), mode="r") as container:
        assert container.duration is not None
        assert container.duration / 1e6 == pytest.approx(7.1, abs=0.05)


def test_header_fields_that_players_read(speech: Samples) -> None:
    mp3 = finished(speech, "mp3", title=TITLE)
    assert mp3[:4] == b"ID3\x03"
    # The padding at both ends, which players skip, is read where an encoder that they know signs.
    assert b"Info" in mp3[:500]
    assert b"Lavf" in mp3[:500]
    with wave.open(io.BytesIO(finished(speech, "wav", title=TITLE))) as wav:
        assert (wav.getnchannels(), wav.getsampwidth(), wav.getframerate()) == (1, 2, RATE)
        assert wav.getnframes() == len(speech)
    wav_data = finished(speech, "wav", title=TITLE)
    assert struct.unpack("<I", wav_data[4:8])[0] == len(wav_data) - 8
    assert soundfile.info(io.BytesIO(finished(speech, "flac"))).frames == len(speech)
    assert soundfile.info(io.BytesIO(finished(speech, "opus"))).duration == pytest.approx(7.1, abs=0.05)


def test_a_streamed_wav_declares_the_maximum(speech: Samples) -> None:
    data = streamed(speech, "wav")
    assert data[4:8] == b"\xff\xff\xff\xff"
    at = data.index(b"data") + 4
    assert data[at : at + 4] == b"\xff\xff\xff\xff"
    assert len(data) - at - 4 == 2 * len(speech)


@pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus"])
@pytest.mark.parametrize("make", [finished, streamed])
def test_tags_survive_in_any_script(speech: Samples, format: Format, make: object) -> None:
    data = make(speech[:RATE], format, title=TITLE, artist="晓晓", comment="AI-generated")  # type: ignore[operator]
    with av.open(io.BytesIO(data)) as container:
        tags = {**container.metadata, **container.streams.audio[0].metadata}
    assert (tags["title"], tags["artist"], tags["comment"]) == (TITLE, "晓晓", "AI-generated")


def test_tags_are_one_line_and_an_odd_one_breaks_nothing(speech: Samples) -> None:
    data = finished(speech[:RATE], "mp3", title="one\ntwo\x00three\ud800 " + "x" * 5_000)
    with av.open(io.BytesIO(data)) as container:
        assert container.metadata["title"].startswith("one two three x")


def test_pcm_is_16_bit_at_24_khz_whatever_the_rate(speech: Samples) -> None:
    for data in (finished(speech, "pcm"), streamed(speech, "pcm")):
        np.testing.assert_array_equal(np.frombuffer(data, "<i2"), to_int16(speech))
    wide = np.asarray(soxr.resample(speech, RATE, 44_100), np.float32)
    for data in (finished(wide, "pcm", 44_100), streamed(wide, "pcm", 44_100)):
        assert len(data) == pytest.approx(2 * len(speech), abs=4)


@pytest.mark.parametrize("format", FORMATS)
def test_sound_leaves_the_encoder_as_it_comes(speech: Samples, format: Format) -> None:
    encoder = Encoder(format, RATE)
    sent = sum(len(encoder.write(piece)) for piece in pieces(speech[: 3 * RATE]))
    rest = len(encoder.close())
    assert sent > 6 * rest
    assert encoder.close() == b""


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_of_nothing_and_of_one_sample(format: Format) -> None:
    assert isinstance(Encoder(format, RATE).close(), bytes)
    with Encoder(format, RATE) as encoder:
        encoder.write(np.zeros(0, np.float32))
        encoder.write(np.ones(1, np.float32))


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_of_nothing_is_a_mistake(format: Format) -> None:
    with pytest.raises(ValueError, match="nothing to encode"):
        encode_file(io.BytesIO(), [], format=format, rate=RATE)


def test_an_unknown_format_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="wma"):
        Encoder("wma", RATE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="wma"):
        encode_file(io.BytesIO(), [], format="wma", rate=RATE)  # type: ignore[arg-type]


def test_samples_beyond_full_scale_are_held_and_do_not_wrap() -> None:
    loud = np.array([2.0, -2.0, 0.0], np.float32)
    assert to_int16(loud).tolist() == [32_767, -32_768, 0]
    ramp = np.linspace(-1.5, 1.5, RATE, dtype=np.float32)
    for format in ("wav", "flac"):
        assert np.all(np.diff(decode(finished(ramp, format)).samples) >= 0)


def test_every_format_has_a_type_and_an_ending() -> None:
    assert set(CONTENT_TYPES) == set(EXTENSIONS) == set(FORMATS)
    assert FORMATS[0] == "mp3"


def test_a_file_on_disk(tmp_path: Path, speech: Samples) -> None:
    path = tmp_path / "声音.mp3"
    with path.open("wb+") as file:
        encode_file(file, pieces(speech), format="mp3", rate=RATE, title=TITLE)
    assert path.read_bytes() == finished(speech, "mp3", title=TITLE)
