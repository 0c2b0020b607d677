"""Rows of batches become requests, a few at a time, as the team's queue has room.

Batches of a team together take at most half of what it may have waiting, so that there is always room for what is
submitted by hand, which is also taken first (`PRIORITY`). Teams share the workers as before: a row is a request like
any other. The sweep looks every second; killed in between, it finds the rows as they were.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import ChorusError, Conflict, InvalidInput, NotAllowed
from accounts.models import Membership
from accounts.services import ledger, limits, operator_settings
from synthesis.models import Batch, BatchRow, Status, SynthesisRequest
from synthesis.services import submission

logger = logging.getLogger(__name__)

#: Behind what the team submits by hand, which has 0.
PRIORITY = -10
#: Requests of one batch that wait: enough for a second of many workers.
WINDOW = 100
#: Rows of one transaction, which keeps the team's other submissions waiting for as long as it lasts.
_AT_ONCE = 20


def admit_waiting() -> int:
    """For the sweep: make requests of rows as there is room; how many."""
    count = 0
    for batch_id in Batch.objects.filter(waiting=True).order_by("id").values_list("id", flat=True):
        while taken := admit(batch_id):
            count += taken
    return count


def admit(batch_id: UUID) -> int:
    """Make requests of the next rows of a batch, at most _AT_ONCE; how many rows were taken. 0 when there is no room,
    nothing waits, or somebody else is at it.
    """
    with transaction.atomic():
        batch = (
            Batch.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("team__plan", "team__quota", "api_key")
            .filter(id=batch_id, waiting=True)
            .first()
        )
        if batch is None or batch.team.suspended_at is not None or operator_settings.get("maintenance"):
            return 0
        waiting = BatchRow.objects.filter(batch=batch, request=None, ended="").order_by("number")
        try:
            actor = owner(batch)
        except Conflict as error:
            count = _refuse(list(waiting), error)
        else:
            rows = list(waiting[: min(_AT_ONCE, _room(batch, actor))])
            count = len(rows)
            for row in rows:
                _admit_row(batch, row, actor)
        if not waiting.exists():
            batch.waiting = False
            batch.save(update_fields=["waiting"])
    return count


def _room(batch: Batch, actor: Actor) -> int:
    """How many requests of this batch the queue still takes; exact until the transaction ends."""
    ledger.hold(batch.team)
    unfinished = SynthesisRequest.objects.filter(
        team=batch.team, status__in=[Status.QUEUED, Status.RUNNING]
    ).aggregate(
        team=Count("id"),
        team_rows=Count("id", filter=Q(batch_row__isnull=False)),
        member=Count("id", filter=Q(user=actor.user)),
        member_rows=Count("id", filter=Q(user=actor.user, batch_row__isnull=False)),
        own=Count("id", filter=Q(batch_row__batch=batch)),
        own_queued=Count("id", filter=Q(batch_row__batch=batch, status=Status.QUEUED)),
    )
    waiting = Batch.objects.filter(team=batch.team, waiting=True)
    rooms = [WINDOW - unfinished["own_queued"]]
    for name, limit, batches in (
        ("team", limits.of_team(batch.team).queued_requests, waiting),
        ("member", limits.of_member(actor.membership).queued_requests, waiting.filter(user=actor.user)),
    ):
        if limit is None:
            continue
        half = max(1, limit // 2)
        rooms += [
            limit - unfinished[name],
            half - unfinished[f"{name}_rows"],
            # Batches of a team come forward together.
            max(1, half // batches.count()) - unfinished["own"],
        ]
    return max(0, min(rooms))


def _admit_row(batch: Batch, row: BatchRow, actor: Actor) -> None:
    try:
        planned = submission.plan(actor=actor, **(row.input or {}))
    except (InvalidInput, NotAllowed) as error:
        # The voice was deleted, a limit lowered, a role changed since.
        _refuse([row], error)
        return
    row.request = submission.enqueue(
        actor=actor,
        planned=planned,
        request_id=row.reservation,
        priority=PRIORITY,
        source=batch.source,
        retry_of_id=row.retry_of_id,
    )
    row.input, row.retry_of = None, None
    row.save(update_fields=["request", "input", "retry_of"])


def _refuse(rows: list[BatchRow], error: ChorusError) -> int:
    """These rows fail without having been requests, and without charge."""
    ledger.release_many([row.reservation for row in rows])
    BatchRow.objects.filter(id__in=[row.pk for row in rows]).update(
        ended=Status.FAILED, ended_at=timezone.now(), error_code=error.code, error_message=str(error)
    )
    logger.info("Rows of a batch were refused", extra={"rows": len(rows), "code": error.code})
    return len(rows)


def owner(batch: Batch) -> Actor:
    """For whom the batch was made. Conflict when they left, or when the key with which they made it was revoked."""
    membership = (
        Membership.objects.select_related("team__plan", "team__quota", "user", "quota")
        .filter(team=batch.team_id, user=batch.user_id)
        .first()
    )
    if membership is None or not membership.user.is_active:
        raise Conflict(_("The person who made this batch has left the team."), code="person_gone")
    key = batch.api_key
    if key is not None and key.revoked_at is not None:
        raise Conflict(
            _("The API key with which this batch was made was revoked. Make a new batch."),
            code="batch_key_revoked",
        )
    return Actor(membership, key)
