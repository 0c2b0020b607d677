"""What teams and people are called, many at once: for rows that keep plain ids."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from accounts.models import Team, User


def team_names(ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Names of teams that still exist, by id."""
    return dict(Team.objects.filter(pk__in={one for one in ids if one}).values_list("pk", "name"))


def emails(ids: Iterable[UUID | None]) -> dict[UUID, str]:
    """Addresses of people who still exist, by id."""
    return dict(User.objects.filter(pk__in={one for one in ids if one}).values_list("pk", "email"))
