"""Recorded consents: kept as evidence beside the voices that were made with them."""

from __future__ import annotations

import re
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput
from accounts.services import audit
from synthesis import storage
from synthesis.audio import decode, quality
from synthesis.errors import ConsentNotFound
from synthesis.models import VoiceConsent

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}", re.ASCII)


def create(*, actor: Actor, name: str, language: str, recording: bytes) -> VoiceConsent:
    """Keep a recording in which somebody agrees that their voice is cloned; InvalidInput when it is no speech."""
    actor.require(permissions.VOICES_WRITE)
    name = _checked_name(name)
    if not _LANGUAGE.fullmatch(language) or len(language) > 16:
        raise InvalidInput(
            _("“%(language)s” is not a language tag. An example: en-US.") % {"language": language},
            code="language_invalid",
            param="language",
        )
    _check_speech(recording)
    consent = VoiceConsent(
        team=actor.team,
        created_by=actor.user,
        name=name,
        language=language,
        # Invisible until it is in storage; the sweep removes it if this process dies before that.
        deleted_at=timezone.now(),
    )
    consent.recording_key = f"{storage.consent_prefix(actor.team.id, consent.id)}recording"
    consent.save(force_insert=True)
    storage.put(consent.recording_key, recording, "application/octet-stream")
    with transaction.atomic():
        consent.deleted_at = None
        consent.save(update_fields=["deleted_at"])
        audit.record("consent.recorded", actor=actor, target=consent, name=name, language=language)
    return consent


def _check_speech(recording: bytes) -> None:
    try:
        clip = decode.decode(recording)
    except InvalidInput as error:
        error.param = "recording"
        raise
    for flaw in quality.measure(clip).flaws:
        if flaw.severity == "error":
            raise InvalidInput(flaw.sentence, code=flaw.code, param="recording")


def visible(actor: Actor) -> QuerySet[VoiceConsent]:
    """The team's recorded consents, the newest first."""
    actor.require(permissions.VOICES_READ)
    return VoiceConsent.objects.filter(team=actor.team, deleted_at=None).order_by("-id")


def find(actor: Actor, consent_id: UUID) -> VoiceConsent:
    """One of them; ConsentNotFound."""
    found = visible(actor).filter(id=consent_id).first()
    if found is None:
        raise ConsentNotFound
    return found


def rename(*, actor: Actor, consent_id: UUID, name: str) -> VoiceConsent:
    """Give it another name."""
    actor.require(permissions.VOICES_WRITE)
    name = _checked_name(name)
    with transaction.atomic():
        consent = _locked(actor, consent_id)
        before, consent.name = consent.name, name
        consent.save(update_fields=["name"])
        audit.record("consent.renamed", actor=actor, target=consent, before=before, after=name)
    return consent


def delete(*, actor: Actor, consent_id: UUID) -> None:
    """Remove it, for good; Conflict while a voice rests on it."""
    actor.require(permissions.VOICES_WRITE)
    with transaction.atomic():
        consent = _locked(actor, consent_id)
        if consent.versions.filter(voice__deleted_at=None).exists():
            raise Conflict(
                _("A voice was made with this consent. Delete the voice first."), code="consent_in_use"
            )
        # The evidence about a deleted voice goes with its speaker's consent.
        consent.versions.update(consent_recording=None)
        consent.deleted_at = timezone.now()
        consent.save(update_fields=["deleted_at"])
        audit.record("consent.deleted", actor=actor, target=consent, name=consent.name)


def _locked(actor: Actor, consent_id: UUID) -> VoiceConsent:
    found = (
        VoiceConsent.objects.select_for_update()
        .filter(team=actor.team, deleted_at=None, id=consent_id)
        .first()
    )
    if found is None:
        raise ConsentNotFound
    return found


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the consent a name of 1 to 100 characters."), code="name_invalid", param="name"
        )
    return name
