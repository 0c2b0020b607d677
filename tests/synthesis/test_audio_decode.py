"""Uploads of every kind become samples, and everything else becomes one clear error."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.errors import InvalidInput
from synthesis.audio.decode import Clip, decode
from synthesis.audio.encode import FORMATS, encode_file

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
RATE = 24_000
Samples = npt.NDArray[np.float32]


def fixture(name: str) -> bytes:
    return (SPEECH / name).read_bytes()


def tone(seconds: float, level: float = 0.3, hertz: float = 440) -> Samples:
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def wav(samples: npt.NDArray[np.floating], *, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype=subtype)
    return file.getvalue()


def movie(*, sound: bool, container: str = "mp4", seconds: float = 1.0) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        video = output.add_stream("mpeg4", rate=10)
        video.width, video.height, video.pix_fmt = 64, 64, "yuv420p"
        audio = output.add_stream("aac", rate=RATE, layout="mono") if sound else None
        for number in range(round(seconds * 10)):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), number * 20 % 255, np.uint8))
            frame.pts = number
            output.mux(video.encode(frame))
        output.mux(video.encode(None))
        if audio is not None:
            block = av.AudioFrame.from_ndarray(tone(seconds).reshape(1, -1), format="fltp", layout="mono")
            block.sample_rate, block.pts = RATE, 0
            output.mux(audio.encode(block))
            output.mux(audio.encode(None))
    return file.getvalue()


def refused(data: bytes, **options: float) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        decode(data, param="recording", **options)  # type: ignore[arg-type]
    assert caught.value.status == 400
    assert caught.value.param == "recording"
    assert str(caught.value).endswith(".")
    return caught.value


def correlation(clip: Clip, other: Clip) -> float:
    """How alike two clips sound, whatever their rates and a delay of up to 0.1 s: 1.0 is the same."""
    a, b = (
        np.interp(np.arange(0, 7, 1 / 8000), np.arange(len(c.samples)) / c.rate, c.samples)
        for c in (clip, other)
    )
    spectrum = np.fft.rfft(a, 2**17) * np.conj(np.fft.rfft(b, 2**17))
    lags = np.fft.irfft(spectrum)
    return float(
        np.max(np.abs(np.concatenate([lags[:800], lags[-800:]]))) / np.linalg.norm(a) / np.linalg.norm(b)
    )


@pytest.mark.parametrize(
    ("name", "container", "codec", "channels", "rate"),
    [
        ("austen-0870.wav", "wav", "pcm_s16le", 1, 16_000),
        ("austen-0870-8k.wav", "wav", "pcm_s16le", 1, 8_000),
        ("austen-0870-stereo.mp3", "mp3", "mp3float", 2, 44_100),
        ("austen-0870.m4a", "mp4", "aac", 1, 16_000),
        ("austen-0870.webm", "webm", "opus", 1, 48_000),
    ],
)
def test_a_reading_in_every_container_sounds_the_same(
    name: str, container: str, codec: str, channels: int, rate: int
) -> None:
    clip = decode(fixture(name))
    assert (clip.container, clip.codec, clip.channels, clip.rate) == (container, codec, channels, rate)
    assert clip.samples.dtype == np.float32
    assert clip.samples.ndim == 1
    assert clip.seconds == pytest.approx(7.1, abs=0.05)
    assert correlation(clip, decode(fixture("austen-0870.wav"))) > 0.95


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "pcm"])
def test_what_we_encode_we_can_decode(format: str) -> None:
    file = io.BytesIO()
    encode_file(file, [tone(2.0)], format=format, rate=RATE)  # type: ignore[arg-type]
    clip = decode(file.getvalue())
    assert clip.seconds == pytest.approx(2.0, abs=0.05)
    assert clip.samples.std() == pytest.approx(tone(2.0).std(), rel=0.03)


@pytest.mark.parametrize("container", ["mp4", "mov", "matroska"])
def test_the_sound_of_a_video_is_taken(container: str) -> None:
    clip = decode(movie(sound=True, container=container))
    assert clip.codec == "aac"
    assert clip.seconds == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    "subtype", ["PCM_U8", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ALAW", "ULAW", "IMA_ADPCM"]
)
def test_every_kind_of_wav(subtype: str) -> None:
    clip = decode(wav(tone(1.0), subtype=subtype))
    assert clip.seconds == pytest.approx(1.0, abs=0.05)
    assert clip.samples.std() == pytest.approx(tone(1.0).std(), rel=0.1)


def test_high_rates_are_brought_down_to_48_khz() -> None:
    clip = decode(wav(np.repeat(tone(1.0), 8), rate=192_000))
    assert clip.rate == 48_000
    assert clip.seconds == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    "channels",
    [
        np.stack([tone(1), tone(1)]),
        np.stack([tone(1), np.zeros(RATE, np.float32)]),
        np.stack([tone(1), -tone(1)]),
        np.stack([np.zeros(RATE), np.zeros(RATE), tone(1), np.zeros(RATE), np.zeros(RATE), np.zeros(RATE)]),
    ],
    ids=["same", "one silent", "opposed", "centre of six"],
)
def test_channels_are_mixed_without_losing_the_voice(channels: npt.NDArray[np.float32]) -> None:
    clip = decode(wav(channels.T))
    assert clip.channels == len(channels)
    assert clip.samples.std() == pytest.approx(tone(1).std(), rel=0.02)


def test_floating_point_samples_beyond_full_scale_keep_their_shape() -> None:
    clip = decode(wav(tone(1.0, level=4.0), subtype="FLOAT"))
    assert np.abs(clip.samples).max() == pytest.approx(1.0)
    np.testing.assert_allclose(clip.samples, tone(1.0, level=1.0), atol=0.01)


def test_samples_that_are_not_numbers_are_silence() -> None:
    broken = tone(1.0)
    broken[100:110] = [np.nan, np.inf, -np.inf, 1e38, -1e38] * 2
    clip = decode(wav(broken, subtype="FLOAT"))
    assert np.isfinite(clip.samples).all()
    assert np.abs(clip.samples).max() <= 1.0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 50_000,
        b"<html><body>404</body></html>",
        b"\xff\xd8\xff\xe0\0\x10JFIF" + b"\0" * 1000,
        b"\x89PNG\r\n\x1a\n" + b"\0" * 1000,
        b"PK\3\4" + b"\0" * 1000,
        np.random.default_rng(1).bytes(100_000),
        b"RIFF\x24\0\0\0WAVE",
        b"fLaC" + b"\0" * 100,
        b"OggS" + b"\0" * 100,
        b"ID3\4\0\0\0\0\0\0",
    ],
    ids=["empty", "zeros", "html", "jpeg", "png", "zip", "random", "riff", "flac", "ogg", "id3"],
)
def test_what_is_not_audio_is_refused(data: bytes) -> None:
    assert refused(data).code == "audio_unreadable"


@pytest.mark.parametrize("name", ["not-audio.wav", "truncated.m4a", "README.md"])
def test_broken_fixtures_are_refused(name: str) -> None:
    assert refused(fixture(name)).code == "audio_unreadable"


def with_wav_field(data: bytes, *, offset: int, value: int, kind: str) -> bytes:
    """`data` with one field of its `fmt ` chunk (offsets from the start of the chunk's body) replaced."""
    at = data.index(b"fmt ") + 8 + offset
    return data[:at] + struct.pack(kind, value) + data[at + struct.calcsize(kind) :]


def with_data_size(data: bytes, size: int) -> bytes:
    at = data.index(b"data") + 4
    return data[:at] + struct.pack("<I", size) + data[at + 4 :]


@pytest.mark.parametrize(
    ("lie", "code"),
    [
        ({"offset": 4, "value": 0, "kind": "<I"}, "audio_unreadable"),
        ({"offset": 4, "value": 50, "kind": "<I"}, "audio_unreadable"),
        ({"offset": 4, "value": 1_000_000, "kind": "<I"}, "audio_too_large"),
        ({"offset": 4, "value": 0xFFFFFFFF, "kind": "<I"}, "audio_unreadable"),
        ({"offset": 2, "value": 200, "kind": "<H"}, "audio_too_large"),
        ({"offset": 2, "value": 0, "kind": "<H"}, "audio_no_sound_track"),
        ({"offset": 0, "value": 0x2000, "kind": "<H"}, "audio_unreadable"),
        ({"offset": 14, "value": 0, "kind": "<H"}, "audio_unreadable"),
    ],
)
def test_headers_that_lie_are_refused(lie: dict[str, object], code: str) -> None:
    assert refused(with_wav_field(fixture("austen-0880.wav"), **lie)).code == code  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["austen-0870.wav", "austen-0870.m4a"])
def test_files_that_were_cut_off_are_refused(name: str) -> None:
    data = fixture(name)
    assert refused(data[: len(data) // 2]).code == "audio_unreadable"


def test_a_flac_and_a_movie_that_were_cut_off_are_refused() -> None:
    file = io.BytesIO()
    noise = np.random.default_rng(1).normal(0, 0.1, 3 * RATE).astype(np.float32)
    encode_file(file, [noise], format="flac", rate=RATE)
    error = refused(file.getvalue()[: len(file.getvalue()) // 2])
    assert error.code == "audio_unreadable"
    assert "of 3.0 s only 1." in str(error)


def test_a_wav_that_promises_twice_what_it_holds_is_refused() -> None:
    data = fixture("austen-0870.wav")
    assert "of 14.2 s only 7.1 s" in str(refused(with_data_size(data, 2 * (len(data) - 44))))


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_wav_from_a_recorder_that_did_not_know_its_length_is_read(size: int) -> None:
    assert decode(with_data_size(fixture("austen-0870.wav"), size)).seconds == pytest.approx(7.1, abs=0.01)


def test_the_name_does_not_matter_and_neither_do_a_few_damaged_bytes() -> None:
    data = bytearray(fixture("austen-0870-stereo.mp3"))
    data[40_000:40_050] = bytes(50)
    assert decode(bytes(data)).seconds == pytest.approx(7.1, abs=0.2)


def test_a_video_without_sound_has_no_sound_track() -> None:
    assert refused(movie(sound=False)).code == "audio_no_sound_track"


def test_what_is_longer_than_allowed_is_refused_before_it_fills_the_memory() -> None:
    file = io.BytesIO()
    silence = np.zeros(60 * 8000, np.float32)
    encode_file(file, [silence] * 60, format="flac", rate=8000)
    bomb = file.getvalue()
    assert len(bomb) < 700_000
    tracemalloc.start()
    try:
        error = refused(bomb, max_seconds=30)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error.code == "audio_too_long"
    assert error.details == {"limit_seconds": 30}
    assert "0.5 minutes" in str(error)
    assert peak < 5 * 2**20


def test_a_clip_of_just_the_allowed_length_passes() -> None:
    assert decode(wav(tone(2.0)), max_seconds=2).seconds == 2.0
    assert refused(wav(tone(2.1)), max_seconds=2).code == "audio_too_long"


def test_too_many_bytes_are_not_even_looked_at() -> None:
    error = refused(b"\0" * (1024**2 + 1), max_bytes=1024**2)
    assert error.code == "audio_too_large"
    assert "1 MB" in str(error)


def test_nothing_that_a_file_names_is_opened(tmp_path: Path) -> None:
    """Playlists and reference files, which make FFmpeg read what they point to, on disk or in the network."""
    target = tmp_path / "secret.wav"
    target.write_bytes(fixture("austen-0880.wav"))
    playlists = [
        f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{target}\n#EXT-X-ENDLIST\n",
        f"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:9,\nfile://{target}\n#EXT-X-ENDLIST\n",
        "#EXTM3U\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n#EXT-X-ENDLIST\n",
        f"ffconcat version 1.0\nfile {target}\n",
        f"ffconcat version 1.0\nfile 'subfile,,start,0,end,0,,:{target}'\n",
        f"<?xml version='1.0'?><MPD><Period><AdaptationSet><BaseURL>{target}</BaseURL></AdaptationSet></Period></MPD>",
        f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\na={target}\n",
        f"rtsptext\nrtsp://127.0.0.1:9/{target}",
    ]
    for playlist in playlists:
        assert refused(playlist.encode()).code == "audio_unreadable"


SMALL = [
    fixture("austen-0880.wav"),
    fixture("austen-0870.m4a"),
    fixture("austen-0870.webm"),
    fixture("austen-0870-stereo.mp3"),
]


def with_formats() -> list[bytes]:
    files = []
    for format in ("flac", "opus", "aac"):
        file = io.BytesIO()
        encode_file(file, [tone(0.5)], format=format, rate=RATE, title="你好")
        files.append(file.getvalue())
    return [*SMALL, *files, movie(sound=True, seconds=0.5)]


FILES = with_formats()
EDITS = st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    data=st.sampled_from(FILES),
    early=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8),
    edits=EDITS,
    kept=st.floats(0, 1),
)
def test_damaged_files_are_read_or_refused_and_nothing_else(
    data: bytes, early: list[tuple[int, int]], edits: list[tuple[float, bytes]], kept: float
) -> None:
    damaged = bytearray(data)
    for position, value in early:
        damaged[min(position, len(data) - 1)] = value
    for place, edit in edits:
        at = int(place * (len(data) - 1))
        damaged[at : at + len(edit)] = edit
    del damaged[max(1, int(len(damaged) * (1 - kept**3))) :]
    try:
        clip = decode(bytes(damaged), max_seconds=30)
    except InvalidInput:
        return
    assert np.isfinite(clip.samples).all()
    assert np.abs(clip.samples).max() <= 1.0
    assert 0 < clip.seconds <= 30.1


@settings(max_examples=100, deadline=None)
@given(
    start=st.sampled_from(
        [
            b"",
            b"RIFF\xff\xff\xff\xffWAVEfmt ",
            b"ID3",
            b"\xff\xfb\x90",
            b"OggS\0\2",
            b"fLaC",
            b"\x1aE\xdf\xa3",
            b"\0\0\0\x18ftypM4A ",
            b"\xff\xf1",
            b"#EXTM3U\n",
        ]
    ),
    rest=st.binary(max_size=400),
)
def test_invented_bytes_are_refused_or_read_and_nothing_else(start: bytes, rest: bytes) -> None:
    with contextlib.suppress(InvalidInput):
        decode(start + rest)
