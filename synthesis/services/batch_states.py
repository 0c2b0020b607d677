"""How far batches are, worked out from their rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from synthesis.models import Batch, BatchRow, Status

#: Rows that are no requests yet.
WAITS = Q(request=None, ended="")
#: Rows by the five words of a request.
OF_STATUS: dict[str, Q] = {
    Status.QUEUED: WAITS | Q(request__status=Status.QUEUED),
    Status.RUNNING: Q(request__status=Status.RUNNING),
    Status.SUCCEEDED: Q(request__status=Status.SUCCEEDED),
    Status.FAILED: Q(ended=Status.FAILED) | Q(request__status=Status.FAILED),
    Status.CANCELED: Q(ended=Status.CANCELED) | Q(request__status=Status.CANCELED),
}


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is. `completed_at` is None until every row has ended."""

    counts: dict[str, int]
    #: What was charged.
    characters: int
    audio_seconds: float
    completed_at: datetime | None

    @property
    def status(self) -> str:
        """`queued` until a row is spoken, `running` until all have ended; then `failed` when any row failed,
        `canceled` when any was canceled, and `succeeded` when each succeeded."""
        counts = self.counts
        if counts[Status.QUEUED] or counts[Status.RUNNING]:
            total = sum(counts.values())
            return Status.QUEUED if counts[Status.QUEUED] == total else Status.RUNNING
        for status in (Status.FAILED, Status.CANCELED):
            if counts[status]:
                return status
        return Status.SUCCEEDED


def states(batches: Iterable[Batch]) -> dict[UUID, State]:
    """How far each is, in one query."""
    numbers: dict[str, Any] = {status: Count("id", filter=of) for status, of in OF_STATUS.items()}
    rows = BatchRow.objects.filter(batch__in=[batch.pk for batch in batches])
    ended = Coalesce(F("ended_at"), F("request__completed_at"))
    found: Any = rows.order_by().values("batch").annotate(**numbers, last=Max(ended))
    spoken = dict(_spoken(rows))
    states = {}
    for row in found:
        counts = {str(status): row[status] for status in OF_STATUS}
        under_way = counts[Status.QUEUED] + counts[Status.RUNNING]
        characters, seconds = spoken.get(row["batch"], (0, 0.0))
        states[row["batch"]] = State(counts, characters, seconds, None if under_way else row["last"])
    return states


def _spoken(rows: QuerySet[BatchRow]) -> Iterable[tuple[UUID, tuple[int, float]]]:
    good = rows.filter(request__status=Status.SUCCEEDED).order_by().values("batch")
    for row in good.annotate(n=Sum("characters"), seconds=Sum("request__audio_seconds")):
        yield row["batch"], (row["n"], row["seconds"])
