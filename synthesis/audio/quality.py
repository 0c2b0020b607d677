"""Is a recording good enough to make a voice from, and what could be better about it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from synthesis.audio.decode import Clip, Samples
from synthesis.audio.loudness import measure_loudness
from synthesis.audio.music import steadiness
from synthesis.audio.speech import FRAME_SECONDS, Activity, find_speech

Severity = Literal["error", "warning"]

#: A voice cannot be told from less; CosyVoice3's own advice is 3-10 s.
LEAST_SPEECH_SECONDS = 1.0
_GOOD_SPEECH_SECONDS = 3.0
#: Less than this in a whole clip is a cough or a door.
_ANY_SPEECH_SECONDS = 0.15
#: Share of samples within 10 % of the level that one in a thousand passes. Readings have 0.002 (0.004 in half
#: a second), also after MP3, Opus and AAC; cut 4 times too loud, 0.007 and more.
_CLIPPED_SHARE = 0.005
#: Noise is plainly heard below this, and cloned with the voice. Clean readings measure 20 dB and more.
_NOISY_DB = 15.0
#: `music.steadiness` of clean readings ends at 1.8; with music 10 dB below the voice it begins at 2.4.
_MUSICAL = 2.1
_QUIET_LUFS = -40.0
#: A telephone carries up to 3.4 kHz, an 8 kHz recording up to 4; CosyVoice3 wants 16 kHz, which carries 8.
_NARROW_HZ = 4_500.0
#: Speech at 8 kHz lies 40-55 dB below its strongest part; a resampler leaves nothing above -80.
_BAND_EDGE_DB = -60.0
_SPECTRUM_FRAMES = 1_500


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with a recording; `sentence` says what, and what to do."""

    code: str
    severity: Severity
    sentence: str | Promise


_NO_SPEECH = Flaw(
    "no_speech", "error", _("We could not hear anyone speak here. Record a few sentences and try again.")
)
_TOO_SHORT = Flaw(
    "too_short", "error", _("There is less than a second of speech here. Aim for 5 to 15 seconds.")
)
_SHORT = Flaw(
    "short", "warning", _("This is a little short. A voice sounds truer from 5 to 15 seconds of speech.")
)
_CLIPPED = Flaw(
    "clipped",
    "warning",
    _("The recording is too loud and distorts. Turn the microphone down or move back, and try again."),
)
_NOISY = Flaw(
    "noisy",
    "warning",
    _("There is noise behind the voice, and it will be heard later. Find a quieter place."),
)
_MUSIC = Flaw(
    "music",
    "warning",
    _(
        "There is music in the background, or something that hums, and it will be heard later. "
        "Turn it off and record again."
    ),
)
_QUIET = Flaw(
    "quiet", "warning", _("The recording is very quiet. Move closer to the microphone or turn it up.")
)
_NARROW = Flaw(
    "narrow_band",
    "warning",
    _("It sounds like a telephone: the high tones are missing. Record at 16 kHz or more."),
)


#: What to say about each code, where only codes were kept.
MESSAGES: dict[str, str | Promise] = {
    flaw.code: flaw.sentence
    for flaw in (_NO_SPEECH, _TOO_SHORT, _SHORT, _CLIPPED, _MUSIC, _NOISY, _QUIET, _NARROW)
}


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured in a clip.

    `seconds` whole and `speech_seconds` without pauses; `clipping`, the share of samples at the ceiling
    (0.002 is normal); `signal_to_noise_db`, an estimate; `steadiness` of tones, above 2.1 for music;
    `loudness_lufs`, -70 for silence; `rate` of the file and `bandwidth_hz` that its speech reaches; `flaws`,
    errors first.
    """

    seconds: float
    speech_seconds: float
    clipping: float
    signal_to_noise_db: float
    steadiness: float
    loudness_lufs: float
    rate: int
    bandwidth_hz: float
    flaws: tuple[Flaw, ...]

    @property
    def usable(self) -> bool:
        """Whether a voice can be made from the clip, if perhaps not a good one."""
        return all(flaw.severity != "error" for flaw in self.flaws)


def measure(clip: Clip) -> Quality:
    """Measure `clip`: a second or less for a minute of sound. Of a long one, measure the `part` that is
    used.
    """
    activity = find_speech(clip.samples, clip.rate)
    quality = Quality(
        seconds=clip.seconds,
        speech_seconds=activity.seconds,
        clipping=_clipping(clip.samples),
        signal_to_noise_db=activity.signal_to_noise_db,
        steadiness=steadiness(clip.samples, clip.rate),
        loudness_lufs=measure_loudness(clip.samples, clip.rate).lufs,
        rate=clip.rate,
        bandwidth_hz=_bandwidth(clip, activity),
        flaws=(),
    )
    return replace(quality, flaws=tuple(_flaws(quality)))


def _flaws(quality: Quality) -> Iterator[Flaw]:
    if quality.speech_seconds < _ANY_SPEECH_SECONDS:
        yield _NO_SPEECH
        return
    if quality.speech_seconds < LEAST_SPEECH_SECONDS:
        yield _TOO_SHORT
    elif quality.speech_seconds < _GOOD_SPEECH_SECONDS:
        yield _SHORT
    if quality.clipping >= _CLIPPED_SHARE:
        yield _CLIPPED
    if quality.steadiness > _MUSICAL:
        yield _MUSIC
    elif quality.signal_to_noise_db < _NOISY_DB and quality.clipping < _CLIPPED_SHARE:
        # Distortion and music fill the pauses, so that they seem noisy as well; one advice is enough.
        yield _NOISY
    if quality.loudness_lufs < _QUIET_LUFS:
        yield _QUIET
    if quality.bandwidth_hz < _NARROW_HZ:
        yield _NARROW


def _clipping(samples: Samples) -> float:
    size = np.abs(samples)
    ceiling = float(np.percentile(size, 99.9)) if len(size) else 0.0
    return float(np.mean(size > 0.9 * ceiling)) if ceiling > 0 else 0.0


def _bandwidth(clip: Clip, activity: Activity) -> float:
    """The highest frequency in Hz at which the mean spectrum of the speech is within 60 dB of its maximum."""
    spoken = np.flatnonzero(activity.speech)
    if not len(spoken):
        return 0.0
    spoken = spoken[:: max(1, len(spoken) // _SPECTRUM_FRAMES)]
    length = round(clip.rate * FRAME_SECONDS)
    starts = (spoken * (clip.rate * FRAME_SECONDS)).astype(int)
    starts = starts[starts + length <= len(clip.samples)]
    frames = np.stack([clip.samples[start : start + length] for start in starts]) * np.hanning(length)
    power = np.mean(np.square(np.abs(np.fft.rfft(frames, axis=1))), axis=0)
    decibels = 10 * np.log10(power / power.max() + 1e-20)
    return float(np.flatnonzero(decibels > _BAND_EDGE_DB)[-1] / length * clip.rate)
