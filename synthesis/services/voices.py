"""A team's own voices: from an uploaded clip to something that can be spoken with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotAllowed
from accounts.models import Team
from accounts.services import audit, idempotency, limits
from synthesis import consent as consents
from synthesis.engines import capabilities
from synthesis.errors import VOICE_DELETED, VoiceIsPreset, VoiceNotFound
from synthesis.models import Voice, VoiceConsent, VoiceQuerySet, VoiceVersion
from synthesis.services import clips, dispatch
from synthesis.services.clips import Recording


def create(
    *,
    actor: Actor,
    name: str,
    language: str,
    audio: bytes,
    filename: str = "",
    transcript: str = "",
    more: Sequence[Recording] = (),
    consent: bool,
    statement: consents.Statement | None = None,
    consent_recording: VoiceConsent | None = None,
    gender: str = "",
    shared: bool = True,
    window: tuple[float, float] | None = None,
    chosen: int | None = None,
    origin: dict[str, Any] | None = None,
) -> Voice:
    """A voice from a clip (any container that `synthesis.audio.decode` takes, up to 10 minutes).

    Of `more` recordings of the same speaker the best is used, or number `chosen` (from 1). `window` chooses the part to
    use, in seconds of the original; the best one otherwise. Unless it is `shared`, only who made it and who manages
    the team sees it. `statement` is what whoever consents was shown; the one in their language by default. Raises
    InvalidInput (no consent, not speech, …) and Conflict (`voice_limit_reached`, `voice_name_taken`).
    """
    actor.require(permissions.VOICES_WRITE)
    name = _checked_name(name)
    _check_choices(language, gender)
    check_consent(consent)
    _check_room(actor, name)
    voice = Voice(
        team=actor.team,
        created_by=actor.user,
        kind=Voice.Kind.CLONED,
        name=name,
        language=language,
        gender=gender,
        shared=shared,
        # Invisible until its files are in storage; the sweep removes it if this process dies before that.
        deleted_at=timezone.now(),
    )
    version = _agreed(VoiceVersion(voice=voice, number=1, origin=origin or {}), actor, statement)
    version.consent_recording = consent_recording
    files = clips.fill(
        version,
        [Recording(audio, filename, transcript), *more],
        team_id=actor.team.id,
        language=language,
        window=window,
        chosen=chosen,
    )
    voice.save(force_insert=True)
    clips.store(files)
    with transaction.atomic():
        # Locks the team: two uploads cannot both take the last place.
        Team.objects.select_for_update(of=("self",), no_key=True).get(id=actor.team.id)
        _check_room(actor, name)
        version.save(force_insert=True)
        voice.current_version = version
        voice.deleted_at = None
        _save_named(voice, ["current_version", "deleted_at"])
        details: dict[str, Any] = {"origin": origin} if origin else {}
        audit.record(
            "voice.created",
            actor=actor,
            target=voice,
            name=name,
            **_as_agreed(version),
            **details,
        )
    return voice


def record_again(
    *,
    actor: Actor,
    voice_id: UUID,
    recordings: Sequence[Recording],
    consent: bool,
    statement: consents.Statement | None = None,
    window: tuple[float, float] | None = None,
) -> Voice:
    """A new version of a voice from other recordings of its speaker; requests that were made with an older one keep it.

    Raises VoiceNotFound, VoiceIsPreset, and InvalidInput as `create` does.
    """
    actor.require(permissions.VOICES_WRITE)
    voice = _changeable(actor, voice_id)
    check_consent(consent)
    version = _agreed(VoiceVersion(voice=voice), actor, statement)
    version.consent_recording_id = current(voice).consent_recording_id
    files = clips.fill(version, recordings, team_id=actor.team.id, language=voice.language, window=window)
    clips.store(files)
    with transaction.atomic():
        voice = _changeable(actor, voice_id, lock=True)
        _add(voice, version)
        voice.save(update_fields=["current_version"])
        audit.record(
            "voice.recorded_again",
            actor=actor,
            target=voice,
            version=version.number,
            **_as_agreed(version),
        )
    return voice


def _agreed(version: VoiceVersion, actor: Actor, statement: consents.Statement | None) -> VoiceVersion:
    """With the consent that `actor` has just given."""
    statement = statement or consents.current()
    version.consent_by, version.consent_at = actor.user, timezone.now()
    version.consent_statement = statement.text
    version.consent_language, version.consent_version = statement.language, statement.version
    return version


def _as_agreed(version: VoiceVersion) -> dict[str, Any]:
    """For the audit log."""
    return {
        "consent": version.consent_statement,
        "consent_language": version.consent_language,
        "consent_version": version.consent_version,
    }


def _add(voice: Voice, version: VoiceVersion) -> None:
    """Make `version` the newest of a voice that is locked."""
    version.number = voice.versions.count() + 1
    version.save(force_insert=True)
    voice.current_version = version


def update(
    *,
    actor: Actor,
    voice_id: UUID,
    name: str | None = None,
    language: str | None = None,
    gender: str | None = None,
    transcript: str | None = None,
    window: tuple[float, float] | None = None,
    recording: int | None = None,
    version: int | None = None,
    shared: bool | None = None,
) -> Voice:
    """Change what is given. Another transcript, window or recording makes a new version; requests keep theirs.

    `recording` is the number of one that was sent for the version; `version` goes back to an older one. Only who made a
    voice, or who manages the team, may change whether it is `shared` (NotAllowed).
    """
    actor.require(permissions.VOICES_WRITE)
    voice = _changeable(actor, voice_id)
    _check_choices(language or voice.language, voice.gender if gender is None else gender)
    if shared is not None and shared != voice.shared and not may_share(actor, voice):
        raise NotAllowed(
            _("Only who made a voice, or who manages the team, decides whether it is shared."), param="shared"
        )
    base = current(voice) if version is None else find_version(voice, version)
    changed = _copy(base)
    new_version = False
    chosen = clips.chosen_of(base)["number"]
    if recording == chosen:
        recording = None
    if recording is not None or window not in (None, (base.window_start, base.window_end)):
        files = clips.refill(
            changed,
            team_id=actor.team.id,
            language=language or voice.language,
            number=recording,
            window=window,
            transcript=transcript,
        )
        clips.store(files)
        new_version = True
    elif transcript is not None and clips.checked_transcript(transcript) != base.transcript:
        changed.transcript = clips.checked_transcript(transcript)
        new_version = True
    with transaction.atomic():
        voice = _changeable(actor, voice_id, lock=True)
        if name is not None and name != voice.name:
            voice.name = _checked_name(name)
            _check_built_in(voice.name)
        voice.language = language or voice.language
        voice.gender = voice.gender if gender is None else gender
        voice.shared = voice.shared if shared is None else shared
        if new_version:
            _add(voice, changed)
        else:
            voice.current_version = base
        _save_named(voice, ["name", "language", "gender", "shared", "current_version"])
        audit.record("voice.updated", actor=actor, target=voice, new_version=new_version, shared=voice.shared)
    return voice


def _copy(version: VoiceVersion) -> VoiceVersion:
    """A new version, not saved, with everything that `version` has."""
    own = {"id", "number", "created_at"}
    return VoiceVersion(
        **{
            field.attname: getattr(version, field.attname)
            for field in VoiceVersion._meta.concrete_fields
            if field.name not in own
        }
    )


def may_share(actor: Actor, voice: Voice) -> bool:
    """Whether `actor` decides who sees `voice`."""
    return actor.can(permissions.MEMBERS_WRITE) or voice.created_by_id == actor.user.id


def versions(actor: Actor, voice_id: UUID) -> QuerySet[VoiceVersion]:
    """All versions of one of the team's voices, the newest first; VoiceNotFound and VoiceIsPreset."""
    actor.require(permissions.VOICES_READ)
    return find_own(actor, voice_id).versions.select_related("consent_by").order_by("-id")


def find_version(voice: Voice, number: int) -> VoiceVersion:
    """One version of `voice`; VoiceNotFound (`version_not_found`)."""
    found = voice.versions.select_related("consent_by").filter(number=number).first()
    if found is None:
        raise VoiceNotFound(
            _("This voice has no version %(number)d.") % {"number": number},
            code="version_not_found",
            param="version",
        )
    return found


def delete(*, actor: Actor, voice_id: UUID) -> None:
    """Take a voice away: what waits for it or is being spoken fails at once, without charge; the sweep removes its
    files.
    """
    actor.require(permissions.VOICES_WRITE)
    with transaction.atomic():
        voice = _changeable(actor, voice_id, lock=True)
        voice.deleted_at = timezone.now()
        voice.save(update_fields=["deleted_at"])
        dispatch.refuse(voice.pk, code="voice_deleted", message=VOICE_DELETED)
        audit.record("voice.deleted", actor=actor, target=voice, name=voice.name)
        idempotency.forget(team=actor.team, body_id=str(voice.pk))


def usable(actor: Actor) -> VoiceQuerySet:
    """What `actor` may speak with, with everything that is shown of it."""
    return (
        Voice.objects.usable(actor).marked(actor).select_related("created_by", "current_version__consent_by")
    )


def find(actor: Actor, voice_id: UUID) -> Voice:
    """A preset or one of the team's own; VoiceNotFound."""
    actor.require(permissions.VOICES_READ)
    voice = usable(actor).filter(id=voice_id).first()
    if voice is None:
        raise VoiceNotFound
    return voice


def seen(actor: Actor, voice_id: UUID) -> Voice:
    """What `actor` may look at: a preset or one of the team's own, also one that is blocked; VoiceNotFound."""
    actor.require(permissions.VOICES_READ)
    found = usable(actor).filter(id=voice_id).first()
    return found if found is not None else find_own(actor, voice_id)


def find_own(actor: Actor, voice_id: UUID, *, lock: bool = False) -> Voice:
    """One of the team's own; VoiceIsPreset for one that the installation has for everybody, else VoiceNotFound."""
    voices = Voice.objects.own(actor).select_related("created_by", "current_version__consent_by")
    if lock:
        # A submission that names the voice must not wait for us while we wait for its reservation.
        voices = voices.select_for_update(of=("self",), no_key=True)
    voice = voices.filter(id=voice_id).first()
    if voice is None:
        is_preset = Voice.objects.usable(actor).filter(id=voice_id, team=None).exists()
        raise VoiceIsPreset if is_preset else VoiceNotFound
    return voice


def _changeable(actor: Actor, voice_id: UUID, *, lock: bool = False) -> Voice:
    """Like `find_own`. What is blocked stays as it is: its recordings are what the case is about."""
    voice = find_own(actor, voice_id, lock=lock)
    if voice.taken_down_at is not None:
        raise Conflict(
            _(
                "The operator has blocked this voice: it cannot be changed or deleted until they decide otherwise."
            ),
            code="voice_blocked",
        )
    return voice


def current(voice: Voice) -> VoiceVersion:
    """What `voice` is spoken with; VoiceNotFound for one that has no recording."""
    if voice.current_version is None:  # its upload is not finished yet
        raise VoiceNotFound
    return voice.current_version


def check_consent(consent: bool) -> None:
    """InvalidInput (`consent_required`) with the statement that must be agreed to."""
    if not consent:
        raise InvalidInput(
            _("A voice needs the consent of its speaker. Confirm: “%(statement)s”")
            % {"statement": consents.current().text},
            code="consent_required",
            param="consent",
        )


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the voice a name of 1 to 100 characters."), code="name_invalid", param="name"
        )
    return name


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
    return capabilities(settings.CHORUS_ENGINE).spoken_as(wanted) or wanted


def _check_room(actor: Actor, name: str) -> None:
    own = Voice.objects.filter(team=actor.team, deleted_at=None)
    checks = [
        (own, limits.of_team(actor.team).stored_voices),
        (own.filter(created_by=actor.user), limits.of_member(actor.membership).stored_voices),
    ]
    for voices, limit in checks:
        if limit is not None and voices.count() >= limit:
            # No time brings a place back: somebody must delete a voice.
            raise Conflict(
                _("All %(limit)d places for voices are taken. Delete one first.") % {"limit": limit},
                code="voice_limit_reached",
                voices_limit=limit,
            )
    if own.filter(name__iexact=name).exists():
        raise _name_taken(name)
    _check_built_in(name)


def _check_built_in(name: str) -> None:
    """A team's own voice comes first when a request names one: it must not take a built-in voice's place unnoticed."""
    built_in = Voice.objects.filter(team=None, engine=settings.CHORUS_ENGINE, deleted_at=None)
    if built_in.filter(name__iexact=name).exists():
        raise Conflict(
            _("A built-in voice is called “%(name)s”. Choose another name.") % {"name": name},
            code="voice_name_taken",
            param="name",
        )


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
