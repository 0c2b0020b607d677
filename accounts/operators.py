"""Who runs the service: a member of staff in the panel, a command, or the sweep. Services of operators take one.

An `Actor` acts for a team; an `Operator` acts on teams. Both end in the same audit log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.errors import NotAllowed
from accounts.models import AuditEntry, User
from accounts.services import audit


@dataclass(frozen=True, slots=True)
class Operator:
    """A person of the staff, or (`user` is None) a command or the sweep, which may do everything."""

    user: User | None
    source: str

    @classmethod
    def person(cls, user: User) -> Operator:
        """Somebody in the panel."""
        return cls(user, "panel")

    @classmethod
    def command(cls) -> Operator:
        """Whoever has a shell on the server."""
        return cls(None, "command")

    @classmethod
    def sweep(cls) -> Operator:
        """The service itself, on time."""
        return cls(None, "sweep")

    @property
    def name(self) -> str:
        """As the audit log has it."""
        return self.user.email if self.user else self.source

    def can(self, permission: str) -> bool:
        """Whether this operator has Django's permission `app.codename`."""
        if self.user is None:
            return True
        return self.user.is_active and self.user.is_staff and self.user.has_perm(permission)

    def require(self, permission: str) -> None:
        """NotAllowed unless this operator has `permission`."""
        if not self.can(permission):
            raise NotAllowed(
                _("Your role in the panel does not allow this (%(permission)s). Ask an administrator.")
                % {"permission": permission},
                required_permission=permission,
            )

    def require_over(self, user: User) -> None:
        """NotAllowed where `user` is an administrator and this operator is none: roles never reach above themselves."""
        if user.is_superuser and self.user is not None and not self.user.is_superuser:
            raise NotAllowed(
                _("This is an administrator's account: only another administrator may do this."),
                required_permission="accounts.manage_staff",
            )

    def record(
        self, action: str, *, target: Any = None, team_id: UUID | None = None, **data: Any
    ) -> AuditEntry:
        """Write an audit entry in the caller's transaction; `data` is plain JSON."""
        return audit.record(
            action, user=self.user, by=self.name, team_id=team_id, target=target, source=self.source, **data
        )
