"""What workers report of themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput, NotFound
from accounts.operators import Operator
from synthesis.models import Worker

#: Workers that have been silent for so long are forgotten.
FORGET = timedelta(days=1)


PERMISSION = "synthesis.change_worker"


def beat(*, name: str, **fields: Any) -> str:
    """Write a worker's report (fields of `Worker`), whose row is made at the first one; its order, or nothing."""
    now = timezone.now()
    if not Worker.objects.filter(name=name).update(last_seen=now, **fields):
        Worker.objects.update_or_create(
            name=name,
            defaults={"last_seen": now, **fields},
            create_defaults={"started_at": now, "last_seen": now, **fields},
        )
    return Worker.objects.filter(name=name).values_list("order", flat=True).first() or ""


def order(*, by: Operator, name: str, order: str, reason: str = "") -> None:
    """Give a worker an order, which it hears with its next report (within five seconds); empty: go on.

    From this moment it is given nothing more, except when it is only to be recycled.
    """
    by.require(PERMISSION)
    if order and order not in Worker.Order.values:
        raise InvalidInput(
            _("“%(order)s” is not an order. There are: %(all)s.")
            % {"order": order, "all": ", ".join(Worker.Order.values)},
            code="order_unknown",
            param="order",
        )
    with transaction.atomic():
        worker = Worker.objects.select_for_update().filter(name=name).first()
        if worker is None:
            raise NotFound(_("There is no worker “%(name)s”.") % {"name": name}, code="worker_not_found")
        before, worker.order = worker.order, order
        worker.save(update_fields=["order"])
        by.record("worker.ordered", target=worker, before=before, after=order, reason=reason)


def obeyed(*, name: str, order: str) -> None:
    """A worker has done what it was told once; another order given meanwhile stays."""
    Worker.objects.filter(name=name, order=order).update(order="")


def forget_old() -> int:
    """Remove workers that have long been silent; how many."""
    return Worker.objects.filter(last_seen__lt=timezone.now() - FORGET).delete()[0]
