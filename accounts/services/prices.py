"""The price table: what use costs, by plan and from which day. For chargeback; nothing is billed here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.errors import InvalidInput, NotFound
from accounts.models import Plan, Price
from accounts.operators import Operator

PERMISSION = "accounts.change_price"
_MOST = Decimal(10**9)


@dataclass(frozen=True, slots=True)
class Rates:
    """Money for a million characters, an hour of sound, an hour of engine time."""

    per_million_characters: Decimal
    per_audio_hour: Decimal
    per_engine_hour: Decimal


@dataclass(frozen=True, slots=True)
class Interval:
    """Days (`last` included) on which the same rates hold; by plan, None for every plan without its own."""

    first: date
    last: date
    rates: dict[UUID | None, Rates]


def set_price(
    *,
    by: Operator,
    plan: Plan | None,
    valid_from: date,
    per_million_characters: Decimal,
    per_audio_hour: Decimal,
    per_engine_hour: Decimal,
) -> Price:
    """A line of the table; one for the same plan and day is replaced. Reports of days before it stay as they are."""
    by.require(PERMISSION)
    rates = {
        "per_million_characters": per_million_characters,
        "per_audio_hour": per_audio_hour,
        "per_engine_hour": per_engine_hour,
    }
    for name, value in rates.items():
        if not 0 <= value <= _MOST:
            raise InvalidInput(
                _("A price is not negative, and at most a milliard."), code="price_invalid", param=name
            )
    with transaction.atomic():
        before = Price.objects.filter(plan=plan, valid_from=valid_from).first()
        price, _made = Price.objects.update_or_create(
            plan=plan, valid_from=valid_from, defaults={**rates, "created_by": by.user}
        )
        by.record(
            "price.set",
            target=price,
            plan=plan.name if plan else None,
            valid_from=valid_from.isoformat(),
            before={name: str(getattr(before, name)) for name in rates} if before else None,
            after={name: str(value) for name, value in rates.items()},
        )
    return price


def delete_price(*, by: Operator, price_id: UUID) -> None:
    """Remove a line: the one before it holds on."""
    by.require(PERMISSION)
    with transaction.atomic():
        price = Price.objects.select_for_update(of=("self",)).filter(pk=price_id).first()
        if price is None:
            raise NotFound
        by.record("price.deleted", target=price, price=str(price))
        price.delete()


def intervals(first: date, last: date) -> list[Interval]:
    """The range, cut where a price changes; one interval without rates when there are no prices."""
    lines: dict[UUID | None, list[tuple[date, Rates]]] = {}
    for price in Price.objects.filter(valid_from__lte=last).order_by("valid_from"):
        rates = Rates(price.per_million_characters, price.per_audio_hour, price.per_engine_hour)
        lines.setdefault(price.plan_id, []).append((price.valid_from, rates))
    starts = sorted({first} | {day for line in lines.values() for day, _rates in line if first < day <= last})
    found = []
    for index, start in enumerate(starts):
        end = starts[index + 1] - timedelta(days=1) if index + 1 < len(starts) else last
        valid = {
            plan: [rates for day, rates in line if day <= start][-1]
            for plan, line in lines.items()
            if line[0][0] <= start
        }
        found.append(Interval(start, end, valid))
    return found
