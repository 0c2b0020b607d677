"""Acting as somebody else: to see what they see when they ask for help. Limited in time, told to them, and audited.

It is a session of that person, marked with who is really there. Whoever acts cannot change how the person signs in,
nor make keys, and everything they do carries their own address in the audit log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import login, logout
from django.core.mail import send_mail
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotAllowed, NotFound
from accounts.models import Membership, User
from accounts.operators import Operator
from accounts.services import audit

PERMISSION = "accounts.act_as"
#: Then the session ends.
GOOD_FOR = timedelta(hours=1)
SESSION = "acting"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@dataclass(frozen=True, slots=True)
class Acting:
    """Who is really there, and until when (seconds since 1970)."""

    operator_id: str
    operator: str
    until: float

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return timezone.now().timestamp() > self.until


def begin(request: HttpRequest, *, by: Operator, user_id: UUID, reason: str) -> User:
    """Turn the operator's session into one of `user_id`; the person is told by e-mail.

    Raises InvalidInput without a reason, Conflict for staff, oneself and people who are suspended.
    """
    by.require(PERMISSION)
    reason = " ".join(reason.split())[:200]
    if not reason:
        raise InvalidInput(_("Say why: the person is told."), code="reason_missing", param="reason")
    user = User.objects.filter(pk=user_id).first()
    if user is None or by.user is None:
        raise NotFound
    if user.is_staff or user.pk == by.user.pk:
        raise Conflict(_("You cannot act as a member of the staff."), code="acting_as_staff")
    if not user.is_active:
        raise Conflict(_("This person is suspended."), code="user_suspended")
    operator = by.user
    with transaction.atomic():
        entry = by.record("user.acted_as", target=user, reason=reason, until_minutes=GOOD_FOR.seconds // 60)
        # In the log of their teams as well, where their owners look.
        for membership in Membership.objects.filter(user=user):
            by.record(
                "user.acted_as", target=user, team_id=membership.team_id, reason=reason, entry=str(entry.pk)
            )
        transaction.on_commit(lambda: _tell(user, operator, reason), robust=True)
    login(request, user, _BACKEND)
    request.session[SESSION] = {
        "operator_id": str(operator.pk),
        "operator": operator.email,
        "until": (timezone.now() + GOOD_FOR).timestamp(),
    }
    request.session.set_expiry(int(GOOD_FOR.total_seconds()))
    return user


def _tell(user: User, operator: User, reason: str) -> None:
    with translation.override(user.language or settings.LANGUAGE_CODE):
        send_mail(
            _("Somebody from the service has opened your account"),
            _(
                "%(operator)s, who runs this service, has opened your account to help you, for %(minutes)d minutes "
                "at most.\n\nThe reason they gave: %(reason)s\n\nThey could not see your password, change how you "
                "sign in or make API keys. What they did is in the audit log of your team. If you did not expect "
                "this, ask them.\n"
            )
            % {"operator": operator.email, "minutes": GOOD_FOR.seconds // 60, "reason": reason},
            None,
            [user.email],
        )


def end(request: HttpRequest) -> None:
    """Back to the operator's own session, who proves themselves anew before the panel opens."""
    acting = of(request)
    if acting is None:
        raise NotAllowed
    person = request.user
    operator = User.objects.filter(pk=acting.operator_id, is_active=True, is_staff=True).first()
    if isinstance(person, User):
        audit.record("user.acted_as_ended", user=operator, by=acting.operator, target=person)
    logout(request)
    if operator is not None and not acting.is_over:
        login(request, operator, _BACKEND)


def of(request: HttpRequest) -> Acting | None:
    """Who acts in this session; None for a person's own."""
    return parse(request.session.get(SESSION))


def parse(value: Any) -> Acting | None:
    """What the session keeps, as an object."""
    return Acting(**value) if isinstance(value, dict) else None
