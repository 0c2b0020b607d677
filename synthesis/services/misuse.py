"""Reports of misuse: who hears a voice that should not be, says so; the operator decides and the reporter is told."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.operators import Operator
from accounts.services import audit, rates
from synthesis.models import MisuseReport, Voice
from synthesis.services import takedown, voices

PERMISSION = "synthesis.change_misusereport"
DETAILS_CHARACTERS = 2_000
NOTE_CHARACTERS = 500


def report(*, actor: Actor, voice_id: UUID, kind: str, details: str) -> MisuseReport:
    """What a member of a team says about a voice that they can use.

    Raises VoiceNotFound, InvalidInput, LimitReached (too many a minute) and Conflict (`misuse_reported`: theirs of this
    voice is still open).
    """
    actor.require(permissions.VOICES_READ)
    kind, details = _checked(kind, details)
    voice = voices.find(actor, voice_id)
    rates.hit(actor)
    with transaction.atomic():
        try:
            with transaction.atomic():
                made = MisuseReport.objects.create(
                    voice=voice, kind=kind, details=details, reporter=actor.user, email=actor.user.email
                )
        except IntegrityError:
            raise Conflict(
                _("You have reported this voice already. You will be told what was decided."),
                code="misuse_reported",
            ) from None
        # Of no team: the owners of a voice must not read in their log who reported it.
        audit.record("misuse.reported", user=actor.user, target=made, voice=str(voice.pk), kind=kind)
    return made


def note_complaint(*, by: Operator, voice_id: UUID, kind: str, details: str, email: str = "") -> MisuseReport:
    """What somebody without an account told the operator; `email` gets the decision. InvalidInput, NotFound."""
    by.require(PERMISSION)
    kind, details = _checked(kind, details)
    email = email.strip().lower()
    if email:
        try:
            validate_email(email)
        except ValidationError:
            raise InvalidInput(
                _("“%(email)s” is not an e-mail address.") % {"email": email},
                code="email_invalid",
                param="email",
            ) from None
    voice = Voice.objects.filter(pk=voice_id).first()
    if voice is None:
        raise NotFound
    with transaction.atomic():
        made = MisuseReport.objects.create(voice=voice, kind=kind, details=details, email=email)
        by.record("misuse.reported", target=made, voice=str(voice.pk), kind=kind)
    return made


def dismiss(*, by: Operator, report_id: UUID, note: str) -> MisuseReport:
    """Leave the voice as it is; the reporter is told `note`. Conflict once it was decided."""
    by.require(PERMISSION)
    note = _checked_note(note)
    with transaction.atomic():
        found = _open(report_id)
        _decide(by, [found], MisuseReport.Decision.DISMISSED, note)
    return found


def take_down(*, by: Operator, report_id: UUID, reason: str, note: str = "") -> int:
    """Block the voice for `reason`, which its team reads; all open reports of it are decided, their reporters told.

    How many unfinished requests it ended. `note` is for the reporters only. Conflict once it was decided.
    """
    by.require(PERMISSION)
    note = " ".join(note.split())[:NOTE_CHARACTERS]
    with transaction.atomic():
        found = _open(report_id)
        ended = takedown.take_down(by=by, voice_id=found.voice_id, reason=reason)
        same = MisuseReport.objects.select_for_update(of=("self",)).select_related("voice", "reporter")
        _decide(
            by,
            list(same.filter(voice=found.voice_id, decided_at=None).order_by("id")),
            MisuseReport.Decision.TAKEN_DOWN,
            note,
        )
    return ended


def _checked(kind: str, details: str) -> tuple[str, str]:
    if kind not in MisuseReport.Kind.values:
        raise InvalidInput(_("Say what is wrong with this voice."), code="misuse_kind_unknown", param="kind")
    details = details.strip()
    if not 10 <= len(details) <= DETAILS_CHARACTERS or "\x00" in details:
        raise InvalidInput(
            _("Say in 10 to %(most)d characters what happened, and where it can be heard.")
            % {"most": DETAILS_CHARACTERS},
            code="misuse_details_invalid",
            param="details",
        )
    return kind, details


def _checked_note(note: str) -> str:
    note = " ".join(note.split())[:NOTE_CHARACTERS]
    if not note:
        raise InvalidInput(_("Say why: whoever reported it is told."), code="reason_missing", param="note")
    return note


def _open(report_id: UUID) -> MisuseReport:
    rows = MisuseReport.objects.select_for_update(of=("self",)).select_related("voice", "reporter")
    found = rows.filter(pk=report_id).first()
    if found is None:
        raise NotFound
    if not found.is_open:
        raise Conflict(_("This report was decided already."), code="misuse_decided")
    return found


def _decide(by: Operator, reports: list[MisuseReport], decision: MisuseReport.Decision, note: str) -> None:
    for one in reports:
        one.decision, one.note = decision, note
        one.decided_at, one.decided_by = timezone.now(), by.user
        one.save(update_fields=["decision", "note", "decided_at", "decided_by"])
        by.record(f"misuse.{decision.value}", target=one, voice=str(one.voice_id), note=note)
        if one.email:
            transaction.on_commit(partial(_tell, one), robust=True)


def _tell(report: MisuseReport) -> None:
    language = report.reporter.language if report.reporter else ""
    with translation.override(language or settings.LANGUAGE_CODE):
        values = {"voice": report.voice.name, "note": report.note}
        if report.decision == MisuseReport.Decision.TAKEN_DOWN:
            text = _("Thank you for your report of the voice “%(voice)s”. Nobody can speak with it any more.")
        else:
            text = _(
                "Thank you for your report of the voice “%(voice)s”. We looked at it and left the voice as it is."
            )
        said = f"\n\n{report.note}" if report.note else ""
        send_mail(_("What became of your report"), f"{text % values}{said}\n", None, [report.email])
