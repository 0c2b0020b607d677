"""How the service is doing right now, in a few numbers, and what somebody should look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from synthesis.models import Status, SynthesisRequest, Worker
from synthesis.models.workers import ALIVE

#: What has waited for longer is worth a look.
LONG_WAIT = timedelta(minutes=5)


@dataclass(frozen=True)
class Now:
    """Requests waiting and running, the longest wait in seconds, workers alive and silent, what failed in a day."""

    waiting: int
    running: int
    longest_wait: float
    workers: int
    silent: list[str]
    ended_today: int
    failed_today: int
    engine: str = field(default_factory=lambda: settings.CHORUS_ENGINE)

    @property
    def failure_share(self) -> float:
        """Of what ended within a day."""
        return self.failed_today / self.ended_today if self.ended_today else 0.0


def now() -> Now:
    """One look at the rows."""
    moment = timezone.now()
    open_ = SynthesisRequest.objects.filter(status__in=[Status.QUEUED, Status.RUNNING]).aggregate(
        waiting=Count("id", filter=Q(status=Status.QUEUED)),
        running=Count("id", filter=Q(status=Status.RUNNING)),
        oldest=Min("created_at", filter=Q(status=Status.QUEUED)),
    )
    ended = SynthesisRequest.objects.filter(completed_at__gt=moment - timedelta(days=1)).aggregate(
        all=Count("id"), failed=Count("id", filter=Q(status=Status.FAILED))
    )
    return Now(
        waiting=open_["waiting"],
        running=open_["running"],
        longest_wait=_since(open_["oldest"], moment),
        workers=Worker.objects.alive().count(),
        silent=list(
            Worker.objects.filter(last_seen__lt=moment - ALIVE)
            .exclude(state=Worker.State.GONE)
            .order_by("name")
            .values_list("name", flat=True)
        ),
        ended_today=ended["all"],
        failed_today=ended["failed"],
    )


def _since(start: datetime | None, moment: datetime) -> float:
    return max(0.0, (moment - start).total_seconds()) if start else 0.0
