"""Suspending and restoring teams and people.

A suspension acts at the next request: `keys.authenticate` and `submission.plan` look at it, Django forgets sessions of
people who are not active, and workers take nothing more of a suspended team. What a worker is speaking at that moment
is finished and settled. What waits of a team stays until it is restored, unless it is to be canceled; what waits of a
person is canceled, as nobody could cancel it any more.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import extensions
from accounts.errors import Conflict, NotFound
from accounts.models import Team, User
from accounts.operators import Operator

TEAM_PERMISSION = "accounts.change_team"
USER_PERMISSION = "accounts.change_user"


def suspend_team(*, by: Operator, team_id: UUID, reason: str = "", cancel_waiting: bool = False) -> int:
    """Stop a team at once; how many waiting requests were canceled. Nothing when it is suspended already."""
    by.require(TEAM_PERMISSION)
    with transaction.atomic():
        team = _team(team_id)
        if team.suspended_at is None:
            team.suspended_at = timezone.now()
            team.save(update_fields=["suspended_at"])
        canceled = extensions.cancel_waiting(team_id=team_id) if cancel_waiting else 0
        by.record("team.suspended", target=team, team_id=team_id, reason=reason, canceled=canceled)
    return canceled


def restore_team(*, by: Operator, team_id: UUID, reason: str = "") -> None:
    """Let a team work again; its keys and what still waits go on."""
    by.require(TEAM_PERMISSION)
    with transaction.atomic():
        team = _team(team_id)
        if team.suspended_at is not None:
            team.suspended_at = None
            team.save(update_fields=["suspended_at"])
            by.record("team.restored", target=team, team_id=team_id, reason=reason)


def suspend_user(*, by: Operator, user_id: UUID, reason: str = "") -> int:
    """Stop a person everywhere: sessions, keys, what waits; how many requests were canceled. Conflict for oneself."""
    by.require(USER_PERMISSION)
    if by.user is not None and by.user.pk == user_id:
        raise Conflict(_("You cannot suspend yourself. Ask another administrator."), code="own_account")
    with transaction.atomic():
        user = _user(user_id)
        by.require_over(user)
        if user.is_active:
            user.is_active = False
            user.save(update_fields=["is_active"])
        canceled = extensions.cancel_waiting(user_id=user_id)
        by.record("user.suspended", target=user, reason=reason, canceled=canceled)
    return canceled


def restore_user(*, by: Operator, user_id: UUID, reason: str = "") -> None:
    """Let a person in again."""
    by.require(USER_PERMISSION)
    with transaction.atomic():
        user = _user(user_id)
        by.require_over(user)
        if user.is_erased:
            raise Conflict(_("This person was erased: there is nobody to restore."), code="person_erased")
        if not user.is_active:
            user.is_active = True
            user.save(update_fields=["is_active"])
            by.record("user.restored", target=user, reason=reason)


def _team(team_id: UUID) -> Team:
    team = Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team_id).first()
    if team is None:
        raise NotFound
    return team


def _user(user_id: UUID) -> User:
    user = User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
    if user is None:
        raise NotFound
    return user
