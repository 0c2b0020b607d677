"""What a team decides about itself: its name, clock, retention, voice; and whose it is."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import Membership, Role, Team
from accounts.models.teams import validate_time_zone
from accounts.services import audit


def update(
    *,
    actor: Actor,
    name: str,
    time_zone: str,
    retention_days: int | None,
    default_voice: UUID | None,
) -> Team:
    """Change the team. `retention_days` are at most the plan's (None: as the plan says); they hold for what is made
    from now on. Raises InvalidInput.
    """
    actor.require(permissions.TEAM_WRITE)
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the team a name of 1 to 100 characters."), code="name_invalid", param="name"
        )
    try:
        validate_time_zone(time_zone)
    except ValidationError as error:
        raise InvalidInput(error.messages[0], code="time_zone_unknown", param="time_zone") from None
    most = actor.team.plan.retention_days
    if retention_days is not None and not 1 <= retention_days <= most:
        raise InvalidInput(
            _("Your plan keeps recordings for up to %(days)d days. Choose 1 to %(days)d.") % {"days": most},
            code="retention_out_of_range",
            param="retention_days",
        )
    with transaction.atomic():
        team = Team.objects.select_for_update(of=("self",), no_key=True).get(id=actor.team.id)
        before = {field: getattr(team, field) for field in ("name", "time_zone", "retention_days")}
        team.name, team.time_zone = name, time_zone
        team.retention_days, team.default_voice = retention_days, default_voice
        team.save(update_fields=["name", "time_zone", "retention_days", "default_voice"])
        after = {field: getattr(team, field) for field in before}
        changed = {field: [before[field], after[field]] for field in before if before[field] != after[field]}
        audit.record("team.updated", actor=actor, target=team, changed=changed)
    return team


def hand_over(*, actor: Actor, membership_id: UUID) -> None:
    """Make another member the owner and oneself an admin, in one step. Raises NotAllowed, NotFound and Conflict."""
    actor.require(permissions.TEAM_WRITE)
    with transaction.atomic():
        # In one order for all, as `teams` locks them: two that hand over at once cannot cross.
        members = {
            one.id: one
            for one in Membership.objects.select_for_update(of=("self",), no_key=True)
            .filter(team=actor.team)
            .order_by("id")
        }
        other, own = members.get(membership_id), members.get(actor.membership.id)
        if other is None or own is None:
            raise NotFound
        if other.id == own.id or own.role != Role.OWNER:
            raise Conflict(_("Choose another member of the team."), code="same_member")
        other.role, own.role = Role.OWNER, Role.ADMIN
        other.save(update_fields=["role"])
        own.save(update_fields=["role"])
        audit.record("team.handed_over", actor=actor, target=other, email=other.user.email)
