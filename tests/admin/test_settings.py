"""Operator settings: typed, audited, and with effect."""

from __future__ import annotations

import pytest

from accounts.errors import InvalidInput, NotAllowed, Unavailable
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import operator_settings, quotas, teams
from synthesis.services import dispatch
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


def change(**values):
    for key, value in values.items():
        operator_settings.change(by=BY, key=key, value=value)


def test_a_change_is_audited_with_before_and_after():
    change(announcement="  Hello ")
    assert operator_settings.get("announcement") == "Hello"
    change(announcement="Hello")
    entry = AuditEntry.objects.get(action="setting.changed")
    assert (entry.data["key"], entry.data["before"], entry.data["after"]) == ("announcement", "", "Hello")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maintenance", "perhaps"),
        ("sign_up", "everybody"),
        ("allowed_email_domains", "not a domain!"),
        ("default_plan", "01890000-0000-7000-8000-000000000000"),
        ("default_plan", "nonsense"),
        ("currency", "euro"),
        ("announcement", "x" * 501),
        ("colour", "red"),
    ],
)
def test_what_does_not_fit_its_type_is_refused(key, value):
    with pytest.raises(InvalidInput):
        operator_settings.change(by=BY, key=key, value=value)
    assert not AuditEntry.objects.filter(action="setting.changed").exists()


def test_maintenance_finishes_what_is_queued_and_takes_nothing_new():
    alice = factories.owner("Alice")
    factories.submit(alice)
    change(maintenance=True, maintenance_message="Back at nine.")
    with pytest.raises(Unavailable) as caught:
        factories.submit(alice)
    assert (caught.value.code, str(caught.value), caught.value.retry_after) == (
        "maintenance",
        "Back at nine.",
        300,
    )
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    assert dispatch.complete(claimed, dispatch.Made("k", "audio/mpeg", 1, "0" * 64, 1.0, 24_000))
    change(maintenance="off")
    factories.submit(alice)


def test_new_accounts_need_an_allowed_domain_and_old_ones_stay():
    alice, bob = factories.owner("Alice"), factories.owner("Bob")
    change(allowed_email_domains="@Acme.example, beta.example")
    assert operator_settings.get("allowed_email_domains") == ["acme.example", "beta.example"]

    def invite(email: str):
        return teams.invite(actor=alice.actor, email=email, role="member", accept_url="http://x/{token}/")

    with pytest.raises(InvalidInput) as caught:
        invite("dana@example.org")
    assert caught.value.code == "email_domain_not_allowed"
    invite(bob.user.email)  # has an account
    _invitation, link = invite("dana@acme.example")
    change(allowed_email_domains="other.example")
    token = link.rstrip("/").rsplit("/", 1)[1]
    with pytest.raises(InvalidInput):
        teams.accept(token=token, user=None, name="Dana", password=factories.PASSWORD)


def test_the_plan_of_new_teams():
    small = quotas.create_plan(by=BY, name="Small", values={"characters_per_month": 1})
    big = quotas.create_plan(by=BY, name="Big", values={"characters_per_month": 10**9})
    assert operator_settings.default_plan() == small
    change(default_plan=str(big.pk))
    assert operator_settings.default_plan() == big


def test_another_process_sees_a_change_within_seconds(monkeypatch):
    assert operator_settings.get("announcement") == ""
    now = operator_settings._read_at
    from accounts.models import OperatorSetting

    OperatorSetting.objects.create(key="announcement", value="Elsewhere")
    assert operator_settings.get("announcement") == ""
    monkeypatch.setattr(operator_settings.time, "monotonic", lambda: now + operator_settings.FRESH + 0.1)
    assert operator_settings.get("announcement") == "Elsewhere"


def test_without_the_right_nothing_happens():
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        operator_settings.change(by=helper, key="maintenance", value=True)
    client = staff.client_of(helper.user)
    assert client.get("/admin/settings/").status_code == 403
    assert client.post("/admin/settings/", {"maintenance": "on"}).status_code == 403


def test_from_the_panel():
    client = staff.client_of(staff.person())
    sent = {
        "sign_up": "open",
        "allowed_email_domains": "example.org, example.com",
        "default_plan": "",
        "announcement": "We move house.",
        "announcement_kind": "warn",
        "maintenance_message": "",
        "currency": "CHF",
    }
    assert client.post("/admin/settings/", sent).status_code == 302
    assert operator_settings.get("sign_up") == "open"
    assert operator_settings.get("currency") == "CHF"
    assert "We move house." in client.get("/admin/settings/").content.decode()
    wrong = client.post("/admin/settings/", sent | {"currency": "x", "announcement": "Other"})
    assert wrong.status_code == 422
    assert operator_settings.get("announcement") == "We move house."  # all or nothing
