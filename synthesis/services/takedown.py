"""Forbidding a voice: at once for what is submitted, what waits and what is being spoken."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import Membership, Role, User
from accounts.operators import Operator
from synthesis.errors import VOICE_TAKEN_DOWN
from synthesis.models import Voice
from synthesis.services import dispatch

PERMISSION = "synthesis.change_voice"


def take_down(*, by: Operator, voice_id: UUID, reason: str) -> int:
    """Block a voice; how many unfinished requests it ended, none of them charged.

    Its files stay, so that the case can be looked into and the voice restored. The owners of its team and who made it
    are told the reason. InvalidInput without one.
    """
    by.require(PERMISSION)
    reason = " ".join(reason.split())[:200]
    if not reason:
        raise InvalidInput(_("Say why: the team is told."), code="reason_missing", param="reason")
    with transaction.atomic():
        voice = _locked(voice_id)
        if voice.taken_down_at is None:
            voice.taken_down_at = timezone.now()
        voice.taken_down_reason = reason
        voice.save(update_fields=["taken_down_at", "taken_down_reason"])
        ended = dispatch.refuse(voice.pk, code="voice_taken_down", message=VOICE_TAKEN_DOWN)
        by.record(
            "voice.taken_down",
            target=voice,
            team_id=voice.team_id,
            name=voice.name,
            reason=reason,
            ended=ended,
        )
        transaction.on_commit(lambda: _tell_team(voice), robust=True)
    return ended


def restore(*, by: Operator, voice_id: UUID, reason: str = "") -> None:
    """Allow a voice again. Conflict when its team has another one of this name by now."""
    by.require(PERMISSION)
    with transaction.atomic():
        voice = _locked(voice_id)
        if voice.deleted_at is not None:
            raise Conflict(_("Its team has deleted this voice."), code="voice_deleted")
        voice.taken_down_at = None
        voice.taken_down_reason = ""
        voice.save(update_fields=["taken_down_at", "taken_down_reason"])
        by.record("voice.restored", target=voice, team_id=voice.team_id, name=voice.name, reason=reason)


def _locked(voice_id: UUID) -> Voice:
    voice = Voice.objects.select_for_update(of=("self",), no_key=True).filter(pk=voice_id).first()
    if voice is None:
        raise NotFound
    return voice


def _tell_team(voice: Voice) -> None:
    """By e-mail; the page of the voice says the same."""
    if voice.team_id is None:
        return
    owners = Membership.objects.filter(team=voice.team_id, role=Role.OWNER).select_related("user")
    people: set[User] = {one.user for one in owners}
    if voice.created_by is not None:
        people.add(voice.created_by)
    for person in people:
        if not person.is_active:
            continue
        with translation.override(person.language or settings.LANGUAGE_CODE):
            send_mail(
                _("Your voice “%(voice)s” was blocked") % {"voice": voice.name},
                _(
                    "The operator of this service has blocked the voice “%(voice)s”. Nobody can speak with it now; "
                    "what waited for it was ended without charge.\n\nThe reason: %(reason)s\n\nIf you think that this "
                    "is a mistake, show the operator the consent of the person whose voice it is.\n\n%(url)s\n"
                )
                % {
                    "voice": voice.name,
                    "reason": voice.taken_down_reason,
                    "url": settings.CHORUS_BASE_URL + reverse("voice", args=[voice.pk]),
                },
                None,
                [person.email],
            )
