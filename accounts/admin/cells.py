"""Pieces of table cells that several lists share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.effects import Text
from accounts.panel.modeladmin import short_time


@dataclass(frozen=True)
class Link:
    """A cell that leads somewhere."""

    text: str
    url: str


def object_url(obj: Any) -> str:
    """The page of an object in the panel."""
    return reverse(f"admin:{obj._meta.app_label}_{obj._meta.model_name}_change", args=[quote(obj.pk)])


def link(obj: Any, text: str = "") -> Link:
    """A link to an object's page."""
    return Link(text or str(obj), object_url(obj))


def anchor(obj: Any, text: str = "") -> SafeString:
    """The same as HTML, for lists and facts."""
    return format_html('<a href="{}">{}</a>', object_url(obj), text or str(obj))


def moment(field: str, label: Text) -> Callable[[Any], str]:
    """A column with a point in time, sortable by it."""

    @admin.display(ordering=field)
    def shown(obj: Any) -> str:
        return short_time(getattr(obj, field))

    shown.short_description = label  # type: ignore[attr-defined]
    return shown


def badge(word: Any, kind: str = "") -> SafeString:
    """A coloured word; kinds: good, warn, bad, accent, or none."""
    return format_html('<span class="badge{}">{}</span>', f" badge-{kind}" if kind else "", word)


def number(value: int | float | None) -> str:
    """With separators of thousands."""
    return "—" if value is None else f"{value:,}"
