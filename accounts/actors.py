"""Who is acting: a person in a team, by session or by key. Every service takes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from django.utils.translation import gettext as _

from accounts.errors import NotAllowed
from accounts.models import ApiKey, Membership, Team, User
from accounts.permissions import OF_ROLE


@dataclass(frozen=True)
class Actor:
    """A membership, and the key when one was used."""

    membership: Membership
    api_key: ApiKey | None = None

    @property
    def team(self) -> Team:
        """The team on whose behalf this happens."""
        return self.membership.team

    @property
    def user(self) -> User:
        """The person."""
        return self.membership.user

    @property
    def source(self) -> str:
        """`api` for a key, `web` for a session."""
        return "api" if self.api_key else "web"

    @cached_property
    def permissions(self) -> frozenset[str]:
        """What the role allows, narrowed by the key's scopes."""
        allowed = OF_ROLE[self.membership.role]
        return allowed & frozenset(self.api_key.scopes) if self.api_key else allowed

    def can(self, permission: str) -> bool:
        """Whether this actor has `permission`."""
        return permission in self.permissions

    def require(self, permission: str) -> None:
        """NotAllowed unless this actor has `permission`."""
        if self.can(permission):
            return
        if self.api_key and permission in OF_ROLE[self.membership.role]:
            raise NotAllowed(
                _("This key lacks the scope “%(scope)s”. Create a key that has it.") % {"scope": permission},
                code="insufficient_scope",
                required_scope=permission,
            )
        raise NotAllowed(
            _("Your role (%(role)s) does not allow this. Ask an owner or admin of your team.")
            % {"role": self.membership.get_role_display()},
        )
