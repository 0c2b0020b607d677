"""What a member may do, for templates that show or hide a link."""

from __future__ import annotations

from django import template

from accounts.actors import Actor
from accounts.models import Membership

register = template.Library()


@register.filter
def may(membership: Membership, permission: str) -> bool:
    """Whether the role of `membership` has `permission`; the view behind the link decides by itself."""
    return Actor(membership).can(permission)
