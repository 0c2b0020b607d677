"""The second factor: enrolment, codes, recovery codes, guessing."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.errors import Conflict, InvalidInput, LimitReached, NotAllowed
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import two_factor
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db


def enrolled(user) -> tuple[TOTPDevice, list[str]]:
    return two_factor.confirm(user, staff.code_of(two_factor.begin(user)))


def test_a_fresh_administrator_enrols_at_the_first_visit():
    root = staff.person()
    client = Client()
    client.post("/sign-in/", {"username": root.email, "password": factories.PASSWORD})
    page = client.get("/admin/accounts/team/", follow=True)
    assert page.status_code == 200
    assert "<svg" in page.content.decode()
    secret = re.search(r'id="two-factor-secret">([A-Z2-7 ]+)<', page.content.decode())
    assert secret is not None
    device = TOTPDevice.objects.get(user=root)
    wrong = client.post(
        "/admin/two-factor/", {"code": "000000" if staff.code_of(device) != "000000" else "111111"}
    )
    assert wrong.status_code == 422
    device.refresh_from_db()
    device.throttle_reset()
    done = client.post("/admin/two-factor/", {"code": staff.code_of(device), "next": "/admin/accounts/team/"})
    codes = re.findall(r"<code>([0-9A-Z]{5}-[0-9A-Z]{5})</code>", done.content.decode())
    assert len(codes) == two_factor.RECOVERY_CODES
    assert 'href="/admin/accounts/team/"' in done.content.decode()
    assert client.get("/admin/accounts/team/").status_code == 200


def test_the_secret_stays_the_same_until_it_is_confirmed_and_is_never_shown_again():
    root = staff.person()
    assert two_factor.begin(root).pk == two_factor.begin(root).pk
    enrolled(root)
    with pytest.raises(Conflict):
        two_factor.begin(root)
    client = Client()
    client.force_login(root)
    assert "two-factor-secret" not in client.get("/admin/two-factor/").content.decode()


def test_a_code_opens_the_panel_and_only_once():
    root = staff.person()
    device, _codes = enrolled(root)
    client = Client()
    client.force_login(root)
    used = staff.code_of(device)
    assert client.post("/admin/two-factor/", {"code": used}).status_code == 422
    TOTPDevice.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    answer = client.post(
        "/admin/two-factor/?next=/admin/accounts/user/", {"code": staff.code_of(device, ahead=1)}
    )
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/admin/accounts/user/"
    assert client.get("/admin/").status_code == 200


def test_a_proof_is_over_after_a_working_day():
    client = staff.client_of(staff.person())
    session = client.session
    session["two_factor_at"] -= two_factor.GOOD_FOR.total_seconds() + 1
    session.save()
    assert client.get("/admin/").status_code == 302


def test_a_proof_belongs_to_its_person():
    root, other = staff.person(), staff.person("Other")
    enrolled(other)
    client = Client()
    client.force_login(root)
    session = client.session
    session["otp_device_id"] = TOTPDevice.objects.get(user=other).persistent_id
    session["two_factor_at"] = 9e12
    session.save()
    assert client.get("/admin/").status_code == 302


def test_a_recovery_code_works_once_and_is_kept_only_as_a_digest():
    root = staff.person()
    _device, codes = enrolled(root)
    assert not StaticToken.objects.filter(token__in=[code.replace("-", "") for code in codes]).exists()
    two_factor.verify(root, codes[0].lower())
    with pytest.raises(InvalidInput):
        two_factor.verify(root, codes[0])
    assert two_factor.recovery_codes_left(root) == two_factor.RECOVERY_CODES - 1
    assert AuditEntry.objects.filter(action="two_factor.recovery_code_used").count() == 1


def test_new_recovery_codes_end_the_old_ones():
    root = staff.person()
    _device, codes = enrolled(root)
    client = staff.client_of(root)
    answer = client.post("/admin/two-factor/codes/")
    assert len(re.findall(r"[0-9A-Z]{5}-[0-9A-Z]{5}", answer.content.decode())) == two_factor.RECOVERY_CODES
    with pytest.raises(InvalidInput):
        two_factor.verify(root, codes[0])
    assert client.get("/admin/two-factor/codes/").status_code == 405


def test_guessing_is_held_down_more_and_more():
    root = staff.person()
    device, _codes = enrolled(root)
    wrong = "000000" if staff.code_of(device, ahead=1) != "000000" else "111111"
    with pytest.raises(InvalidInput):
        two_factor.verify(root, wrong)
    with pytest.raises(LimitReached) as caught:
        two_factor.verify(root, staff.code_of(device, ahead=1))
    assert (caught.value.retry_after or 0) >= 1


@pytest.mark.parametrize("code", ["", "12", "abcdef", "１２３４５６", "0" * 20, "DROP TABLE"])
def test_nonsense_is_no_code(code):
    root = staff.person()
    enrolled(root)
    with pytest.raises((InvalidInput, LimitReached)):
        two_factor.verify(root, code)


def test_a_lost_phone_is_reset_by_another_administrator():
    root, lost = staff.person(), staff.person("Lost")
    enrolled(lost)
    client = staff.client_of(lost)
    two_factor.reset(by=Operator.person(root), user_id=lost.pk)
    assert client.get("/admin/").status_code == 302
    assert not two_factor.is_enrolled(lost)
    assert AuditEntry.objects.get(action="two_factor.reset").actor_name == root.email
    with pytest.raises(NotAllowed):
        two_factor.reset(by=Operator.person(staff.person("Helper", roles=["support"])), user_id=lost.pk)


def test_strangers_never_see_the_page():
    assert Client().get("/admin/two-factor/").status_code == 302
    client = Client()
    client.force_login(factories.owner("Alice").user)
    assert client.get("/admin/two-factor/").status_code == 403
    assert not TOTPDevice.objects.exists()


def test_one_is_never_led_to_another_site():
    root = staff.person()
    device, _codes = enrolled(root)
    client = Client()
    client.force_login(root)
    answer = client.post(
        "/admin/two-factor/", {"code": staff.code_of(device, ahead=1), "next": "https://evil.example/"}
    )
    assert answer.headers["Location"] == "/admin/"
