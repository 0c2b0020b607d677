"""Listening to a recording before a voice is made from it."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from accounts import permissions
from accounts.actors import Actor
from synthesis import transcription
from synthesis.audio import decode, prepare, quality
from synthesis.engines import capabilities


@dataclass(frozen=True, slots=True)
class Heard:
    """What was found: `flaws` (errors first), seconds of the recording and of the part that would be used.

    `transcript` is a suggestion, empty where speech recognition is not installed or nobody speaks.
    """

    flaws: tuple[quality.Flaw, ...]
    seconds: float
    used_seconds: float
    transcript: str

    @property
    def usable(self) -> bool:
        """Whether a voice can be made from it."""
        return all(flaw.severity != "error" for flaw in self.flaws)


def listen(*, actor: Actor, audio: bytes, language: str) -> Heard:
    """Say how good `audio` is, keeping nothing.

    Raises NotAllowed, and InvalidInput for what cannot be read as sound.
    """
    actor.require(permissions.VOICES_WRITE)
    clip = decode.decode(audio)
    whole = quality.measure(clip)
    if not whole.usable:
        return Heard(whole.flaws, clip.seconds, 0.0, "")
    rate = capabilities(settings.CHORUS_ENGINE).sample_rate
    prepared = prepare.prepare(clip, rate=rate)
    part = quality.measure(clip.part(prepared.start_s, prepared.end_s))
    transcript = ""
    if transcription.available():
        transcript = transcription.transcribe(prepared.samples, rate, language)
    return Heard(part.flaws, clip.seconds, prepared.end_s - prepared.start_s, transcript)
