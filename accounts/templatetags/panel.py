"""What the panel's templates need beyond those of the pages."""

from __future__ import annotations

from decimal import Decimal

from django import template

from accounts.services import operator_settings

register = template.Library()


@register.filter
def percent(share: float | None) -> str:
    """0.0123 as 1.2 %."""
    return "" if share is None else f"{share * 100:.1f} %"


@register.filter
def hours(seconds: float | None) -> str:
    """Seconds as hours with one place."""
    return "" if seconds is None else f"{seconds / 3600:,.1f}"


@register.filter
def money(amount: Decimal | None) -> str:
    """With the currency of the price table."""
    if amount is None:
        return ""
    return f"{amount:,.2f} {operator_settings.get('currency')}".strip()


@register.filter
def swap(text: str, words: str) -> str:
    """`text` with the first of two words replaced by the second."""
    before, after = words.split()
    return text.replace(before, after, 1)
