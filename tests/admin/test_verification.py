"""The check of the ledger: silent on a wild but honest run, and loud at each kind of difference."""

from __future__ import annotations

import io
import json
import os
import threading

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.models import Grant, UsageCounter
from accounts.operators import Operator
from accounts.services import grants, ledger
from synthesis.models import LedgerCheck, Status, SynthesisRequest
from synthesis.services import dispatch, verification
from tests import factories
from tests.admin import simulation, staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture
def alice():
    """One request of each end, and a grant."""
    person = factories.owner("Alice")
    for index in range(5):
        factories.submit(person)
        if index < 4:
            (claimed,) = dispatch.claim(worker="w", engine="hibari")
            if index < 2:
                dispatch.complete(claimed, simulation.MADE)
            elif index == 2:
                dispatch.fail(claimed, code="x", message="x", retryable=False)
            else:
                dispatch.cancel(claimed.pk)
    grants.give(by=BY, team=person.actor.team, characters=10, reason="x")
    return person


def hand_in_database(statement: str) -> None:
    """What only somebody with a shell can do: past the triggers and the services."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_ledgerentry DISABLE TRIGGER ledger_append_only")
        cursor.execute(statement)


def test_nothing_differs_after_honest_work(alice):
    result = verification.verify()
    assert result.differences == []
    assert (result.entries, result.counters, result.requests) == (10, 3, 5)


def test_an_empty_service_is_in_order():
    assert verification.verify().is_clean


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE accounts_usagecounter SET used = used + 1 WHERE user_id IS NULL AND api_key_id IS NULL",
        "UPDATE accounts_usagecounter SET reserved = reserved + 1 WHERE user_id IS NOT NULL",
        "UPDATE accounts_usagecounter SET granted = 0 WHERE user_id IS NULL AND api_key_id IS NULL",
        "DELETE FROM accounts_usagecounter WHERE api_key_id IS NOT NULL",
        "DELETE FROM accounts_ledgerentry WHERE kind = 'settle' AND id = (SELECT min(id::text)::uuid "
        "FROM accounts_ledgerentry WHERE kind = 'settle')",
        "DELETE FROM accounts_ledgerentry WHERE kind = 'release'",
        "UPDATE accounts_ledgerentry SET characters = characters + 1 WHERE kind = 'reserve'",
        "UPDATE accounts_ledgerentry SET kind = 'release' WHERE kind = 'settle'",
        "UPDATE accounts_ledgerentry SET period_start = '2020-01-01' WHERE kind = 'settle'",
        "UPDATE synthesis_synthesisrequest SET characters = characters - 1 WHERE status = 'succeeded'",
        "UPDATE synthesis_synthesisrequest SET status = 'failed' WHERE status = 'succeeded'",
        "UPDATE synthesis_synthesisrequest SET status = 'succeeded', completed_at = now() WHERE status = 'queued'",
        "DELETE FROM accounts_ledgerentry WHERE kind = 'grant'",
        "UPDATE accounts_grant SET placed = 3",
        "UPDATE accounts_usagecounter SET period_start = '2020-01-01'",
    ],
)
def test_each_kind_of_difference_is_found(alice, statement):
    hand_in_database(statement)
    result = verification.verify()
    assert result.count > 0
    for one in result.differences:
        assert one.team == str(alice.actor.team.pk)
        assert one.expected != one.found


def test_a_request_that_is_not_in_the_ledger_and_the_other_way_round(alice):
    request = SynthesisRequest.objects.filter(status=Status.QUEUED).get()
    request.segments.all().delete()
    SynthesisRequest.objects.filter(pk=request.pk).delete()
    assert [one.found for one in verification.verify().differences] == [
        "entries for a request that is not there"
    ]
    ledger.release(request.pk)  # which puts the counters right, but not the request
    kinds = {one.kind for one in verification.verify().differences}
    assert kinds == {"request"}


def test_what_was_deleted_with_its_team_is_no_difference(alice):
    charlie = factories.owner("Charlie")
    factories.submit(charlie)
    charlie.actor.team.delete()
    assert verification.verify().is_clean


def test_many_differences_are_counted_and_some_are_listed(alice, monkeypatch):
    monkeypatch.setattr(verification, "LISTED", 2)
    hand_in_database("UPDATE accounts_ledgerentry SET characters = characters + 1 WHERE kind <> 'grant'")
    result = verification.verify()
    assert len(result.differences) == 2
    assert result.count >= 5


def test_the_command_says_what_it_found(alice):
    out = io.StringIO()
    call_command("ledger_verify", stdout=out)
    assert "no difference" in out.getvalue()
    assert not LedgerCheck.objects.exists()
    UsageCounter.objects.filter(user=None, api_key=None).update(used=1)
    out = io.StringIO()
    with pytest.raises(SystemExit) as caught:
        call_command("ledger_verify", "--json", "--record", stdout=out)
    assert caught.value.code == 1
    said = json.loads(out.getvalue())
    assert said["clean"] is False
    assert said["details"][0]["kind"] == "counter"
    assert LedgerCheck.objects.get().differences == said["differences"] == 1
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("ledger_verify", stdout=out)
    assert f"counter (team {alice.actor.team.pk}" in out.getvalue()


def test_the_panel_shows_the_result_and_checks_on_demand(alice):
    client = staff.client_of(staff.person())
    listed = "/admin/synthesis/ledgercheck/"
    client.post(f"{listed}do/run/", {"step": "do"})
    check = LedgerCheck.objects.get()
    assert check.trigger == "root@chorus.example"
    assert "no difference" in client.get(f"{listed}{check.pk}/").content.decode()
    assert "All is well" in client.get("/admin/").content.decode() or check.differences == 0
    UsageCounter.objects.filter(user=None, api_key=None).update(used=1)
    client.post(f"{listed}do/run/", {"step": "do"})
    worse = LedgerCheck.objects.latest("started_at")
    assert "used 1" in client.get(f"{listed}{worse.pk}/").content.decode()
    assert "does not add up" in client.get("/admin/").content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_wild_run_with_failures_cancels_and_killed_workers_adds_up():
    number = int(os.environ.get("CHORUS_TEST_LEDGER_RUN", "250"))
    ends = simulation.run(number)
    assert sum(ends.values()) >= number  # and what was tried again
    assert set(ends) == {Status.SUCCEEDED, Status.FAILED, Status.CANCELED}
    result = verification.verify()
    print(f"\n{number:,} requests, {dict(ends)}: {result.as_json()}")
    assert result.differences == []
    assert result.requests == sum(ends.values())
    assert not UsageCounter.objects.filter(reserved__gt=0).exists()
    assert Grant.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_work_under_way_is_no_difference():
    """Checks beside a run that goes on: each sees one moment."""
    problems: list[verification.Difference] = []
    over = threading.Event()

    def checker() -> None:
        while not over.is_set():
            problems.extend(verification.verify().differences)
        connection.close()

    beside = threading.Thread(target=checker)
    beside.start()
    try:
        simulation.run(60, submitters=2, workers=2, seed=7)
    finally:
        over.set()
        beside.join()
    assert problems == []


@pytest.mark.django_db(transaction=True)
def test_the_nightly_check_is_made_once_a_night():
    assert verification.is_due()
    assert verification.start_nightly() == 1
    for thread in threading.enumerate():
        if thread.name == "ledger-check":
            thread.join()
    assert LedgerCheck.objects.get().trigger == "nightly"
    assert not verification.is_due()
    assert verification.start_nightly() == 0
    LedgerCheck.objects.all().delete()
    LedgerCheck.objects.create(trigger="somebody", finished_at="2026-01-01T00:00:00Z")
    assert verification.is_due()  # a check by hand does not stand for the nightly one
