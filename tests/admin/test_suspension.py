"""Suspending and restoring: keys stop at once, running work ends cleanly."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, transaction
from django.test import Client

from accounts.errors import Conflict, NotAllowed
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import keys, limits, suspension
from synthesis.models import Status
from synthesis.services import dispatch
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()
MADE = dispatch.Made("key", "audio/mpeg", 10, "0" * 64, 1.0, 24_000)


@pytest.fixture
def alice():
    return factories.owner("Alice")


def test_a_suspended_team_stops_at_once_and_what_runs_is_finished(alice):
    running = factories.submit(alice)
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    waiting = factories.submit(alice)
    suspension.suspend_team(by=BY, team_id=alice.actor.team.pk, reason="Unpaid")
    with pytest.raises(NotAllowed) as caught:
        keys.authenticate(alice.secret, ip="127.0.0.1")
    assert caught.value.code == "team_suspended"
    assert dispatch.claim(worker="w", engine="hibari") == []
    assert dispatch.complete(claimed, MADE)
    for one in (running, waiting):
        one.refresh_from_db()
    assert (running.status, waiting.status) == (Status.SUCCEEDED, Status.QUEUED)
    assert AuditEntry.objects.get(action="team.suspended").data["reason"] == "Unpaid"
    suspension.restore_team(by=BY, team_id=alice.actor.team.pk)
    keys.authenticate(alice.secret, ip="127.0.0.1")
    assert [one.pk for one in dispatch.claim(worker="w", engine="hibari")] == [waiting.pk]


def test_what_waits_can_be_canceled_with_it(alice):
    factories.submit(alice)
    charlies = factories.submit(factories.owner("Charlie"))
    assert suspension.suspend_team(by=BY, team_id=alice.actor.team.pk, cancel_waiting=True) == 1
    assert limits.standing(alice.actor).reserved == 0
    charlies.refresh_from_db()
    assert charlies.status == Status.QUEUED


def test_twice_is_as_once(alice):
    suspension.suspend_team(by=BY, team_id=alice.actor.team.pk)
    alice.actor.team.refresh_from_db()
    first = alice.actor.team.suspended_at
    suspension.suspend_team(by=BY, team_id=alice.actor.team.pk)
    alice.actor.team.refresh_from_db()
    assert alice.actor.team.suspended_at == first


def test_a_suspended_person_loses_sessions_and_keys_and_what_waits(alice):
    bob = factories.colleague(alice, "Bob")
    browser = Client()
    browser.force_login(bob.user)
    assert browser.get("/").status_code == 200
    bobs, alices = factories.submit(bob), factories.submit(alice)
    assert suspension.suspend_user(by=BY, user_id=bob.user.pk) == 1
    assert browser.get("/").status_code == 302
    with pytest.raises(NotAllowed) as caught:
        keys.authenticate(bob.secret, ip="127.0.0.1")
    assert caught.value.code == "user_suspended"
    for one in (bobs, alices):
        one.refresh_from_db()
    assert (bobs.status, alices.status) == (Status.CANCELED, Status.QUEUED)
    suspension.restore_user(by=BY, user_id=bob.user.pk)
    keys.authenticate(bob.secret, ip="127.0.0.1")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "stop",
    [
        lambda alice: suspension.suspend_team(by=BY, team_id=alice.actor.team.pk, cancel_waiting=True),
        lambda alice: suspension.suspend_user(by=BY, user_id=alice.user.pk),
    ],
    ids=["team", "user"],
)
def test_whoever_submits_meanwhile_is_not_waited_for_in_a_circle(alice, stop):
    waiting = factories.submit(alice)
    submitted, errors = threading.Event(), []

    def submit() -> None:
        try:
            with transaction.atomic():
                factories.submit(alice)  # has the team's counter
                submitted.set()
                end = time.monotonic() + 10
                with connection.cursor() as cursor:
                    waits = False
                    while not waits and time.monotonic() < end:
                        cursor.execute(
                            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
                            " AND wait_event_type = 'Lock')"
                        )
                        (waits,) = cursor.fetchone()
            # The commit wants to know that team and person are there.
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=submit)
    thread.start()
    assert submitted.wait(10)
    assert stop(alice) == 1
    thread.join()
    assert not errors
    waiting.refresh_from_db()
    assert waiting.status == Status.CANCELED


def test_nobody_suspends_themselves_or_an_administrator_above_them(alice):
    root = staff.person()
    with pytest.raises(Conflict):
        suspension.suspend_user(by=Operator.person(root), user_id=root.pk)
    trust = Operator.person(staff.person("Trust", roles=["trust"]))
    with pytest.raises(NotAllowed):
        suspension.suspend_user(by=trust, user_id=root.pk)
    suspension.suspend_user(by=trust, user_id=alice.user.pk)


def test_without_the_right_nothing_happens(alice):
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        suspension.suspend_team(by=helper, team_id=alice.actor.team.pk)
    with pytest.raises(NotAllowed):
        suspension.suspend_user(by=helper, user_id=alice.user.pk)


def test_from_the_panel(alice):
    client = staff.client_of(staff.person())
    address = f"/admin/accounts/team/{alice.actor.team.pk}/"
    client.post(f"{address}do/suspend/", {"step": "do", "reason": "x"})
    assert "suspended" in client.get(address).content.decode()
    again = client.get(f"{address}do/suspend/", follow=True)
    assert again.redirect_chain == [(address, 302)]
    assert "is not possible any more" in again.content.decode()
    client.post(f"{address}do/restore/", {"step": "do"})
    alice.actor.team.refresh_from_db()
    assert alice.actor.team.suspended_at is None
