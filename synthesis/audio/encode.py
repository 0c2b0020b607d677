"""Encode speech: as a stream, bit by bit as it is made, or as a finished file whose header knows its length.

One encoder per output. Parts that were encoded one by one and glued together click and lie about their
duration.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import IO, Any, Literal, get_args

import av
import numpy as np
import numpy.typing as npt
import soxr
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream

Format = Literal["mp3", "wav", "flac", "opus", "aac", "pcm"]
FORMATS: tuple[Format, ...] = get_args(Format)
#: What telephone systems take, only as a stream: G.711 without a header, 8 kHz.
Telephone = Literal["ulaw", "alaw"]

CONTENT_TYPES: dict[Format, str] = {
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "flac": "audio/flac",
    "opus": "audio/ogg; codecs=opus",
    "aac": "audio/aac",
    "pcm": "audio/pcm; rate=24000; channels=1",
}
#: File name endings, without the full stop.
EXTENSIONS: dict[Format, str] = {
    "mp3": "mp3",
    "wav": "wav",
    "flac": "flac",
    "opus": "opus",
    "aac": "aac",
    "pcm": "pcm",
}
#: OpenAI's `pcm`: 24 kHz, 16-bit little-endian, mono, whatever the engine's rate is.
PCM_RATE = 24_000

_MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True, slots=True)
class _Codec:
    container: str
    name: str
    #: Bits a second; None for formats without loss.
    bit_rate: int | None = None
    #: Rates that the codec takes, in Hz; empty where it takes any.
    rates: tuple[int, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    streaming: tuple[tuple[str, str], ...] = ()
    #: What undoes the encoder's own change of level.
    gain: float = 1.0
    #: Of the encoder itself.
    own: tuple[tuple[str, str], ...] = ()


#: Bit rates for one channel of speech at 24 kHz: MPEG-2 Layer III carries at most 160 kbit/s there, and
#: speech is transparent well below 96; AAC needs less, Opus half. MP3 is at a constant rate, so that players
#: seek exactly.
_CODECS: dict[str, _Codec] = {
    # ID3 2.3 is what every player reads. The Xing header holds the length, which a stream does not know. LAME
    # plays everything at 95 %. Of its levels of effort (0 most, 2 the default) 5 takes two thirds of the time, and what
    # comes out is as near to what went in: 0.8 dB of spectral distance below 8 kHz for both, over ten recordings.
    "mp3": _Codec(
        "mp3",
        "libmp3lame",
        96_000,
        _MPEG_RATES,
        (("id3v2_version", "3"),),
        (("write_xing", "0"),),
        1 / 0.95,
        (("compression_level", "5"),),
    ),
    # FFmpeg's WAV writer declares the maximum length (0xFFFFFFFF) where it cannot go back.
    "wav": _Codec("wav", "pcm_s16le"),
    "flac": _Codec("flac", "flac"),
    # Pages of 0.2 s: the default of one second would hold the first sound back.
    "opus": _Codec(
        "ogg", "libopus", 48_000, (8_000, 12_000, 16_000, 24_000, 48_000), (), (("page_duration", "200000"),)
    ),
    # ADTS cannot say how much of the first and last frame of 1,024 samples is padding: at 48 kHz it is under
    # 50 ms.
    "aac": _Codec("adts", "aac", 80_000, (48_000,)),
    "ulaw": _Codec("mulaw", "pcm_mulaw", None, (8_000,)),
    "alaw": _Codec("alaw", "pcm_alaw", None, (8_000,)),
}


class _Sink:
    """A file that can only be written to, and hands over what was written."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


class Encoder:
    """A stream of one output: `write` samples, send on the bytes that it returns, and `close` for the last
    ones.

    In a stream, WAV declares the maximum length, and the others none. As a context manager it frees the
    codec when the listener has gone; closing twice returns nothing more.
    """

    def __init__(
        self,
        format: Format | Telephone,
        rate: int,
        *,
        sample_rate: int | None = None,
        bit_rate: int | None = None,
        title: str = "",
        artist: str = "",
        comment: str = "",
    ) -> None:
        """`rate` is that of the samples, in Hz. `sample_rate` (Hz) and `bit_rate` (bits a second) of the output are
        the format's own unless they are given, and must be ones that the codec takes. ValueError for a format that is
        not known.
        """
        self._sink = _Sink()
        self._output: _PcmOutput | _ContainerOutput
        if format == "pcm":
            self._output = _PcmOutput(self._sink, rate, sample_rate or PCM_RATE)
        else:
            _check_format(format, _CODECS)
            codec = _CODECS[format]
            if sample_rate:
                codec = replace(codec, rates=(sample_rate,))
            if bit_rate:
                codec = replace(codec, bit_rate=bit_rate)
            tags = _tags(title, artist, comment)
            self._output = _ContainerOutput(self._sink, codec, rate, tags, streaming=True)
        self._closed = False

    def write(self, samples: npt.NDArray[np.float32]) -> bytes:
        """Encode (n,) float32 samples in [-1, 1]; returns what can be sent by now, which may be nothing
        yet.
        """
        self._output.write(samples)
        return self._sink.take()

    def close(self) -> bytes:
        """The end of the stream: what the codec still held."""
        if not self._closed:
            self._closed = True
            self._output.close()
        return self._sink.take()

    def __enter__(self) -> Encoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Encoded:
    """What was written: the length of the sound in seconds, and of the file in bytes; the file's own rate in Hz."""

    seconds: float
    size: int
    rate: int


def encode_file(
    target: IO[bytes],
    parts: Iterable[npt.NDArray[np.float32]],
    *,
    format: Format,
    rate: int,
    title: str = "",
    artist: str = "",
    comment: str = "",
) -> Encoded:
    """Write a finished file to `target` (binary, seekable, at its start): the header holds the true duration.

    `parts` are (n,) float32 in [-1, 1] at `rate` Hz, taken one at a time. AAC (ADTS) and PCM have no
    header, and carry no title. ValueError for a format that is not in `FORMATS`, or when there are no
    samples at all.
    """
    _check_format(format)
    output: _PcmOutput | _ContainerOutput
    if format == "pcm":
        output = _PcmOutput(target, rate)
    else:
        output = _ContainerOutput(
            target, _CODECS[format], rate, _tags(title, artist, comment), streaming=False
        )
    length = 0
    try:
        for samples in parts:
            output.write(samples)
            length += len(samples)
        if not length:
            raise ValueError("there is nothing to encode")
    finally:
        output.close()
    return Encoded(seconds=length / rate, size=target.seek(0, 2), rate=output.rate)


def _check_format(format: str, known: Collection[str] = FORMATS) -> None:
    if format not in known:
        raise ValueError(f"{format!r} is not one of {', '.join(known)}")


def _tags(title: str, artist: str, comment: str) -> dict[str, str]:
    tags = {"title": title, "artist": artist, "comment": comment}
    return {name: _one_line(value) for name, value in tags.items() if _one_line(value)}


def _one_line(text: str) -> str:
    """Tags hold one line; control characters end them early in some players, and surrogates cannot be
    written.
    """
    return " ".join("".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text).split())


class _Resampler:
    """Samples at the rate that the codec takes."""

    def __init__(self, rate: int, wanted: int) -> None:
        self._stream = soxr.ResampleStream(rate, wanted, 1, dtype="float32") if rate != wanted else None

    def convert(self, samples: npt.NDArray[np.float32], *, last: bool = False) -> npt.NDArray[np.float32]:
        samples = np.ascontiguousarray(samples, dtype=np.float32)
        if self._stream is None:
            return samples
        converted: npt.NDArray[np.float32] = self._stream.resample_chunk(samples, last=last)
        return converted


class _PcmOutput:
    def __init__(self, target: Any, rate: int, wanted: int = PCM_RATE) -> None:
        self._target = target
        self.rate = wanted
        self._resampler = _Resampler(rate, wanted)

    def write(self, samples: npt.NDArray[np.float32]) -> None:
        self._put(self._resampler.convert(samples))

    def close(self) -> None:
        self._put(self._resampler.convert(np.zeros(0, np.float32), last=True))

    def _put(self, samples: npt.NDArray[np.float32]) -> None:
        self._target.write(to_int16(samples).tobytes())


def to_int16(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    """Float samples in [-1, 1] as little-endian 16-bit integers, rounded; what lies beyond is held at
    full scale.
    """
    integers: npt.NDArray[np.int16] = np.clip(np.rint(samples * 32_768.0), -32_768, 32_767).astype("<i2")
    return integers


class _ContainerOutput:
    def __init__(
        self, target: Any, codec: _Codec, rate: int, tags: dict[str, str], *, streaming: bool
    ) -> None:
        self.rate = _nearest_rate(rate, codec.rates)
        self._resampler = _Resampler(rate, self.rate)
        options = {"fflags": "+flush_packets+bitexact", **dict(codec.options)}
        if streaming:
            options |= dict(codec.streaming)
        self._container = av.open(target, "w", format=codec.container, container_options=options)
        stream = self._container.add_stream(
            codec.name, rate=self.rate, layout="mono", options=dict(codec.own)
        )
        if not isinstance(stream, AudioStream):  # pragma: no cover - for the type checker
            raise TypeError(codec.name)
        if codec.gain != 1.0:
            stream.format = "fltp"
        self._stream = stream
        self._gain = np.float32(codec.gain)
        if codec.bit_rate is not None:
            # MPEG's lower rates have lower ceilings: 64 kbit/s at 8-12 kHz.
            self._stream.bit_rate = min(codec.bit_rate, 64_000) if self.rate < 16_000 else codec.bit_rate
        self._container.metadata.update(tags)
        self._written = 0

    def write(self, samples: npt.NDArray[np.float32]) -> None:
        self._encode(self._resampler.convert(samples))

    def close(self) -> None:
        try:
            self._encode(self._resampler.convert(np.zeros(0, np.float32), last=True))
            for packet in self._stream.encode(None):
                self._container.mux(packet)
        finally:
            self._container.close()

    def _encode(self, samples: npt.NDArray[np.float32]) -> None:
        if not len(samples):
            return
        block = (np.clip(samples, -1.0, 1.0) * self._gain).reshape(1, -1)
        frame = AudioFrame.from_ndarray(block, format="fltp", layout="mono")
        frame.sample_rate = self.rate
        frame.pts = self._written
        self._written += len(samples)
        for packet in self._stream.encode(frame):
            self._container.mux(packet)


def _nearest_rate(rate: int, rates: tuple[int, ...]) -> int:
    """`rate` where the codec takes it, else the next higher one that it takes, so that nothing is lost."""
    if not rates or rate in rates:
        return rate
    return min((r for r in rates if r > rate), default=max(rates))
