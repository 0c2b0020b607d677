"""From recordings to the clip that a voice is made from: each is listened to, the best is prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput
from synthesis import nearest, storage, transcription
from synthesis.audio import decode, prepare, quality
from synthesis.engines import capabilities
from synthesis.models import VoiceVersion

#: Recordings of one speaker that are compared.
MOST = 5
TRANSCRIPT_CHARACTERS = 2_000
#: What each flaw takes from the score of `prepare`, which knows of noise, clipping and length itself. As much as 15 dB
#: of noise do there, for what is cloned with the voice and cannot be taken away; less for what preparing mends.
_PENALTIES = {"music": 0.5, "narrow_band": 0.5, "clipped": 0.25, "short": 0.25, "quiet": 0.1}


@dataclass(frozen=True, slots=True)
class Recording:
    """What somebody sent: the bytes of a file of sound, its name, and what is said in it word for word."""

    audio: bytes
    filename: str = ""
    transcript: str = ""


@dataclass(frozen=True, slots=True)
class _Heard:
    """A recording that can be used: the part that would be, how good that is, seconds of the whole."""

    prepared: prepare.Prepared
    measured: quality.Quality
    seconds: float
    score: float


#: Objects for the storage: key, bytes, content type.
Files = list[tuple[str, bytes, str]]


def store(files: Files) -> None:
    """Put what `fill` or `refill` found worth keeping; StorageUnavailable."""
    for key, data, content_type in files:
        storage.put(key, data, content_type)


def fill(
    version: VoiceVersion,
    recordings: Sequence[Recording],
    *,
    team_id: UUID,
    language: str,
    window: tuple[float, float] | None = None,
    chosen: int | None = None,
) -> Files:
    """Choose the best of `recordings` (or number `chosen`, from 1) and fill in what was found; what is to be stored.

    `window` is the part to use, in seconds of the chosen recording; the best one otherwise. Raises InvalidInput when
    nothing in them can be used as a voice.
    """
    recordings = [replace(one, transcript=checked_transcript(one.transcript)) for one in recordings]
    _check(recordings, window, chosen)
    # A recording that was not chosen is not listened to.
    numbers = range(1, len(recordings) + 1) if chosen is None else [chosen]
    found = {number: _listen(recordings[number - 1], window) for number in numbers}
    usable = {number: one for number, one in found.items() if isinstance(one, _Heard)}
    if not usable:
        raise next(one for one in found.values() if isinstance(one, InvalidInput))
    best = max(usable, key=lambda number: usable[number].score)
    version.clips, files = [], []
    for number, recording in enumerate(recordings, 1):
        key = storage.version_key(team_id, version, "original" if number == 1 else f"original-{number}")
        files.append((key, recording.audio, "application/octet-stream"))
        version.clips.append(_described(number, key, recording, found.get(number)))
    return [*files, _use(version, best, recordings[best - 1], usable[best], team_id, language)]


def refill(
    version: VoiceVersion,
    *,
    team_id: UUID,
    language: str,
    number: int | None,
    window: tuple[float, float] | None,
    transcript: str | None,
) -> Files:
    """Use another part of the recording of `version`, or recording `number` of those that it has; what is to be stored.

    `version` is a new one with the recordings of the one before. Raises InvalidInput for a recording that is not there
    or no speech.
    """
    clips = of(version)
    wanted = number or chosen_of(version)["number"]
    clip = next((clip for clip in clips if clip["number"] == wanted), None)
    if clip is None:
        raise InvalidInput(
            _("There is no recording %(number)d. There are %(count)d.")
            % {"number": wanted, "count": len(clips)},
            code="recording_unknown",
            param="recording",
        )
    # Words that were sent with a recording are its own; those of another part of it are not known.
    said = clip["transcript"] if transcript is None and number else transcript or ""
    recording = Recording(storage.get(clip["key"]), clip["name"], checked_transcript(said))
    heard = _listen(recording, window)
    if isinstance(heard, InvalidInput):
        # It was sent long ago; what was said now is its number.
        heard.param = "recording" if heard.param == "audio" else heard.param
        raise heard
    version.clips = [dict(clip) for clip in clips]
    return [_use(version, wanted, recording, heard, team_id, language)]


def of(version: VoiceVersion) -> list[dict[str, Any]]:
    """The recordings that were sent for `version`: number, key, name, transcript, seconds, score, problems, chosen.

    Of those that were not listened to, or are no speech, `score` is None.
    """
    if version.clips:
        return version.clips
    return [
        {
            "number": 1,
            "key": version.original_key,
            "name": version.original_name,
            "transcript": version.transcript,
            "seconds": version.original_seconds,
            "score": None,
            "problems": version.quality.get("flaws", []),
            "chosen": True,
        }
    ]


def chosen_of(version: VoiceVersion) -> dict[str, Any]:
    """The one of them that is spoken with."""
    return next(clip for clip in of(version) if clip["chosen"])


def _use(
    version: VoiceVersion, number: int, recording: Recording, heard: _Heard, team_id: UUID, language: str
) -> tuple[str, bytes, str]:
    """Make recording `number` the one that is spoken with; the prepared clip, to be stored."""
    prepared, rate = heard.prepared, heard.prepared.rate
    for clip in version.clips:
        clip["chosen"] = clip["number"] == number
    version.original_key = chosen_of(version)["key"]
    version.original_name = recording.filename[:255]
    version.original_seconds = heard.seconds
    version.sample_rate = rate
    version.seconds = len(prepared.samples) / rate
    version.window_start, version.window_end = prepared.start_s, prepared.end_s
    version.quality = _plain(heard.measured, prepared)
    version.nearest = {
        engine: nearest.nearest_preset(prepared.samples, rate, language, engine) for engine in nearest.ENGINES
    }
    version.transcript = recording.transcript
    if not version.transcript and transcription.available():
        version.transcript = transcription.transcribe(prepared.samples, rate, language)
    version.processed_key = storage.version_key(team_id, version, "prompt.wav")
    return version.processed_key, prepare.to_wav(prepared.samples, rate), "audio/wav"


def _check(recordings: Sequence[Recording], window: tuple[float, float] | None, chosen: int | None) -> None:
    if not 1 <= len(recordings) <= MOST:
        raise InvalidInput(
            _("Send 1 to %(most)d recordings.") % {"most": MOST}, code="too_many_recordings", param="audio"
        )
    if window is not None and chosen is None and len(recordings) > 1:
        raise InvalidInput(
            _("A part can be chosen of a single recording only. Leave the part out, or send one recording."),
            code="window_invalid",
            param="window_start",
        )
    if chosen is not None and not 1 <= chosen <= len(recordings):
        raise InvalidInput(
            _("There is no recording %(number)d. There are %(count)d.")
            % {"number": chosen, "count": len(recordings)},
            code="recording_unknown",
            param="recording",
        )


def _listen(recording: Recording, window: tuple[float, float] | None) -> _Heard | InvalidInput:
    """How good it is, or why it is no voice."""
    try:
        clip = decode.decode(recording.audio)
        for flaw in quality.measure(clip).flaws:
            if flaw.severity == "error":
                return InvalidInput(flaw.sentence, code=flaw.code, param="audio")
        rate = capabilities(settings.CHORUS_ENGINE).sample_rate
        prepared = prepare.prepare(clip, rate=rate, window=window)
    except InvalidInput as error:
        if error.code == "audio_window":
            error.param = "window_start"
        return error
    # What is shown is the part that is used: a long recording may be noisy where nobody will hear it.
    measured = quality.measure(clip.part(prepared.start_s, prepared.end_s))
    base = prepared.candidates[0].score if prepared.candidates else 0.0
    score = base - sum(_PENALTIES.get(flaw.code, 0.0) for flaw in measured.flaws)
    return _Heard(prepared, measured, clip.seconds, round(score, 3))


def _described(
    number: int, key: str, recording: Recording, found: _Heard | InvalidInput | None
) -> dict[str, Any]:
    heard = found if isinstance(found, _Heard) else None
    problems = [flaw.code for flaw in heard.measured.flaws] if heard else []
    return {
        "number": number,
        "key": key,
        "name": recording.filename[:255],
        "transcript": recording.transcript,
        "seconds": heard.seconds if heard else None,
        "score": heard.score if heard else None,
        "problems": [found.code] if isinstance(found, InvalidInput) else problems,
        "chosen": False,
    }


def _plain(measured: quality.Quality, prepared: prepare.Prepared) -> dict[str, object]:
    return {
        **{field.name: getattr(measured, field.name) for field in fields(measured) if field.name != "flaws"},
        # The codes only: their sentences are found when they are shown, in the reader's language.
        "flaws": [flaw.code for flaw in measured.flaws],
        # Other stretches to offer, seconds of the original.
        "windows": [[window.start_s, window.end_s] for window in prepared.candidates],
    }


def checked_transcript(transcript: str) -> str:
    """With single spaces; InvalidInput for one that is too long or has characters that are never spoken."""
    transcript = " ".join(transcript.split())
    if len(transcript) > TRANSCRIPT_CHARACTERS or not transcript.isprintable() or "<|" in transcript:
        raise InvalidInput(
            _("The transcript is what the clip says, word for word, in at most %(max)d characters.")
            % {"max": TRANSCRIPT_CHARACTERS},
            code="transcript_invalid",
            param="transcript",
        )
    return transcript
