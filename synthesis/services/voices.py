"""A team's own voices: from an uploaded clip to something that can be spoken with."""

from __future__ import annotations

from dataclasses import fields
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, LimitReached
from accounts.models import Team
from accounts.services import audit, limits
from synthesis import nearest, storage, transcription
from synthesis.audio import decode, prepare, quality
from synthesis.engines import capabilities
from synthesis.errors import VoiceNotFound
from synthesis.models import Voice, VoiceConsent, VoiceVersion

#: What somebody who uploads a voice agrees to; the words are stored with each version.
CONSENT_STATEMENT = gettext_lazy(
    "This is my own voice, or I have the speaker's permission to clone it and to use it for what my team makes."
)
TRANSCRIPT_CHARACTERS = 2_000


def create(
    *,
    actor: Actor,
    name: str,
    language: str,
    audio: bytes,
    filename: str = "",
    transcript: str = "",
    consent: bool,
    consent_recording: VoiceConsent | None = None,
    gender: str = "",
    window: tuple[float, float] | None = None,
) -> Voice:
    """A voice from a clip (any container that `synthesis.audio.decode` takes, up to 10 minutes).

    `window` chooses the part to use, in seconds of the original; the best one otherwise. Raises InvalidInput (no
    consent, not speech, …), LimitReached (`voice_limit_reached`) and Conflict (`voice_name_taken`).
    """
    actor.require(permissions.VOICES_WRITE)
    name = _checked_name(name)
    _check_choices(language, gender)
    if not consent:
        raise InvalidInput(
            _("A voice needs the consent of its speaker. Confirm: “%(statement)s”")
            % {"statement": CONSENT_STATEMENT},
            code="consent_required",
            param="consent",
        )
    _check_room(actor, name)
    voice = Voice(
        team=actor.team,
        created_by=actor.user,
        kind=Voice.Kind.CLONED,
        name=name,
        language=language,
        gender=gender,
        # Invisible until its files are in storage; the sweep removes it if this process dies before that.
        deleted_at=timezone.now(),
    )
    version = VoiceVersion(voice=voice, number=1, consent_by=actor.user, consent_at=timezone.now())
    version.consent_statement = str(CONSENT_STATEMENT)
    version.consent_recording = consent_recording
    version.original_name = filename[:255]
    processed = _process(version, language, audio, window, transcript)
    voice.save(force_insert=True)
    version.original_key = storage.version_key(actor.team.id, version, "original")
    version.processed_key = storage.version_key(actor.team.id, version, "prompt.wav")
    storage.put(version.original_key, audio, "application/octet-stream")
    storage.put(version.processed_key, processed, "audio/wav")
    with transaction.atomic():
        # Locks the team: two uploads cannot both take the last place.
        Team.objects.select_for_update(of=("self",)).get(id=actor.team.id)
        _check_room(actor, name)
        version.save(force_insert=True)
        voice.current_version = version
        voice.deleted_at = None
        _save_named(voice, ["current_version", "deleted_at"])
        audit.record("voice.created", actor=actor, target=voice, name=name, consent=version.consent_statement)
    return voice


def _process(
    version: VoiceVersion, language: str, audio: bytes, window: tuple[float, float] | None, transcript: str
) -> bytes:
    """Fill in what was measured; the prepared clip as WAV."""
    clip = decode.decode(audio)
    for flaw in quality.measure(clip).flaws:
        if flaw.severity == "error":
            raise InvalidInput(flaw.sentence, code=flaw.code, param="audio")
    rate = capabilities(settings.CHORUS_ENGINE).sample_rate
    prepared = prepare.prepare(clip, rate=rate, window=window)
    # What is shown is the part that is used: a long recording may be noisy where nobody will hear it.
    measured = quality.measure(clip.part(prepared.start_s, prepared.end_s))
    version.sample_rate = rate
    version.seconds = len(prepared.samples) / rate
    version.window_start, version.window_end = prepared.start_s, prepared.end_s
    version.original_seconds = clip.seconds
    version.quality = _plain(measured, prepared)
    version.nearest = {
        engine: nearest.nearest_preset(prepared.samples, rate, language, engine) for engine in nearest.ENGINES
    }
    version.transcript = _checked_transcript(transcript)
    if not version.transcript and transcription.available():
        version.transcript = transcription.transcribe(prepared.samples, rate, language)
    return prepare.to_wav(prepared.samples, rate)


def _plain(measured: quality.Quality, prepared: prepare.Prepared) -> dict[str, object]:
    return {
        **{field.name: getattr(measured, field.name) for field in fields(measured) if field.name != "flaws"},
        # The codes only: their sentences are found when they are shown, in the reader's language.
        "flaws": [flaw.code for flaw in measured.flaws],
        # Other stretches to offer, seconds of the original.
        "windows": [[window.start_s, window.end_s] for window in prepared.candidates],
    }


def update(
    *,
    actor: Actor,
    voice_id: UUID,
    name: str | None = None,
    language: str | None = None,
    gender: str | None = None,
    transcript: str | None = None,
    window: tuple[float, float] | None = None,
) -> Voice:
    """Change what is given. Another transcript or window makes a new version; requests keep theirs."""
    actor.require(permissions.VOICES_WRITE)
    voice = find_own(actor, voice_id)
    current = voice.current_version
    if current is None:  # its upload is not finished yet
        raise VoiceNotFound
    changed = VoiceVersion(
        voice=voice,
        consent_by=current.consent_by,
        consent_at=current.consent_at,
        consent_statement=current.consent_statement,
        consent_recording_id=current.consent_recording_id,
        original_key=current.original_key,
        original_name=current.original_name,
        original_seconds=current.original_seconds,
        processed_key=current.processed_key,
        sample_rate=current.sample_rate,
        seconds=current.seconds,
        window_start=current.window_start,
        window_end=current.window_end,
        quality=current.quality,
        nearest=current.nearest,
        transcript=current.transcript,
    )
    new_version = False
    if window is not None and window != (current.window_start, current.window_end):
        processed = _process(
            changed, language or voice.language, storage.get(current.original_key), window, transcript or ""
        )
        changed.processed_key = storage.version_key(actor.team.id, changed, "prompt.wav")
        storage.put(changed.processed_key, processed, "audio/wav")
        new_version = True
    if transcript is not None and _checked_transcript(transcript) != current.transcript:
        changed.transcript = _checked_transcript(transcript)
        new_version = True
    _check_choices(language or voice.language, voice.gender if gender is None else gender)
    with transaction.atomic():
        voice = find_own(actor, voice_id, lock=True)
        voice.name = voice.name if name is None else _checked_name(name)
        voice.language = language or voice.language
        voice.gender = voice.gender if gender is None else gender
        if new_version:
            changed.number = voice.versions.count() + 1
            changed.save(force_insert=True)
            voice.current_version = changed
        _save_named(voice, ["name", "language", "gender", "current_version"])
        audit.record("voice.updated", actor=actor, target=voice, new_version=new_version)
    return voice


def delete(*, actor: Actor, voice_id: UUID) -> None:
    """Take a voice away: at once for submissions, queued requests fail without charge, the sweep removes its files."""
    actor.require(permissions.VOICES_WRITE)
    with transaction.atomic():
        voice = find_own(actor, voice_id, lock=True)
        voice.deleted_at = timezone.now()
        voice.save(update_fields=["deleted_at"])
        audit.record("voice.deleted", actor=actor, target=voice, name=voice.name)


def find(actor: Actor, voice_id: UUID) -> Voice:
    """A preset or one of the team's own; VoiceNotFound."""
    actor.require(permissions.VOICES_READ)
    voice = Voice.objects.usable(actor).select_related("current_version").filter(id=voice_id).first()
    if voice is None:
        raise VoiceNotFound
    return voice


def find_own(actor: Actor, voice_id: UUID, *, lock: bool = False) -> Voice:
    """One of the team's own; VoiceNotFound, also for a preset."""
    voices = Voice.objects.filter(team=actor.team, deleted_at=None).select_related("current_version")
    if lock:
        voices = voices.select_for_update(of=("self",))
    voice = voices.filter(id=voice_id).first()
    if voice is None:
        raise VoiceNotFound
    return voice


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the voice a name of 1 to 100 characters."), code="name_invalid", param="name"
        )
    return name


def _checked_transcript(transcript: str) -> str:
    transcript = " ".join(transcript.split())
    if len(transcript) > TRANSCRIPT_CHARACTERS or not transcript.isprintable() or "<|" in transcript:
        raise InvalidInput(
            _("The transcript is what the clip says, word for word, in at most %(max)d characters.")
            % {"max": TRANSCRIPT_CHARACTERS},
            code="transcript_invalid",
            param="transcript",
        )
    return transcript


def _check_choices(language: str, gender: str) -> None:
    languages = capabilities(settings.CHORUS_ENGINE).languages
    if language not in languages:
        raise InvalidInput(
            _("“%(language)s” is not a language of this installation. There are: %(all)s.")
            % {"language": language, "all": ", ".join(languages)},
            code="language_not_supported",
            param="language",
            languages=list(languages),
        )
    if gender not in Voice.Gender.values:
        raise InvalidInput(
            _("The gender is female, male, neutral or left out."), code="gender_unknown", param="gender"
        )


def closest_language(wanted: str) -> str:
    """The engine's language for a tag such as “en” or “en-AU”; the tag itself when it speaks none like it."""
    languages = capabilities(settings.CHORUS_ENGINE).languages
    exact = {tag.lower(): tag for tag in languages}
    if wanted.lower() in exact:
        return exact[wanted.lower()]
    base = wanted.lower().split("-")[0]
    return next((tag for tag in languages if tag.lower().split("-")[0] == base), wanted)


def _check_room(actor: Actor, name: str) -> None:
    own = Voice.objects.filter(team=actor.team, deleted_at=None)
    checks = [
        (own, limits.of_team(actor.team).stored_voices),
        (own.filter(created_by=actor.user), limits.of_member(actor.membership).stored_voices),
    ]
    for voices, limit in checks:
        if limit is not None and voices.count() >= limit:
            raise LimitReached(
                _("All %(limit)d places for voices are taken. Delete one first.") % {"limit": limit},
                code="voice_limit_reached",
                voices_limit=limit,
            )
    if own.filter(name__iexact=name).exists():
        raise _name_taken(name)


def _save_named(voice: Voice, fields: list[str]) -> None:
    try:
        with transaction.atomic():
            voice.save(update_fields=fields)
    except IntegrityError:
        raise _name_taken(voice.name) from None


def _name_taken(name: str) -> Conflict:
    return Conflict(
        _("Your team has a voice called “%(name)s” already. Choose another name.") % {"name": name},
        code="voice_name_taken",
        param="name",
    )
