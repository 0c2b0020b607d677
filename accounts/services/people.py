"""What operators do for people and teams: keys revoked, sessions ended, teams made."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import ApiKey, Invitation, Plan, Role, Team, User
from accounts.models.teams import validate_time_zone
from accounts.operators import Operator
from accounts.services import teams


def revoke_key(*, by: Operator, key_id: UUID, reason: str = "") -> ApiKey:
    """End anybody's key at once."""
    by.require("accounts.change_apikey")
    with transaction.atomic():
        key = ApiKey.objects.select_for_update(no_key=True).filter(pk=key_id).first()
        if key is None:
            raise NotFound
        if key.revoked_at is None:
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            by.record("key.revoked", target=key, team_id=key.team_id, name=key.name, reason=reason)
    return key


def withdraw_invitation(*, by: Operator, invitation_id: UUID) -> None:
    """End an open invitation of any team: its link works no more. Conflict once it was accepted."""
    by.require("accounts.change_user")
    with transaction.atomic():
        invitation = Invitation.objects.select_for_update().filter(pk=invitation_id).first()
        if invitation is None:
            raise NotFound
        if invitation.accepted_at is not None:
            raise Conflict(_("This invitation was accepted."), code="invitation_accepted")
        by.record(
            "invitation.withdrawn", target=invitation, team_id=invitation.team_id, email=invitation.email
        )
        invitation.delete()


def end_access(*, by: Operator, user_id: UUID, reason: str = "") -> tuple[int, int]:
    """End all of a person's sessions and keys (a lost laptop); how many of each."""
    by.require("accounts.change_user")
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
        if user is None:
            raise NotFound
        by.require_over(user)
        keys = ApiKey.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
        sessions = end_sessions(user_id)
        by.record("user.access_ended", target=user, keys=keys, sessions=sessions, reason=reason)
    return sessions, keys


def end_sessions(user_id: UUID) -> int:
    """Delete a person's sessions; how many. All are read: whose one is, is written only inside of it."""
    mine = [
        session.pk
        for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator(chunk_size=500)
        if session.get_decoded().get(SESSION_KEY) == str(user_id)
    ]
    return Session.objects.filter(pk__in=mine).delete()[0]


def create_team(
    *, by: Operator, name: str, plan: Plan, owner_email: str, time_zone: str = "UTC"
) -> tuple[Team, str]:
    """A team for whoever has this address: they own it at once when they have an account, else by an invitation,
    whose link is returned (and sent)."""
    by.require("accounts.add_team")
    name, email = _team_name(name), owner_email.strip().lower()
    _check_zone(time_zone)
    with transaction.atomic():
        owner = User.objects.filter(email=email).first()
        link = ""
        if owner is not None:
            team = teams.create(owner=owner, name=name, plan=plan, time_zone=time_zone).team
        else:
            team = Team.objects.create(name=name, plan=plan, time_zone=time_zone)
            path = reverse("invitation", args=["-token-"]).replace("-token-", "{token}")
            _invitation, link = teams.open_invitation(
                team=team,
                email=email,
                role=Role.OWNER,
                invited_by=by.user,
                accept_url=settings.CHORUS_BASE_URL + path,
            )
        by.record("team.created", target=team, team_id=team.pk, name=name, plan=plan.name, owner=email)
    return team, link


def change_team(*, by: Operator, team_id: UUID, name: str, time_zone: str) -> Team:
    """Another name or time zone. The zone decides when the team's month begins."""
    by.require("accounts.change_team")
    name = _team_name(name)
    _check_zone(time_zone)
    with transaction.atomic():
        team = Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team_id).first()
        if team is None:
            raise NotFound
        before = {"name": team.name, "time_zone": team.time_zone}
        after = {"name": name, "time_zone": time_zone}
        if before != after:
            team.name, team.time_zone = name, time_zone
            team.save(update_fields=["name", "time_zone"])
            by.record("team.changed", target=team, team_id=team_id, before=before, after=after)
    return team


def _team_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the team a name of 1 to 100 characters."), code="name_invalid", param="name"
        )
    return name


def _check_zone(time_zone: str) -> None:
    try:
        validate_time_zone(time_zone)
    except ValidationError as error:
        raise InvalidInput(error.messages[0], code="time_zone_unknown", param="time_zone") from None
