"""A second proof of who somebody is: six digits from an authenticator app (TOTP, RFC 6238), or a recovery code.

django-otp keeps the devices, holds guessing down and refuses a code that was used before. Recovery codes are kept as
HMAC digests, so that the database gives none away.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.models import Device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.errors import Conflict, InvalidInput, LimitReached
from accounts.models import User
from accounts.operators import Operator
from accounts.services import audit

RECOVERY_CODES = 10
#: A proof is good for a working day; then it is asked for again.
GOOD_FOR = timedelta(hours=12)
_PROVED_AT = "two_factor_at"
#: Without 0/O, 1/I/L: these are typed from paper.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_CODE_CHARACTERS = 10


def is_enrolled(user: User) -> bool:
    """Whether `user` has set up an authenticator."""
    return TOTPDevice.objects.filter(user=user, confirmed=True).exists()


def begin(user: User) -> TOTPDevice:
    """The secret to be shown as a QR code, the same at each call until `confirm`. Conflict when enrolled already."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if is_enrolled(user):
            raise Conflict(_("Two-factor sign-in is set up already."), code="two_factor_enrolled")
        device: TOTPDevice | None = TOTPDevice.objects.filter(user=user, confirmed=False).first()
        return device or TOTPDevice.objects.create(user=user, name="authenticator", confirmed=False)


def confirm(user: User, code: str) -> tuple[TOTPDevice, list[str]]:
    """End enrolment with a first code; the device, and the recovery codes, which are never to be had again.

    InvalidInput for a wrong code, LimitReached while guessing is held down.
    """
    device = begin(user)
    _verify([device], code)
    with transaction.atomic():
        device.confirmed = True
        device.save(update_fields=["confirmed"])
        codes = _new_codes(user)
        audit.record("two_factor.enrolled", user=user)
    return device, codes


def verify(user: User, code: str) -> Device:
    """The device that `code` belongs to; InvalidInput for a wrong one, LimitReached while guessing is held down."""
    devices: list[Device] = [
        *TOTPDevice.objects.filter(user=user, confirmed=True),
        *StaticDevice.objects.filter(user=user, confirmed=True),
    ]
    device = _verify(devices, code)
    if isinstance(device, StaticDevice):
        audit.record("two_factor.recovery_code_used", user=user, left=device.token_set.count())
    return device


def _verify(devices: Sequence[Device], code: str) -> Device:
    typed = "".join(code.split()).replace("-", "").upper()
    matched = None
    with transaction.atomic():
        for device in devices:
            # Locked, so that a code sent twice at once counts once.
            locked = type(device).objects.select_for_update().get(pk=device.pk)
            fits = len(typed) == _CODE_CHARACTERS if isinstance(locked, StaticDevice) else typed.isdigit()
            if not fits:
                continue
            allowed, why = locked.verify_is_allowed()
            if not allowed:
                raise _held_down(why or {})
            token = _digest(typed) if isinstance(locked, StaticDevice) else typed
            if locked.verify_token(token):
                matched = device
                break
    # Outside of the transaction: the count of wrong guesses must stay.
    if matched is None:
        raise InvalidInput(
            _("This code is wrong or was used before. Wait for the next one and try again."),
            code="two_factor_code_wrong",
            param="code",
        )
    return matched


def _held_down(why: dict[str, Any]) -> LimitReached:
    until = why.get("locked_until")
    seconds = max(1, int((until - timezone.now()).total_seconds()) + 1) if until else 1
    return LimitReached(
        _("Too many wrong codes. Wait %(seconds)d s.") % {"seconds": seconds},
        code="two_factor_locked",
        param="code",
        retry_after=seconds,
    )


def renew_recovery_codes(user: User) -> list[str]:
    """Ten new codes; the old ones stop working."""
    with transaction.atomic():
        codes = _new_codes(user)
        audit.record("two_factor.recovery_codes_renewed", user=user)
    return codes


def recovery_codes_left(user: User) -> int:
    """How many codes are unused."""
    return StaticToken.objects.filter(device__user=user).count()


def turn_off(user: User, code: str) -> None:
    """Remove one's own second factor, proved by it once more. InvalidInput, LimitReached; Conflict for who runs the
    service, where it is required.
    """
    if user.is_staff:
        raise Conflict(
            _("Who may enter the admin panel keeps the second factor."), code="two_factor_required"
        )
    verify(user, code)
    with transaction.atomic():
        TOTPDevice.objects.filter(user=user).delete()
        StaticDevice.objects.filter(user=user).delete()
        audit.record("two_factor.turned_off", user=user)


def reset(*, by: Operator, user_id: UUID) -> None:
    """Remove somebody's second factor, who has lost it: they enrol anew at the next sign-in."""
    by.require("accounts.change_user")
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).get(pk=user_id)
        by.require_over(user)
        TOTPDevice.objects.filter(user=user).delete()
        StaticDevice.objects.filter(user=user).delete()
        by.record("two_factor.reset", target=user)


def _new_codes(user: User) -> list[str]:
    device, _made = StaticDevice.objects.get_or_create(user=user, name="recovery codes")
    device.token_set.all().delete()
    codes = [
        "".join(secrets.choice(_ALPHABET) for _i in range(_CODE_CHARACTERS)) for _n in range(RECOVERY_CODES)
    ]
    StaticToken.objects.bulk_create(StaticToken(device=device, token=_digest(code)) for code in codes)
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def _digest(code: str) -> str:
    # 64 of the digest's bits: as many characters as django-otp's column has, and more than a code has (50).
    return salted_hmac("chorus.recovery-code", code, algorithm="sha256").hexdigest()[:16]


def mark(request: HttpRequest, device: Device) -> None:
    """Note in the session that its person proved themselves with `device` just now."""
    request.session.cycle_key()
    request.session[DEVICE_ID_SESSION_KEY] = device.persistent_id
    request.session[_PROVED_AT] = timezone.now().timestamp()


def is_proved(request: HttpRequest) -> bool:
    """Whether the session's person has proved themselves lately, with a device that is still theirs."""
    identifier = request.session.get(DEVICE_ID_SESSION_KEY)
    if not identifier or not isinstance(request.user, User):
        return False
    if timezone.now().timestamp() - request.session.get(_PROVED_AT, 0) > GOOD_FOR.total_seconds():
        return False
    device = Device.from_persistent_id(identifier)
    return device is not None and device.confirmed and device.user_id == request.user.pk
