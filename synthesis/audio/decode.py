"""Turn an uploaded file into samples, whatever the bytes are.

The file is untrusted. FFmpeg may use only the demuxers and decoders named here (a playlist could make it
open other files or addresses), it is handed the bytes and can open nothing itself, and decoding stops at
`max_seconds`, so that a small file cannot become a large one in memory: at most 4 bytes x 48,000 x
`max_seconds` are kept.
"""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

import av
import numpy as np
import numpy.typing as npt
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import InvalidInput

Samples = npt.NDArray[np.float32]

#: Demuxers by FFmpeg's names, with the name that people know. None of them reads anything but its own bytes.
_CONTAINERS = {
    "wav": "wav",
    "w64": "wav",
    "mp3": "mp3",
    "mov,mp4,m4a,3gp,3g2,mj2": "mp4",
    "matroska,webm": "webm",
    "ogg": "ogg",
    "flac": "flac",
    "aac": "aac",
}
#: What phones, browsers, editors and cameras put into those containers.
_CODECS = frozenset(
    {"aac", "ac3", "alac", "amrnb", "amrwb", "eac3", "flac", "mp1float", "mp2", "mp2float", "mp3", "mp3float"}
    | {"opus", "libopus", "vorbis", "adpcm_ima_qt", "adpcm_ima_wav", "adpcm_ms", "gsm_ms", "pcm_alaw"}
    | {"pcm_mulaw", "pcm_u8", "pcm_s8", "pcm_s16be", "pcm_s16le", "pcm_s24be", "pcm_s24le", "pcm_s32be"}
    | {"pcm_s32le", "pcm_f32be", "pcm_f32le", "pcm_f64be", "pcm_f64le"}
)
MAX_BYTES = 128 * 1024 * 1024
_LOWEST_RATE, _HIGHEST_RATE, _MOST_CHANNELS = 4_000, 192_000, 8
#: Speech has nothing above 20 kHz.
_KEPT_RATE = 48_000
_SHORTEST_SECONDS = 0.02
#: Ten minutes of any of the codecs decode in a few seconds; a file built to take longer is given up.
_PATIENCE_SECONDS = 60.0
#: The mean of the channels has this share of the loudest channel's power or less when the channels cancel out
#: or all but one are silent (then exactly a quarter): take the loudest instead.
_CANCELLED = 0.3


class UnreadableAudio(InvalidInput):
    """Not audio, of a kind that is not accepted, or too damaged to use."""

    code = "audio_unreadable"
    message = _(
        "This file could not be read as audio. Send a WAV, MP3, M4A, AAC, WebM, OGG, Opus or FLAC file, "
        "or a video with sound."
    )


class NoSoundTrack(InvalidInput):
    """A file that could be opened and has no sound in it."""

    code = "audio_no_sound_track"
    message = _("This file has no sound track. Send a recording or a video with sound.")


class AudioTooLong(InvalidInput):
    """More than `max_seconds` of sound."""

    code = "audio_too_long"


class AudioTooLarge(InvalidInput):
    """More bytes, channels or samples a second than a recording of a voice has."""

    code = "audio_too_large"


@dataclass(frozen=True, slots=True)
class Clip:
    """Decoded sound: `samples` is (n,) float32 mono in [-1, 1]; `rate` in Hz; the rest describes the file."""

    samples: Samples
    rate: int
    container: str
    codec: str
    channels: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate

    def part(self, start_s: float, end_s: float) -> Clip:
        """The stretch from `start_s` to `end_s` seconds, sharing the samples."""
        return replace(self, samples=self.samples[round(start_s * self.rate) : round(end_s * self.rate)])


def decode(
    data: bytes, *, max_seconds: float = 600, max_bytes: int = MAX_BYTES, param: str = "audio"
) -> Clip:
    """The sound in `data`, mixed to mono, at the file's own rate (at most 48 kHz).

    Accepts WAV, MP3, M4A/MP4/MOV/3GP, AAC, WebM/Matroska, OGG, Opus and FLAC, and takes the sound track of
    a video. Raises UnreadableAudio, NoSoundTrack, AudioTooLong or AudioTooLarge, naming `param`; nothing
    else.
    """
    if len(data) > max_bytes:
        raise AudioTooLarge(
            format_lazy(
                _("The file is larger than {limit} MB. Send a shorter recording, or an MP3 or M4A."),
                limit=max_bytes // 1024**2,
            ),
            param=param,
            limit_bytes=max_bytes,
        )
    try:
        return _decode(data, max_seconds)
    except InvalidInput as error:
        error.param = param
        raise
    except Exception as error:  # FFmpeg's bindings raise a dozen types for bytes that make no sense
        raise UnreadableAudio(param=param) from error


def _decode(data: bytes, max_seconds: float) -> Clip:
    track = _read(data, max_seconds, channel=None)
    if track.mixed_power < _CANCELLED * float(track.powers.max()):
        track = _read(data, max_seconds, channel=int(track.powers.argmax()))
    samples = np.concatenate(track.blocks)
    # Floating-point files may exceed full scale; the shape of the wave is kept.
    samples /= max(1.0, float(np.abs(samples).max()))
    return Clip(samples, track.rate, track.container, track.codec, track.channels)


@dataclass(slots=True)
class _Track:
    container: str
    codec: str
    rate: int
    channels: int
    blocks: list[Samples]
    powers: npt.NDArray[np.float64]
    mixed_power: float = 0.0


def _read(data: bytes, max_seconds: float, *, channel: int | None) -> _Track:
    """Read the sound track: the mean of its channels, or one `channel` of it alone."""
    with _open(data) as container:
        stream = _sound_track(container)
        name = _CONTAINERS[container.format.name]
        track = _Track(name, stream.codec_context.name, 0, 0, [], np.zeros(_MOST_CHANNELS))
        length = 0
        for rate, block in _blocks(container, stream):
            if not track.blocks:
                track.rate, track.channels = rate, len(block)
            mixed = (
                block.mean(axis=0, dtype=np.float32)
                if channel is None
                else block[min(channel, len(block) - 1)]
            )
            track.blocks.append(mixed)
            track.powers[: len(block)] += np.square(block, dtype=np.float64).sum(axis=1)
            track.mixed_power += float(np.square(mixed, dtype=np.float64).sum())
            length += len(mixed)
            if length > max_seconds * rate:
                raise AudioTooLong(
                    format_lazy(
                        _("The recording is longer than {minutes} minutes. Cut it and send the best part."),
                        minutes=f"{max_seconds / 60:g}",
                    ),
                    limit_seconds=max_seconds,
                )
        if not track.blocks or length < _SHORTEST_SECONDS * track.rate:
            raise UnreadableAudio
        _refuse_cut_off(data, stream, name, length / track.rate)
    return track


def _open(data: bytes) -> InputContainer:
    return av.open(
        io.BytesIO(data),
        mode="r",
        container_options={
            "format_whitelist": ",".join(_CONTAINERS),
            "codec_whitelist": ",".join(sorted(_CODECS)),
            "protocol_whitelist": "",
            "max_streams": "32",
        },
        metadata_errors="replace",
        io_open=_refuse_to_open,
    )


def _refuse_to_open(url: str, *_: object) -> NoReturn:
    raise PermissionError(f"a file asked to open {url!r}")


def _sound_track(container: InputContainer) -> AudioStream:
    stream = container.streams.best("audio")
    if not isinstance(stream, AudioStream):
        raise NoSoundTrack
    if stream.codec_context.name not in _CODECS:
        raise UnreadableAudio
    stream.codec_context.thread_count = 1
    return stream


def _blocks(container: InputContainer, stream: AudioStream) -> Iterator[tuple[int, Samples]]:
    """(rate, (channels, n) float32) blocks, all at one rate, up to the end or to where the file is
    damaged.
    """
    resampler: AudioResampler | None = None
    shape: tuple[int, str, str] | None = None
    rate = 0
    for frame in _frames(container, stream):
        if frame.sample_rate > _HIGHEST_RATE or frame.layout.nb_channels > _MOST_CHANNELS:
            raise AudioTooLarge(
                _("This is not a recording of a voice: it has too many channels or too high a sample rate.")
            )
        if frame.sample_rate < _LOWEST_RATE:
            raise UnreadableAudio
        rate = rate or min(frame.sample_rate, _KEPT_RATE)
        if resampler is None or shape != (frame.sample_rate, frame.layout.name, frame.format.name):
            if resampler is not None:
                yield from ((rate, _samples(left)) for left in resampler.resample(None))
            resampler = AudioResampler(format="fltp", layout=frame.layout, rate=rate)
            shape = (frame.sample_rate, frame.layout.name, frame.format.name)
        frame.pts = None
        yield from ((rate, _samples(converted)) for converted in resampler.resample(frame))
    if resampler is not None:
        yield from ((rate, _samples(left)) for left in resampler.resample(None))


def _samples(frame: AudioFrame) -> Samples:
    block = np.nan_to_num(frame.to_ndarray(), copy=False, nan=0.0)
    clipped: Samples = np.clip(block, -16.0, 16.0)
    return clipped


def _frames(container: InputContainer, stream: AudioStream) -> Iterator[AudioFrame]:
    """Decoded frames; single damaged packets are passed over, a file that consists of them is refused."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    good = bad = 0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets)
        except StopIteration:
            break
        except av.FFmpegError:
            bad += 1
            break
        try:
            frames = packet.decode()
            good += 1
        except av.FFmpegError:
            bad += 1
            continue
        yield from frames
        if time.monotonic() > deadline:
            raise UnreadableAudio
    # MP3 cut from a longer file begins with a few frames that lean on missing ones.
    if bad > 3 + good // 10:
        raise UnreadableAudio


def _refuse_cut_off(data: bytes, stream: AudioStream, container: str, seconds: float) -> None:
    """A header that promises much more than there is: the upload was cut off, or the header lies."""
    promised = seconds
    if container == "wav":
        # FFmpeg corrects the length by the size of the file, so the header is asked.
        promised *= _promised_share(data)
    elif container in ("mp4", "flac") and stream.duration and stream.time_base is not None:
        promised = float(stream.duration * stream.time_base)
    if promised - seconds > max(0.5, promised / 10):
        raise UnreadableAudio(
            format_lazy(
                _("This file is incomplete: of {promised} s only {seconds} s are there. Send it again."),
                promised=f"{promised:.1f}",
                seconds=f"{seconds:.1f}",
            ),
        )


def _promised_share(data: bytes) -> float:
    """How many times the bytes of sound that are there the header of a RIFF file promises; 1.0 where it
    can't be told.

    A recorder that streams does not know the length and writes 0 or (nearly) the largest number.
    """
    position = 12
    while data[:4] == b"RIFF" and position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        if name == b"data":
            there = len(data) - position - 8
            return size / there if there and 0 < size < 0x7FFF0000 else 1.0
        position += 8 + size + size % 2
    return 1.0
