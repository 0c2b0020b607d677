"""ElevenLabs' names: output formats and models."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput
from synthesis import listening
from synthesis.api.catalogue import names
from synthesis.audio.encode import CONTENT_TYPES, Format, Telephone

#: As their API reference lists them, except those of subscriptions to come.
NAMES = (
    *("mp3_22050_32", "mp3_24000_48", "mp3_44100_32", "mp3_44100_64", "mp3_44100_96", "mp3_44100_128"),
    *("mp3_44100_192", "opus_48000_32", "opus_48000_64", "opus_48000_96", "opus_48000_128", "opus_48000_192"),
    *("pcm_8000", "pcm_16000", "pcm_22050", "pcm_24000", "pcm_32000", "pcm_44100", "pcm_48000"),
    *("wav_8000", "wav_16000", "wav_22050", "wav_24000", "wav_32000", "wav_44100", "wav_48000"),
    *("ulaw_8000", "alaw_8000"),
)
DEFAULT = "mp3_44100_128"
#: Names of theirs that clients have built in; all of them mean the engine of this installation.
MODELS = (
    "eleven_v3",
    "eleven_multilingual_v2",
    "eleven_flash_v2_5",
    "eleven_flash_v2",
    "eleven_turbo_v2_5",
    "eleven_turbo_v2",
    "eleven_monolingual_v1",
)


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """What a name means: a codec, its rate in Hz and its bits a second; and the format in which we keep the sound."""

    codec: Format | Telephone
    sample_rate: int
    bit_rate: int | None
    stored: Format


def parse(name: str) -> OutputFormat:
    """InvalidInput for a name that is none."""
    if name not in NAMES:
        raise InvalidInput(
            _("“%(format)s” is not an output format. There are: %(all)s.")
            % {"format": name, "all": ", ".join(NAMES)},
            code="invalid_output_format",
            param="output_format",
        )
    codec, rate, *bits = name.split("_")
    stored = codec if codec in {"mp3", "opus"} else "wav"
    return OutputFormat(codec, int(rate), int(bits[0]) * 1000 if bits else None, stored)  # type: ignore[arg-type]


def content_type(sound: listening.Sound) -> str:
    """Of what is sent."""
    if sound.format in {"ulaw", "alaw"}:
        return "audio/basic" if sound.format == "ulaw" else "audio/x-alaw-basic"
    if sound.format == "pcm":
        return f"audio/pcm; rate={sound.sample_rate}; channels=1"
    return CONTENT_TYPES[sound.format]  # type: ignore[index]


def check_model(name: str | None) -> None:
    """InvalidInput unless `name` is left out, one of `GET /v1/models` or one of theirs."""
    if name and name not in (*names(), *MODELS):
        raise InvalidInput(
            _("There is no model “%(name)s”. There are: %(all)s.")
            % {"name": name, "all": ", ".join((settings.CHORUS_ENGINE, *MODELS))},
            code="model_not_found",
            param="model_id",
        )
