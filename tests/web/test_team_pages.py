"""Usage, webhooks, audit, settings, keys with limits: the pages of a team beside its members."""

from __future__ import annotations

import pytest

from accounts.models import ApiKey, AuditEntry, Membership, Role, Team
from synthesis.models import Webhook
from synthesis.services import deliveries, rollup
from synthesis.services import webhooks as hooks
from tests import factories
from tests.web.conftest import HTMX
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db

SETTINGS = "/team/settings/"


def settings_of(**changed):
    return {
        "name": "Harbour",
        "time_zone": "Asia/Shanghai",
        "retention_days": "",
        "default_voice": "",
    } | changed


def test_usage(sign_in, alice, bob, charlie, hibari, django_capture_on_commit_callbacks):
    spoken(alice)
    rollup.roll_up()
    page = sign_in(alice).get("/team/usage/").content.decode()
    assert "By person" in page
    assert "<svg" in page
    assert "As of " in page
    assert "As of " not in sign_in(alice).get("/team/usage/?last=2026-01-31").content.decode()
    assert "alice@example.org" in page or "Alice" in page
    csv = b"".join(sign_in(alice).get("/team/usage/csv/?by=user")).decode("utf-8-sig")
    assert csv.splitlines()[0].startswith("group,name,requests")
    assert "109" in csv
    assert b"109" not in b"".join(sign_in(charlie).get("/team/usage/csv/?by=user"))
    assert "109" not in b"".join(sign_in(bob).get("/team/usage/csv/?by=user")).decode(), "only his own"
    nonsense = sign_in(alice).get("/team/usage/?first=yesterday&last=9999-99-99")
    assert nonsense.status_code == 200
    assert sign_in(alice).get("/team/usage/csv/?by=nothing&first=2001-01-01").status_code == 200


def test_webhooks(sign_in, alice, bob, charlie, monkeypatch):
    client = sign_in(alice)
    page = client.post("/team/webhooks/", {"url": "https://93.184.216.34/h", "events": ["synthesis.failed"]})
    assert "whsec_" in page.content.decode()
    made = Webhook.objects.get()
    assert made.events == ["synthesis.failed"]
    assert "whsec_" not in client.get("/team/webhooks/").content.decode()
    assert client.post("/team/webhooks/", {"url": "nonsense", "events": []}).status_code == 422

    monkeypatch.setattr(hooks.deliveries, "attempt", lambda delivery: True)
    delivery = deliveries.ping(made)
    assert client.post(f"/team/webhooks/{made.id}/test/").status_code == 302
    assert "ping" in client.get(f"/team/webhooks/{made.id}/").content.decode()
    again = client.post(f"/team/webhooks/{made.id}/deliveries/{delivery.id}/")
    assert again.status_code == 302
    client.post(f"/team/webhooks/{made.id}/switch/", {"enabled": "0"})
    made.refresh_from_db()
    assert made.disabled_at is not None
    client.post(f"/team/webhooks/{made.id}/switch/", {"enabled": "1"})
    made.refresh_from_db()
    assert made.disabled_at is None

    for person, status in ((charlie, 404), (bob, 403)):
        assert sign_in(person).get(f"/team/webhooks/{made.id}/").status_code == status
        for action in ("test", "switch", "delete"):
            assert sign_in(person).post(f"/team/webhooks/{made.id}/{action}/").status_code == status
    assert sign_in(bob).get("/team/webhooks/").status_code == 403
    client.post(f"/team/webhooks/{made.id}/delete/")
    assert not Webhook.objects.exists()


def test_audit(sign_in, alice, bob, charlie, hibari):
    factories.submit(alice)
    page = sign_in(alice).get("/team/audit/").content.decode()
    assert "synthesis.submitted" in page
    assert "synthesis.submitted" not in sign_in(alice).get("/team/audit/?q=voice.created").content.decode()
    assert sign_in(bob).get("/team/audit/").status_code == 403
    assert "synthesis.submitted" not in sign_in(charlie).get("/team/audit/").content.decode()


def test_settings(sign_in, alice, bob, hibari):
    client = sign_in(alice)
    sent = settings_of(retention_days="7", default_voice=str(hibari.id))
    assert client.post(SETTINGS, sent).status_code == 302
    team = Team.objects.get(id=alice.actor.team.id)
    assert (team.name, team.time_zone, team.retention_days) == ("Harbour", "Asia/Shanghai", 7)
    assert team.default_voice == hibari.id
    assert AuditEntry.objects.filter(action="team.updated").exists()
    for wrong in (
        {"name": " "},
        {"time_zone": "Moon/Base"},
        {"retention_days": "9999"},
        {"default_voice": "1"},
    ):
        assert client.post(SETTINGS, settings_of(**wrong)).status_code == 422
    assert sign_in(bob).get(SETTINGS).status_code == 200
    assert sign_in(bob).post(SETTINGS, settings_of()).status_code == 403


def test_hand_over_and_leave(sign_in, alice, bob, charlie):
    client = sign_in(alice)
    assert client.post("/team/leave/").status_code == 409, "a team needs an owner"
    member = bob.actor.membership
    assert (
        client.post("/team/settings/hand-over/", {"member": str(charlie.actor.membership.id)}).status_code
        == 404
    )
    assert sign_in(bob).post("/team/settings/hand-over/", {"member": str(member.id)}).status_code == 403
    assert client.post("/team/settings/hand-over/", {"member": str(member.id)}).status_code == 302
    roles = dict(Membership.objects.filter(team=alice.actor.team).values_list("user__name", "role"))
    assert roles == {"Alice": Role.ADMIN, "Bob": Role.OWNER}
    assert client.post("/team/leave/").status_code == 302
    assert not Membership.objects.filter(team=alice.actor.team, user=alice.user).exists()
    assert not ApiKey.objects.filter(team=alice.actor.team, user=alice.user, revoked_at=None).exists()


def test_a_key_with_limits(sign_in, alice, bob):
    sent = {
        "name": "Website",
        "expires": "30",
        "scopes": ["syntheses:write"],
        "characters_per_month": "5000",
        "requests_per_minute": "10",
        "allowed_ips": "10.0.0.0/8, 192.168.1.1",
    }
    page = sign_in(alice).post("/team/keys/", sent, headers=HTMX).content.decode()
    assert "from openai import OpenAI" in page
    assert "fetch(" in page
    key = ApiKey.objects.get(name="Website")
    assert key.scopes == ["syntheses:write"]
    assert (key.characters_per_month, key.requests_per_minute) == (5000, 10)
    assert len(key.allowed_ips) == 2
    wrong = sign_in(alice).post(
        "/team/keys/", sent | {"name": "B", "allowed_ips": "everywhere"}, headers=HTMX
    )
    assert wrong.status_code == 422
    beyond = sign_in(bob).post("/team/keys/", sent | {"scopes": ["team:write"]}, headers=HTMX)
    assert beyond.status_code == 422, "nobody gives what they do not have"
