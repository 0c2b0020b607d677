"""Reserve, settle, release: exact to the character, once each, whatever runs at once."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection, transaction
from django.db.utils import IntegrityError, ProgrammingError

from accounts.errors import LimitReached
from accounts.models import LedgerEntry, MemberQuota, TeamQuota, UsageCounter
from accounts.services import ledger, limits
from tests import factories

pytestmark = pytest.mark.django_db


def _counter(person, **subject):
    subject = {"user": None, "api_key": None} | subject
    return UsageCounter.objects.get(team=person.actor.team, **subject)


def test_reserve_then_settle_moves_characters_to_used():
    alice = factories.owner("Alice")
    request = uuid.uuid4()
    ledger.reserve(actor=alice.by_key, request_id=request, characters=30)
    assert (_counter(alice).used, _counter(alice).reserved) == (0, 30)
    assert ledger.settle(request)
    for subject in ({}, {"user": alice.user}, {"api_key": alice.by_key.api_key}):
        assert (_counter(alice, **subject).used, _counter(alice, **subject).reserved) == (30, 0)


def test_a_request_is_closed_once():
    alice = factories.owner("Alice")
    request = uuid.uuid4()
    ledger.reserve(actor=alice.actor, request_id=request, characters=30)
    assert ledger.release(request)
    assert not ledger.settle(request)
    assert not ledger.release(request)
    assert (_counter(alice).used, _counter(alice).reserved) == (0, 0)
    assert list(LedgerEntry.objects.values_list("kind", flat=True)) == ["reserve", "release"]


def test_one_character_short_is_refused_and_leaves_nothing():
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=29)
    with pytest.raises(LimitReached) as caught, transaction.atomic():
        ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=30)
    assert caught.value.code == "quota_exceeded"
    assert caught.value.details["characters_remaining"] == 29
    assert caught.value.details["characters_required"] == 30
    assert caught.value.retry_after > 0
    assert not LedgerEntry.objects.exists()
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=29)


def test_a_persons_own_limit_holds_within_the_teams():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    MemberQuota.objects.create(membership=bob.actor.membership, characters_per_month=10)
    with pytest.raises(LimitReached), transaction.atomic():
        ledger.reserve(actor=bob.actor, request_id=uuid.uuid4(), characters=11)
    # What the team's counter had taken before the person's refused is given back.
    assert not UsageCounter.objects.filter(team=alice.actor.team, reserved__gt=0).exists()
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=11)
    assert limits.standing(bob.actor).remaining == 10


def test_a_keys_cap_holds_below_its_owners():
    alice = factories.owner("Alice")
    alice.by_key.api_key.characters_per_month = 5
    with pytest.raises(LimitReached) as caught, transaction.atomic():
        ledger.reserve(actor=alice.by_key, request_id=uuid.uuid4(), characters=6)
    assert caught.value.details["characters_remaining"] == 5


def test_a_lowered_limit_refuses_but_keeps_what_was_promised():
    alice = factories.owner("Alice")
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=100)
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=50)
    with pytest.raises(LimitReached), transaction.atomic():
        ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=1)
    assert _counter(alice).reserved == 100
    assert limits.standing(alice.actor).remaining == 0


def test_strangers_counters_are_apart():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=100)
    assert limits.standing(charlie.actor).reserved == 0


def test_the_database_itself_refuses_to_pass_the_allowance():
    alice = factories.owner("Alice")
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        UsageCounter.objects.filter(user=None).update(allowance=1, reserved=2)


@pytest.mark.parametrize("statement", ["UPDATE {} SET team_id = team_id", "DELETE FROM {}"])
@pytest.mark.parametrize("table", ["accounts_ledgerentry", "accounts_auditentry"])
def test_ledger_and_audit_log_are_append_only(statement, table):
    alice = factories.owner("Alice")
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=1)
    with (
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement.format(table))


@pytest.mark.django_db(transaction=True)
def test_simultaneous_reservations_never_pass_the_limit():
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=100)
    outcomes: list[bool] = []

    def take() -> None:
        try:
            for _i in range(5):
                try:
                    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=7)
                    outcomes.append(True)
                except LimitReached:
                    outcomes.append(False)
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 40
    assert outcomes.count(True) == 14  # 14 × 7 = 98; a fifteenth would pass 100
    assert _counter(alice).reserved == 98
