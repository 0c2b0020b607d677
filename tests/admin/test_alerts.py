"""Alerts: raised once, told by e-mail and webhook, tried again, never into the inner network unasked."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import uuid
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module

import pytest
from django.apps import apps
from django.core import mail
from django.utils import timezone

from accounts import outgoing
from accounts.errors import InvalidInput, NotAllowed
from accounts.models import Alert, AlertRule, Role, UsageCounter
from accounts.operators import Operator
from accounts.services import alerts, grants, ledger, quotas
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture(autouse=True)
def _none_by_default(db):
    """The rules that every installation begins with would tell as well."""
    AlertRule.objects.all().delete()


@pytest.fixture
def alice():
    person = factories.owner("Alice", team="Harbour Audio")
    quotas.change(by=BY, targets=[person.actor.team], values={"characters_per_month": 100})
    person.actor.team.refresh_from_db()
    return person


def reserve(person, characters):
    ledger.reserve(actor=person.actor, request_id=uuid.uuid4(), characters=characters)


def rule(percent=80, **options):
    return alerts.save_rule(by=BY, **({"team": None, "percent": percent} | options))


def test_an_alert_is_raised_and_told_once(alice):
    rule(80)
    rule(100, tell_owners=False, emails=["Ops@Example.org "])
    reserve(alice, 79)
    assert alerts.look() == 0
    reserve(alice, 1)
    assert alerts.look() == 1
    assert alerts.look() == 0
    assert alerts.send() == 1
    assert alerts.send() == 0
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert "80 %" in message.subject
    assert "Harbour Audio" in message.body
    reserve(alice, 20)
    assert alerts.look() == 1
    alerts.send()
    assert mail.outbox[1].to == ["ops@example.org"]
    assert "refused" in mail.outbox[1].body


def test_whoever_manages_a_team_hears_once_of_all_that_it_took_at_once(alice):
    factories.colleague(alice, "Adam", Role.ADMIN)
    factories.colleague(alice, "Bob")
    rule(80)
    rule(100)
    reserve(alice, 100)
    assert alerts.look() == 2
    alerts.send()
    assert sorted(message.to[0] for message in mail.outbox) == ["adam@example.org", "alice@example.org"]
    assert all("renews on" in message.body and "refused" in message.body for message in mail.outbox)


def test_every_installation_begins_with_two(alice):
    module = import_module("accounts.migrations.0007_alerts_of_teams")
    for _time in range(2):
        module.add_rules(apps, None)
    assert [(one.percent, one.team, one.tell_owners) for one in AlertRule.objects.order_by("percent")] == [
        (80, None, True),
        (100, None, True),
    ]


def test_in_the_owners_language(alice):
    alice.user.language = "zh-hans"
    alice.user.save()
    rule(50)
    reserve(alice, 60)
    alerts.look()
    alerts.send()
    assert mail.outbox[0].subject


def test_a_rule_for_one_team_is_not_for_another(alice):
    charlie = factories.owner("Charlie")
    quotas.change(by=BY, targets=[charlie.actor.team], values={"characters_per_month": 10})
    charlie.actor.team.refresh_from_db()
    rule(50, team=alice.actor.team)
    reserve(charlie, 10)
    assert alerts.look() == 0
    reserve(alice, 50)
    assert alerts.look() == 1
    assert Alert.objects.get().team == alice.actor.team


def test_a_grant_moves_the_threshold_and_another_month_begins_anew(alice):
    rule(80)
    grants.give(by=BY, team=alice.actor.team, characters=100, reason="x")
    reserve(alice, 90)
    assert alerts.look() == 0
    reserve(alice, 70)
    assert alerts.look() == 1
    UsageCounter.objects.update(period_start="2020-01-01")
    assert alerts.look() == 0


def test_what_is_off_or_suspended_is_silent(alice):
    rule(10, enabled=False)
    reserve(alice, 90)
    assert alerts.look() == 0
    rule(20)
    alice.actor.team.suspended_at = timezone.now()
    alice.actor.team.save()
    assert alerts.look() == 0


class Receiver(HTTPServer):
    """Keeps what it is sent, and answers with `status`."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_is_signed_and_tried_again(alice, receiver, settings):
    settings.CHORUS_INTERNAL_WEBHOOKS = True
    made = rule(50, tell_owners=False, webhook_url=f"http://127.0.0.1:{receiver.server_port}/hook?a=1")
    reserve(alice, 60)
    alerts.look()
    receiver.status = 503
    assert alerts.send() == 0
    assert Alert.objects.get().webhook_state == "HTTP 503"
    assert alerts.send() == 0  # not yet again
    receiver.status = 200
    Alert.objects.update(next_attempt_at=timezone.now())
    assert alerts.send() == 1
    headers, body = receiver.got[1]
    parts = dict(part.split("=") for part in headers["Chorus-Signature"].split(","))
    expected = hmac.new(
        made.webhook_secret.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256
    ).hexdigest()
    assert parts["v1"] == expected
    said = json.loads(body)
    assert (said["type"], said["characters_taken"], said["characters_limit"]) == ("quota.threshold", 60, 100)
    assert len(receiver.got) == 2


def test_a_redirect_is_not_followed(receiver):
    receiver.status = 302
    assert outgoing.post(f"http://127.0.0.1:{receiver.server_port}/", b"{}", internal=True) == 302
    assert len(receiver.got) == 1


def test_after_a_day_it_is_left(alice, settings):
    settings.CHORUS_INTERNAL_WEBHOOKS = True
    rule(50, tell_owners=False, webhook_url="http://127.0.0.1:1/")
    reserve(alice, 60)
    alerts.look()
    for _i in range(len(alerts.BACK_OFF_MINUTES) + 1):
        Alert.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))
        alerts.send()
    alert = Alert.objects.get()
    assert alert.next_attempt_at is None
    assert "ConnectionRefused" in alert.webhook_state


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0/",
        "http://192.168.1.1:8080/",
        "ftp://example.org/",
        "http://user:secret@example.org/",
        "http:///nothing",
    ],
)
def test_internal_and_strange_addresses_are_refused(url):
    with pytest.raises(outgoing.Refused):
        outgoing.post(url, b"{}")


def test_one_internal_address_among_several_is_refused(monkeypatch):
    def both(*_args, **_options):
        return [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]

    monkeypatch.setattr(outgoing.socket, "getaddrinfo", both)
    with pytest.raises(outgoing.Refused):
        outgoing.post("http://rebinding.example/", b"{}")


@pytest.mark.parametrize(
    "options",
    [
        {"percent": 0},
        {"percent": 101},
        {"tell_owners": False},
        {"emails": ["nonsense"]},
        {"webhook_url": "gopher://x"},
    ],
)
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(InvalidInput):
        rule(**({"percent": 80} | options))
    assert not AlertRule.objects.exists()


def test_without_the_right_nothing_happens():
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        alerts.save_rule(by=helper, team=None, percent=5)
    made = rule()
    with pytest.raises(NotAllowed):
        alerts.delete_rule(by=helper, rule_id=made.pk)


def test_from_the_panel(alice):
    client = staff.client_of(staff.person("Money", roles=["billing"]))
    listed = "/admin/accounts/alertrule/"
    sent = {
        "team": "harbour audio",
        "percent": "80",
        "emails": "a@example.org; b@example.org",
        "enabled": "on",
    }
    assert client.post(f"{listed}do/new/", {"step": "do", **sent, "webhook_url": ""}).status_code == 302
    made = AlertRule.objects.get()
    assert (made.team, made.emails, made.tell_owners) == (
        alice.actor.team,
        ["a@example.org", "b@example.org"],
        False,
    )
    changed = sent | {"percent": "90", "tell_owners": "on", "webhook_url": "https://example.org/x"}
    client.post(f"{listed}{made.pk}/do/change/", {"step": "do", **changed})
    made.refresh_from_db()
    assert (made.percent, made.tell_owners, bool(made.webhook_secret)) == (90, True, True)
    reserve(alice, 95)
    alerts.look()
    assert "Harbour Audio" in client.get(f"{listed}{made.pk}/").content.decode()
    client.post(f"{listed}{made.pk}/do/delete/", {"step": "do"})
    assert not AlertRule.objects.exists()
    assert client.post(f"{listed}do/new/", {"step": "do", **sent, "team": "Nobody"}).status_code == 422
