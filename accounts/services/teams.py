"""Teams, members and invitations."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import MaxLengthValidator, validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotAllowed, NotFound
from accounts.models import ApiKey, Invitation, Membership, Plan, Role, Team, User
from accounts.models.users import EMAIL_CHARACTERS
from accounts.services import audit, operator_settings

INVITATION_DAYS = 7


def create(*, owner: User, name: str, plan: Plan, time_zone: str = "UTC") -> Actor:
    """A team with its first owner."""
    with transaction.atomic():
        team = Team.objects.create(name=name.strip(), plan=plan, time_zone=time_zone)
        actor = Actor(Membership.objects.create(team=team, user=owner, role=Role.OWNER))
        audit.record("team.created", actor=actor, target=team, name=team.name)
    return actor


def named(given: str) -> Team | None:
    """The team that an operator names, by its name (any case) or its id. Names may repeat: InvalidInput
    (`team_ambiguous`) where several have it.
    """
    found = list(Team.objects.filter(name__iexact=given)[:2])
    if len(found) > 1:
        raise InvalidInput(
            _("Several teams are called “%(name)s”. Give the id of the one that you mean.") % {"name": given},
            code="team_ambiguous",
            param="team",
        )
    try:
        return found[0] if found else Team.objects.filter(id=UUID(given)).first()
    except ValueError:
        return None


def invite(*, actor: Actor, email: str, role: str, accept_url: str) -> tuple[Invitation, str]:
    """An invitation and its link, which is also sent by e-mail; an open one to the same address is replaced.

    `accept_url` holds `{token}`. Raises InvalidInput, Conflict (already a member) and NotAllowed (a role above the
    actor's own).
    """
    actor.require(permissions.MEMBERS_WRITE)
    _require_assignable(actor, role)
    with transaction.atomic():
        invitation, link = open_invitation(
            team=actor.team, email=email, role=role, invited_by=actor.user, accept_url=accept_url
        )
        audit.record("member.invited", actor=actor, target=invitation, email=invitation.email, role=role)
    return invitation, link


def open_invitation(
    *, team: Team, email: str, role: str, invited_by: User | None, accept_url: str
) -> tuple[Invitation, str]:
    """What `invite` does once it is clear that somebody may; in the caller's transaction."""
    email = email.strip().lower()
    try:
        validate_email(email)
        MaxLengthValidator(EMAIL_CHARACTERS)(email)  # Django's own takes longer ones than it stores
    except ValidationError:
        raise InvalidInput(
            _("“%(email)s” is not an e-mail address.") % {"email": email}, code="email_invalid", param="email"
        ) from None
    if not User.objects.filter(email=email).exists():
        operator_settings.check_email(email)
    token = secrets.token_urlsafe(32)
    if Membership.objects.filter(team=team, user__email=email).exists():
        raise Conflict(_("%(email)s is already in the team.") % {"email": email}, code="already_member")
    invitation, _made = Invitation.objects.update_or_create(
        team=team,
        email=email,
        accepted_at=None,
        defaults={
            "role": role,
            "token_digest": _digest(token),
            "invited_by": invited_by,
            "expires_at": timezone.now() + timedelta(days=INVITATION_DAYS),
        },
    )
    link = accept_url.replace("{token}", token)
    inviter = invited_by.get_short_name() if invited_by else "Chorus"
    transaction.on_commit(lambda: _send_invitation(inviter, team.name, email, link), robust=True)
    return invitation, link


def _send_invitation(inviter: str, team: str, email: str, link: str) -> None:
    send_mail(
        _("%(name)s invites you to %(team)s on Chorus") % {"name": inviter, "team": team},
        _("Open this link to join. It works once and for %(days)d days.\n\n%(link)s\n")
        % {"days": INVITATION_DAYS, "link": link},
        None,
        [email],
    )


def find_invitation(token: str) -> Invitation:
    """The open invitation behind a link; NotFound when it was used, replaced, withdrawn or has expired."""
    invitation = (
        Invitation.objects.select_related("team", "invited_by").filter(token_digest=_digest(token)).first()
    )
    if invitation is None or not invitation.is_open:
        raise NotFound(_("This invitation no longer works. Ask for a new one."), code="invitation_not_found")
    return invitation


def joined_by(*, token: str, user: User) -> Membership | None:
    """The membership that `user` has by this link, when they have used it and are in the team still."""
    found = Invitation.objects.filter(token_digest=_digest(token), email=user.email).exclude(accepted_at=None)
    return Membership.objects.filter(user=user, team__in=found.values("team")).select_related("team").first()


def accept(*, token: str, user: User | None, name: str = "", password: str = "") -> Membership:
    """Join a team by a link: as the person signed in, or as a new person with `name` and `password`.

    Raises NotFound (no such open invitation), InvalidInput (a weak password), Conflict (an account with this
    address exists: sign in first) and NotAllowed (signed in as somebody else).
    """
    with transaction.atomic():
        found = find_invitation(token)
        invitation = Invitation.objects.select_for_update().get(pk=found.pk)
        if not invitation.is_open or bytes(invitation.token_digest) != _digest(token):
            raise NotFound(
                _("This invitation no longer works. Ask for a new one."), code="invitation_not_found"
            )
        if user is None:
            user = _register(invitation.email, name, password)
        elif user.email != invitation.email:
            raise NotAllowed(
                _("This invitation is for %(email)s. Sign out first, or ask for one to your own address.")
                % {"email": invitation.email},
                code="invitation_for_somebody_else",
            )
        membership, _made = Membership.objects.get_or_create(
            team=invitation.team, user=user, defaults={"role": invitation.role}
        )
        invitation.accepted_at = timezone.now()
        invitation.save(update_fields=["accepted_at"])
        audit.record("member.joined", actor=Actor(membership), target=membership, role=membership.role)
    return membership


def _register(email: str, name: str, password: str) -> User:
    if User.objects.filter(email=email).exists():
        raise Conflict(
            _("There is an account for %(email)s. Sign in, then open the link again.") % {"email": email},
            code="account_exists",
        )
    operator_settings.check_email(email)
    try:
        validate_password(password, User(email=email, name=name))
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), code="password_weak", param="password") from None
    return User.objects.create_user(email, password, name=name.strip())


def withdraw(*, actor: Actor, invitation_id: UUID) -> None:
    """End an open invitation."""
    actor.require(permissions.MEMBERS_WRITE)
    with transaction.atomic():
        invitation = Invitation.objects.filter(
            team=actor.team, id=invitation_id, accepted_at__isnull=True
        ).first()
        if invitation is None:
            raise NotFound
        audit.record("invitation.withdrawn", actor=actor, target=invitation, email=invitation.email)
        invitation.delete()


def change_role(*, actor: Actor, membership_id: UUID, role: str) -> Membership:
    """Give a member another role. A team keeps at least one owner (Conflict)."""
    actor.require(permissions.MEMBERS_WRITE)
    _require_assignable(actor, role)
    with transaction.atomic():
        membership = _locked(actor, membership_id)
        before = membership.role
        if before == Role.OWNER:
            _require_assignable(actor, Role.OWNER)
            if role != Role.OWNER:
                _require_another_owner(membership)
        membership.role = role
        membership.save(update_fields=["role"])
        audit.record("member.role_changed", actor=actor, target=membership, before=before, after=role)
    return membership


def remove(*, actor: Actor, membership_id: UUID) -> None:
    """Take somebody out of the team (or leave it oneself); their keys stop at once, what they made stays."""
    with transaction.atomic():
        membership = _locked(actor, membership_id)
        if membership.user_id != actor.user.id:
            actor.require(permissions.MEMBERS_WRITE)
            if membership.role == Role.OWNER:
                _require_assignable(actor, Role.OWNER)
        if membership.role == Role.OWNER:
            _require_another_owner(membership)
        ApiKey.objects.filter(team=actor.team, user=membership.user_id, revoked_at=None).update(
            revoked_at=timezone.now()
        )
        audit.record("member.removed", actor=actor, target=membership, email=membership.user.email)
        membership.delete()


def _locked(actor: Actor, membership_id: UUID) -> Membership:
    # All owners of a team are locked together: two that step down at once cannot both succeed.
    members = {
        member.id: member
        for member in Membership.objects.select_for_update(of=("self",), no_key=True)
        .select_related("user")
        .filter(team=actor.team)
        .order_by("id")
    }
    if membership_id not in members:
        raise NotFound
    return members[membership_id]


def _require_another_owner(membership: Membership) -> None:
    others = Membership.objects.filter(team=membership.team_id, role=Role.OWNER).exclude(pk=membership.pk)
    if not others.exists():
        raise Conflict(_("A team needs an owner. Make somebody else an owner first."), code="last_owner")


def _require_assignable(actor: Actor, role: str) -> None:
    if role not in Role.values:
        raise InvalidInput(
            _("“%(role)s” is not a role. There are: %(all)s.")
            % {"role": role, "all": ", ".join(Role.values)},
            code="role_unknown",
            param="role",
        )
    if role == Role.OWNER and actor.membership.role != Role.OWNER:
        raise NotAllowed(_("Only an owner can do this."), param="role")


def _digest(token: str) -> bytes:
    # The token has 256 random bits: a plain hash cannot be reversed.
    return hashlib.sha256(token.encode()).digest()
