"""Two-factor sign-in of members, sessions elsewhere, the end of an account, the first steps."""

from __future__ import annotations

import time

import pytest
from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.models import User
from accounts.services import two_factor
from synthesis.models import SettingsPreset, Voice
from tests import factories
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db

SIGN_IN = "/sign-in/"


def code_of(user, ahead: int = 0) -> str:
    device = TOTPDevice.objects.get(user=user)
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits, device.drift)
    totp.time = time.time() + ahead * device.step
    return f"{totp.token():06}"


def enrol(user) -> list[str]:
    two_factor.begin(user)
    _device, codes = two_factor.confirm(user, code_of(user))
    TOTPDevice.objects.filter(user=user).update(last_t=-1)
    return codes


def sign_in_by_password(person, target="") -> tuple[Client, object]:
    client = Client()
    path = f"{SIGN_IN}?next={target}" if target else SIGN_IN
    answer = client.post(path, {"username": person.user.email, "password": PASSWORD, "next": target})
    return client, answer


def test_enrol_by_the_page(sign_in, alice):
    client = sign_in(alice)
    page = client.get("/account/two-factor/").content.decode()
    assert "<svg" in page
    assert client.post("/account/two-factor/", {"code": "000000"}).status_code == 422
    TOTPDevice.objects.filter(user=alice.user).update(
        throttling_failure_count=0, throttling_failure_timestamp=None
    )
    page = client.post("/account/two-factor/", {"code": code_of(alice.user)}).content.decode()
    assert "recovery-codes" in page
    assert two_factor.is_enrolled(alice.user)


def test_the_password_alone_opens_nothing(alice):
    enrol(alice.user)
    client, answer = sign_in_by_password(alice, "/history/")
    assert answer.url == "/sign-in/code/"
    assert client.get("/").status_code == 302, "nobody is signed in yet"
    assert client.post("/sign-in/code/", {"code": "123456"}).status_code == 422
    TOTPDevice.objects.filter(user=alice.user).update(
        throttling_failure_count=0, throttling_failure_timestamp=None
    )
    assert client.post("/sign-in/code/", {"code": code_of(alice.user)}).url == "/history/"
    assert client.get("/").status_code == 200


def test_a_recovery_code_opens_once(alice):
    codes = enrol(alice.user)
    client, _answer = sign_in_by_password(alice)
    assert client.post("/sign-in/code/", {"code": codes[0].lower()}).url == "/"
    again, _answer = sign_in_by_password(alice)
    assert again.post("/sign-in/code/", {"code": codes[0]}).status_code == 422


def test_no_second_step_without_the_first(client, alice):
    enrol(alice.user)
    assert client.get("/sign-in/code/").url == SIGN_IN
    assert client.post("/sign-in/code/", {"code": code_of(alice.user)}).url == SIGN_IN


def test_waiting_too_long(alice):
    enrol(alice.user)
    client, _answer = sign_in_by_password(alice)
    session = client.session
    session["second_step"] = [session["second_step"][0], time.time() - 3600, "/"]
    session.save()
    assert client.post("/sign-in/code/", {"code": code_of(alice.user)}).url == SIGN_IN


def test_turned_off_with_a_code(sign_in, alice):
    enrol(alice.user)
    client = sign_in(alice)
    assert "recovery codes are left" in client.get("/account/two-factor/").content.decode()
    assert client.post("/account/two-factor/", {"code": code_of(alice.user), "do": "off"}).status_code == 302
    assert not two_factor.is_enrolled(alice.user)
    _client, answer = sign_in_by_password(alice)
    assert answer.url == "/"


def test_sign_out_elsewhere(alice, bob):
    here, _answer = sign_in_by_password(alice)
    there, _answer = sign_in_by_password(alice)
    other, _answer = sign_in_by_password(bob)
    page = here.get("/account/").content.decode()
    assert "Sign out everywhere else" in page
    here.post("/account/sessions/end/")
    assert there.get("/").status_code == 302
    assert here.get("/").status_code == 200
    assert other.get("/").status_code == 200, "Bob's are his own"


def test_theme(sign_in, alice):
    client = sign_in(alice)
    client.post("/account/", {"form": "profile", "name": "Alice", "theme": "dark", "notify_done": "on"})
    assert 'data-theme="dark"' in client.get("/").content.decode().split("<head>")[0]
    assert "data-notify" in client.get("/").content.decode()
    _fresh, answer = sign_in_by_password(alice)
    assert answer.cookies["chorus_theme"].value == "dark"
    client.post("/account/", {"form": "profile", "name": "Alice", "theme": ""})
    assert "data-theme" not in client.get("/").content.decode().split("<head>")[0]


def test_delete_ones_account(sign_in, alice, bob, hibari):
    SettingsPreset.objects.create(team=bob.actor.team, user=bob.user, name="Mine")
    assert sign_in(alice).post("/account/delete/", {"password": PASSWORD}).status_code == 422, (
        "the only owner"
    )
    client = sign_in(bob)
    assert client.post("/account/delete/", {"password": "wrong"}).status_code == 422
    assert client.post("/account/delete/", {"password": PASSWORD}).status_code == 200
    gone = User.objects.get(id=bob.user.id)
    assert not gone.is_active
    assert "bob" not in gone.email
    assert not SettingsPreset.objects.exists()
    assert client.get("/").status_code == 302


def test_first_steps(sign_in, alice, vera, hibari):
    newcomer = factories.colleague(alice, "Nina")
    client = sign_in(newcomer)
    page = client.get("/").content.decode()
    assert "Your first five minutes" in page
    assert page.count("is-done") == 1, "a key was made by the factory"
    assert "Your first five minutes" not in sign_in(vera).get("/").content.decode(), "may only look"
    client.post("/first-steps/done/")
    assert "Your first five minutes" not in client.get("/").content.decode()
    assert not Voice.objects.filter(team=alice.actor.team).exists()
