"""What operators do to requests: cancel, retry, move in the queue, try again now."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import ChorusError, Conflict, InvalidInput
from accounts.models import Membership
from accounts.operators import Operator
from synthesis import doorbell, events
from synthesis.errors import RequestNotFound
from synthesis.models import BatchRow, Status, SynthesisRequest
from synthesis.services import dispatch, pools, submission, waiting

PERMISSION = "synthesis.change_synthesisrequest"
#: Within a team; teams share by weight.
PRIORITIES = (-100, 100)


def cancel(*, by: Operator, request_id: UUID, reason: str = "") -> bool:
    """End a request without charge; False when it had ended."""
    by.require(PERMISSION)
    with transaction.atomic():
        found = _find(request_id)
        canceled = dispatch.cancel(request_id)
        if canceled:
            by.record("synthesis.canceled", target=found, team_id=found.team_id, reason=reason)
    return canceled


def set_priority(*, by: Operator, request_id: UUID, priority: int, reason: str = "") -> None:
    """Move a queued request before or behind others of its team; Conflict once it is not queued any more."""
    by.require(PERMISSION)
    low, high = PRIORITIES
    if not low <= priority <= high:
        raise InvalidInput(
            _("The priority must be between %(low)d and %(high)d.") % {"low": low, "high": high},
            code="priority_out_of_range",
            param="priority",
        )
    with transaction.atomic():
        found = _find(request_id, lock=True)
        if found.status != Status.QUEUED:
            raise Conflict(_("This request is not waiting any more."), code="not_queued")
        before, found.priority = found.priority, priority
        found.save(update_fields=["priority"])
        by.record(
            "synthesis.priority_changed",
            target=found,
            team_id=found.team_id,
            before=before,
            after=priority,
            reason=reason,
        )
        events.announce(found, queue_moved=True)


def hurry(*, by: Operator, request_id: UUID) -> None:
    """End the pause before a request's next attempt; Conflict once it is not queued any more."""
    by.require(PERMISSION)
    with transaction.atomic():
        found = _find(request_id, lock=True)
        if found.status != Status.QUEUED:
            raise Conflict(_("This request is not waiting any more."), code="not_queued")
        found.not_before = timezone.now()
        found.save(update_fields=["not_before"])
        by.record("synthesis.hurried", target=found, team_id=found.team_id)
        doorbell.ring(pools.of_team(found.team_id))
        events.announce(found, queue_moved=True)


def retry(*, by: Operator, request_id: UUID) -> SynthesisRequest:
    """Submit a failed or canceled request once more, for the same person; the new request.

    It is reserved and settled anew (the failed one was never charged), by the limits and voices of now. Raises
    Conflict (it did not fail; its text was deleted; its person left) and all that `submission` raises.
    """
    by.require(PERMISSION)
    with transaction.atomic():
        old = _find(request_id, lock=True)
        if old.status not in (Status.FAILED, Status.CANCELED):
            raise Conflict(_("Only what failed or was canceled can be tried again."), code="not_failed")
        if old.deleted_at is not None:
            raise Conflict(_("Its text was deleted: there is nothing to speak."), code="text_deleted")
        if old.source_seconds:
            raise Conflict(
                _("It converted a recording, which is removed when that fails. Its owner can send it again."),
                code="recording_removed",
            )
        if (
            SynthesisRequest.objects.filter(retry_of=old)
            .exclude(status__in=[Status.FAILED, Status.CANCELED])
            .exists()
        ):
            raise Conflict(_("It was tried again already."), code="retried")
        actor = _actor(old)
        planned = submission.plan(
            actor=actor,
            voice=str(old.voice_id),
            text=old.text,
            format=old.format,
            speed=old.speed,
            language=old.language,
            instruction=old.instruction,
            seed=old.seed,
            title=old.title,
        )
        new = submission.submit(actor=actor, planned=planned, priority=old.priority)
        SynthesisRequest.objects.filter(pk=new.pk).update(retry_of=old)
        BatchRow.objects.filter(request=old).update(request=new, reservation=new.pk)
        by.record("synthesis.retried", target=old, team_id=old.team_id, new=str(new.pk))
    return new


def retry_all(*, by: Operator, code: str, hours: int, most: int = 1_000) -> tuple[int, int, str]:
    """Try again what failed of one cause and was not yet tried again; (submitted, refused, why the last one was)."""
    by.require(PERMISSION)
    again = SynthesisRequest.objects.filter(retry_of=OuterRef("pk"))
    rows = waiting.failed(hours=hours, code=code).filter(~Exists(again), deleted_at=None).order_by("pk")
    done, refused, why = 0, 0, ""
    for request_id in rows.values_list("pk", flat=True)[:most]:
        try:
            retry(by=by, request_id=request_id)
        except ChorusError as error:
            refused, why = refused + 1, str(error)
        else:
            done += 1
    return done, refused, why


def _actor(old: SynthesisRequest) -> Actor:
    membership = (
        Membership.objects.select_related("team__plan", "team__quota", "user", "quota")
        .filter(team=old.team_id, user=old.user_id)
        .first()
    )
    if membership is None or not membership.user.is_active:
        raise Conflict(_("The person whose request this was has left the team."), code="person_gone")
    key = old.api_key
    # A key that works still pays as before; one that was revoked must not start anything.
    return Actor(membership, key if key is not None and key.is_usable else None)


def _find(request_id: UUID, *, lock: bool = False) -> SynthesisRequest:
    requests = SynthesisRequest.objects.select_related("api_key")
    if lock:
        requests = requests.select_for_update(of=("self",))
    found = requests.filter(pk=request_id).first()
    if found is None:
        raise RequestNotFound
    return found
