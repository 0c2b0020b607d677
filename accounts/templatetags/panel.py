"""What the panel's templates need beyond those of the pages."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from django import template
from django.contrib.admin.templatetags.admin_list import result_headers, results
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from accounts.panel.modeladmin import label_of
from accounts.services import operator_settings

register = template.Library()


@register.inclusion_tag("admin/change_list_results.html")
def panel_results(cl: Any) -> dict[str, Any]:
    """Django's list of results; each cell says which column it is in, as a row is a small card on a phone."""
    headers = list(result_headers(cl))
    for header, name in zip(headers, cl.list_display, strict=True):
        if name != "action_checkbox":
            header["text"] = capfirst(label_of(name, cl.model, cl.model_admin))
    rows = [
        [_labelled(cell, header["text"]) for cell, header in zip(row, headers, strict=True)]
        for row in results(cl)
    ]
    return {"result_headers": headers, "results": rows}


def _labelled(cell: str, label: Any) -> SafeString:
    """`cell` is what Django made of it, already escaped; the checkbox has markup for a label and gets none."""
    text = str(label)
    if "<" in text:
        return mark_safe(cell)  # noqa: S308
    return mark_safe(re.sub(r"^<td\b", f'<td data-label="{escape(text)}"', cell, count=1))  # noqa: S308


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
