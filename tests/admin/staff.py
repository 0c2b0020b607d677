"""Staff for the tests of the panel: signed in, with a second factor."""

from __future__ import annotations

import time
from collections.abc import Sequence

from django.test import Client
from django.utils import timezone
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.models import User
from accounts.operators import Operator
from accounts.services import staff
from tests import factories


def person(name: str = "Root", *, roles: Sequence[str] = (), superuser: bool = True) -> User:
    """A member of staff; an administrator unless `roles` are given."""
    user = User.objects.create_user(f"{name.lower()}@chorus.example", factories.PASSWORD, name=name)
    if roles:
        staff.set_access(by=Operator.command(), user_id=user.pk, roles=roles)
    elif superuser:
        user.is_staff = user.is_superuser = True
        user.save()
    else:
        user.is_staff = True
        user.save()
    user.refresh_from_db()
    return user


def client_of(user: User) -> Client:
    """A browser in which `user` has signed in and proved themselves."""
    client = Client()
    client.force_login(user)
    device, _made = TOTPDevice.objects.get_or_create(user=user, name="authenticator", confirmed=True)
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = device.persistent_id
    session["two_factor_at"] = timezone.now().timestamp()
    session.save()
    return client


def code_of(device: TOTPDevice, *, ahead: int = 0) -> str:
    """What the authenticator shows now, or `ahead` steps later."""
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits, device.drift)
    totp.time = time.time() + ahead * device.step
    return f"{totp.token():06d}"
