"""What workers report of themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from synthesis.models import Worker

#: Workers that have been silent for so long are forgotten.
FORGET = timedelta(days=1)


def beat(*, name: str, **fields: Any) -> None:
    """Write a worker's report (fields of `Worker`); its row is made at the first one."""
    now = timezone.now()
    if not Worker.objects.filter(name=name).update(last_seen=now, **fields):
        Worker.objects.update_or_create(
            name=name,
            defaults={"last_seen": now, **fields},
            create_defaults={"started_at": now, "last_seen": now, **fields},
        )


def forget_old() -> int:
    """Remove workers that have long been silent; how many."""
    return Worker.objects.filter(last_seen__lt=timezone.now() - FORGET).delete()[0]
