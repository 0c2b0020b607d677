"""How pages name things: voices, texts, requests."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _


def excerpt(text: str, length: int = 160) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: length * 2].split())
    return line if len(line) <= length else line[:length].rstrip() + "…"


def gender_name(gender: str) -> str:
    """As it is heard; empty when nobody said."""
    return {"female": _("female"), "male": _("male"), "neutral": _("neutral")}.get(gender, "")


def short_id(value: UUID) -> str:
    """The end of an id, enough to tell two requests apart in a conversation."""
    return value.hex[-6:]
