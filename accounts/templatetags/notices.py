"""What every page says on top when there is something to say: announcements, maintenance, acting as somebody."""

from __future__ import annotations

from typing import Any

from django import template
from django.db import DatabaseError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from accounts.services import impersonation, operator_settings, sign_up

register = template.Library()


@register.simple_tag
def sign_up_open() -> bool:
    """Whether anybody may make an account."""
    return sign_up.is_open()


@register.simple_tag(takes_context=True)
def notices(context: dict[str, Any]) -> SafeString:
    """The notices of a page; nothing on most days."""
    request = context.get("request")
    acting = impersonation.of(request) if request is not None and hasattr(request, "session") else None
    try:
        words = {
            "announcement": operator_settings.get("announcement"),
            "kind": operator_settings.get("announcement_kind"),
            "maintenance": operator_settings.get("maintenance"),
            "maintenance_message": operator_settings.get("maintenance_message"),
        }
    except DatabaseError:
        # The page that says that the database is away must not need it.
        words = {}
    actor = getattr(request, "actor", None)
    words["suspended"] = actor is not None and actor.team.suspended_at is not None
    if acting is None and not any(words.get(name) for name in ("announcement", "maintenance", "suspended")):
        return SafeString("")
    return mark_safe(render_to_string("admin/parts/notices.html", {"acting": acting, **words}, request))  # noqa: S308
