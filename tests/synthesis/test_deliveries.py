"""What webhooks are told: once for each end, signed, tried again for a day, never inwards."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.utils import timezone

from accounts import outgoing
from accounts.models import AuditEntry
from synthesis.models import Delivery, Webhook
from synthesis.services import deliveries, dispatch, webhooks
from tests import factories
from tests.accounts.test_outgoing import answer, serve
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _counts_as_public(monkeypatch):
    monkeypatch.setattr(outgoing, "_is_public", lambda address: address == "127.0.0.1")


def _webhook(person, url, events=deliveries.EVENTS):
    return webhooks.create(actor=person.actor, url=url, events=events)


def _due_now():
    Delivery.objects.filter(state="pending").update(next_attempt_at=timezone.now())


def test_a_request_that_ended_is_told_and_signed(alice):
    with serve(answer()) as server:
        webhook = _webhook(alice, f"{server.url}/hook")
        row = finished.succeed(factories.submit(alice, "Ten chars.", title="Mine"))
        assert deliveries.send_due() == 1
        assert deliveries.send_due() == 0
    ((method, path, headers, body),) = server.seen
    assert (method, path, headers["Chorus-Event"]) == ("POST", "/hook", "synthesis.succeeded")
    moment, digest = (part.split("=")[1] for part in headers["Chorus-Signature"].split(","))
    expected = hmac.new(webhook.secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    assert digest == expected
    told = json.loads(body)
    assert told["type"] == "synthesis.succeeded"
    assert told["data"]["id"] == str(row.id)
    assert told["data"]["output"] == {"bytes": len(finished.SOUND), "seconds": 2.5}
    # Who may read the text fetches it.
    assert "Ten chars." not in body.decode()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts, delivery.response_status) == ("delivered", 1, 200)


@pytest.mark.parametrize(
    ("end", "event"),
    [
        (finished.succeed, "synthesis.succeeded"),
        (finished.fail, "synthesis.failed"),
        (lambda row: dispatch.cancel(row.id), "synthesis.canceled"),
    ],
)
def test_each_end_is_told_once(alice, end, event):
    _webhook(alice, "http://127.0.0.1:1/")
    end(factories.submit(alice))
    assert list(Delivery.objects.values_list("event", flat=True)) == [event]


def test_what_is_tried_again_has_not_ended(alice):
    _webhook(alice, "http://127.0.0.1:1/")
    claimed = finished.claim(factories.submit(alice))
    dispatch.fail(claimed, code="engine_error", message="x", retryable=True)
    assert not Delivery.objects.exists()


def test_what_is_rolled_back_is_not_told(alice):
    _webhook(alice, "http://127.0.0.1:1/")
    row = factories.submit(alice)
    with transaction.atomic():
        dispatch.cancel(row.id)
        transaction.set_rollback(True)
    assert not Delivery.objects.exists()


def test_only_who_asked_for_it(alice):
    charlie = factories.owner("Charlie")
    _webhook(charlie, "http://127.0.0.1:1/")
    _webhook(alice, "http://127.0.0.1:1/", ["synthesis.failed"])
    disabled = _webhook(alice, "http://127.0.0.1:1/")
    webhooks.update(actor=alice.actor, webhook_id=disabled.id, enabled=False)
    finished.succeed(factories.submit(alice))
    assert not Delivery.objects.exists()


def test_it_is_tried_again_for_a_day_and_then_given_up(alice):
    with serve(answer(500)) as server:
        _webhook(alice, server.url)
        finished.succeed(factories.submit(alice))
        pauses = []
        while Delivery.objects.get().state == "pending":
            _due_now()
            assert deliveries.send_due() == 0
            delivery = Delivery.objects.get()
            if delivery.next_attempt_at:
                pauses.append(delivery.next_attempt_at - timezone.now())
    assert Delivery.objects.get().state == "failed"
    assert len(server.seen) == len(deliveries.BACK_OFF_MINUTES) + 1
    minutes = [round(pause.total_seconds() / 60) for pause in pauses]
    assert minutes == list(deliveries.BACK_OFF_MINUTES)
    assert timedelta(hours=23) < sum(pauses, timedelta()) < timedelta(hours=25)
    # Each attempt is the same event.
    assert len({json.loads(seen[3])["id"] for seen in server.seen}) == 1


def test_a_process_that_dies_while_it_sends_loses_nothing(alice):
    _webhook(alice, "http://127.0.0.1:1/")
    finished.succeed(factories.submit(alice))
    assert deliveries._take(Delivery, Delivery.objects.get().id) is not None  # and then it is killed
    assert deliveries._take(Delivery, Delivery.objects.get().id) is None
    _due_now()
    assert deliveries._take(Delivery, Delivery.objects.get().id) is not None


@pytest.mark.parametrize("status", [301, 302, 307])
def test_redirects_are_not_followed(alice, status):
    with serve(answer(status, Location="/elsewhere")) as server:
        _webhook(alice, server.url)
        finished.succeed(factories.submit(alice))
        deliveries.send_due()
    assert len(server.seen) == 1
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.response_status) == ("pending", status)


def test_an_address_that_has_become_internal(alice, monkeypatch):
    with serve(answer()) as server:
        _webhook(alice, server.url)
        finished.succeed(factories.submit(alice))
        monkeypatch.setattr(outgoing, "_is_public", lambda address: False)
        assert deliveries.send_due() == 0
    assert server.seen == []
    assert Delivery.objects.get().error


class TestDisabling:
    def test_after_a_day_without_success(self, alice):
        bob = factories.colleague(alice, "Bob")
        with serve(answer(500)) as server:
            webhook = _webhook(alice, server.url)
            finished.succeed(factories.submit(alice))
            deliveries.send_due()
            webhook.refresh_from_db()
            assert webhook.failing_since is not None
            assert webhook.disabled_at is None
            Webhook.objects.update(failing_since=timezone.now() - timedelta(hours=25))
            _due_now()
            deliveries.send_due()
        webhook.refresh_from_db()
        assert webhook.disabled_at is not None
        assert AuditEntry.objects.filter(action="webhook.disabled", team_id=alice.actor.team.id).exists()
        # Who can mend it is told; a member cannot.
        assert [message.to for message in mail.outbox] == [["alice@example.org"]]
        assert bob.user.email not in mail.outbox[0].body
        _due_now()
        deliveries.send_due()
        assert Delivery.objects.get().state == "failed"

    def test_one_that_arrives_sets_the_clock_back(self, alice):
        with serve(answer()) as server:
            webhook = _webhook(alice, server.url)
            Webhook.objects.update(failing_since=timezone.now() - timedelta(hours=25))
            finished.succeed(factories.submit(alice))
            deliveries.send_due()
        webhook.refresh_from_db()
        assert (webhook.failing_since, webhook.disabled_at) == (None, None)


def test_the_log_is_kept_for_thirty_days(alice):
    _webhook(alice, "http://127.0.0.1:1/")
    for _i in range(3):
        finished.succeed(factories.submit(alice))
    old, waiting, _new = Delivery.objects.order_by("id")
    long_ago = timezone.now() - timedelta(days=31)
    Delivery.objects.filter(id=old.id).update(created_at=long_ago, state="delivered")
    Delivery.objects.filter(id=waiting.id).update(created_at=long_ago)
    assert deliveries.forget_old() == 1
    assert not Delivery.objects.filter(id=old.id).exists()
