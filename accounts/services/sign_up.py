"""Making an account oneself, where the operator allows it: by a link to one's own address, so that it is one's own."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import Team, User
from accounts.services import audit, operator_settings, teams

GOOD_FOR = timedelta(days=1)
_SALT = "chorus.sign-up"


def is_open() -> bool:
    """Whether anybody may make an account."""
    return operator_settings.get("sign_up") == "open"


def ask(*, email: str, address: str) -> None:
    """Send a link to `email`; `address` holds `{token}`. The answer is the same whether there is an account or not.

    Raises NotFound while sign-up is closed, and InvalidInput.
    """
    _require_open()
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidInput(
            _("“%(email)s” is not an e-mail address.") % {"email": email}, code="email_invalid", param="email"
        ) from None
    operator_settings.check_email(email)
    if User.objects.filter(email=email).exists():
        send_mail(
            _("You have an account already"),
            _(
                "Somebody, probably you, wanted to make an account for this address. There is one: sign in with it.\n"
            ),
            None,
            [email],
        )
        return
    link = address.replace("{token}", signing.dumps(email, salt=_SALT))
    send_mail(
        _("Your account on Chorus"),
        _("Open this link to make your account. It works for a day.\n\n%(link)s\n") % {"link": link},
        None,
        [email],
    )


def address_of(token: str) -> str:
    """The e-mail address that a link was sent to; NotFound for one that does not work (any more)."""
    _require_open()
    try:
        return str(signing.loads(token, salt=_SALT, max_age=GOOD_FOR))
    except signing.BadSignature:
        raise NotFound(
            _("This link no longer works. Ask for a new one."), code="sign_up_link_invalid"
        ) from None


def complete(*, token: str, name: str, password: str, team: str) -> tuple[User, Team]:
    """An account and a team of one's own. Raises NotFound, InvalidInput (a weak password, no name of the team) and
    Conflict (the link was used)."""
    email = address_of(token)
    operator_settings.check_email(email)
    team = " ".join(team.split())
    if not team or len(team) > 100 or not team.isprintable():
        raise InvalidInput(
            _("Give the team a name of 1 to 100 characters."), code="name_invalid", param="team"
        )
    try:
        validate_password(password, User(email=email, name=name))
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), code="password_weak", param="password") from None
    with transaction.atomic():
        if User.objects.filter(email=email).exists():
            raise Conflict(_("There is an account for this address. Sign in."), code="account_exists")
        user = User.objects.create_user(email, password, name=name.strip())
        actor = teams.create(owner=user, name=team, plan=operator_settings.default_plan())
        audit.record("user.signed_up", actor=actor, target=user)
    return user, actor.team


def _require_open() -> None:
    if not is_open():
        raise NotFound(
            _("Accounts are made by invitation here. Ask somebody in your team."), code="sign_up_closed"
        )
