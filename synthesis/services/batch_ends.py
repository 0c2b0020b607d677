"""Batches of which every row has ended: told once each time, whoever is killed when.

Rows end in transactions of their own, none of which can see whether it is the last. So the sweep looks at the batches
that are marked as open, and takes the mark away in the transaction that writes down what is to be told.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from synthesis.models import Batch, Status, SynthesisRequest
from synthesis.services import callbacks, deliveries, shown
from synthesis.services.batch_states import states

EVENT = "batch.completed"


def tell() -> int:
    """For the sweep: tell of the batches that have ended since; how many."""
    open_ = Batch.objects.filter(open=True, waiting=False).order_by("id").values_list("id", flat=True)
    return sum(_close(batch_id) for batch_id in open_ if not _is_unfinished(batch_id))


def _close(batch_id: UUID) -> bool:
    with transaction.atomic():
        # A retry locks the batch as well, and opens it anew.
        batch = (
            Batch.objects.select_for_update(of=("self",), skip_locked=True)
            .filter(id=batch_id, open=True, waiting=False)
            .first()
        )
        if batch is None or _is_unfinished(batch_id):
            return False
        close(batch)
    return True


def _is_unfinished(batch_id: UUID) -> bool:
    return SynthesisRequest.objects.filter(
        batch_row__batch=batch_id, status__in=[Status.QUEUED, Status.RUNNING]
    ).exists()


def close(batch: Batch) -> None:
    """Write down that `batch`, which is locked and open and of which every row has ended, has ended."""
    batch.open = False
    batch.save(update_fields=["open"])
    address = f"{settings.CHORUS_BASE_URL}/v1/batches/{batch.pk}"
    urls = {"get": address, **{name: f"{address}/{name}" for name in ("rows", "cancel", "retry", "zip")}}
    body = shown.plain(shown.batch(batch, states([batch])[batch.pk], urls=urls))
    deliveries.tell(batch.team_id, EVENT, body)
    if batch.webhook:
        callbacks.batch_ended(team_id=batch.team_id, batch_id=batch.pk, url=batch.webhook, body=body)
