"""The same key and payload: the same answer, the work done once."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from django.db import connection

from accounts.errors import Conflict, InvalidInput, Unprocessable
from accounts.models import IdempotentAnswer
from accounts.services import idempotency
from tests import factories

pytestmark = pytest.mark.django_db


def _once(person, key="k", payload="p", work=lambda: (201, {"n": 1})):
    return idempotency.once(actor=person.actor, key=key, payload=payload, work=work)


def test_the_answer_is_given_again():
    alice = factories.owner("Alice")
    assert _once(alice) == (201, {"n": 1}, False)
    assert _once(alice, work=lambda: pytest.fail("worked twice")) == (201, {"n": 1}, True)


def test_another_payload_is_refused_and_another_team_is_apart():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    _once(alice)
    with pytest.raises(Unprocessable):
        _once(alice, payload="other")
    assert _once(charlie, payload="other", work=lambda: (201, {"n": 2})) == (201, {"n": 2}, False)


def test_an_error_is_not_kept():
    alice = factories.owner("Alice")

    def refuse():
        raise InvalidInput("no", code="x")

    with pytest.raises(InvalidInput):
        _once(alice, work=refuse)
    assert not IdempotentAnswer.objects.exists()
    assert _once(alice) == (201, {"n": 1}, False)


def test_no_key_and_too_long_a_key():
    alice = factories.owner("Alice")
    assert _once(alice, key=None)[2] is False
    with pytest.raises(InvalidInput):
        _once(alice, key="k" * 256)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_work_once():
    alice = factories.owner("Alice")
    worked, answers = [], []

    def work():
        worked.append(1)
        time.sleep(0.2)
        return 201, {"n": len(worked)}

    def call():
        try:
            answers.append(_once(alice, work=work))
        finally:
            connection.close()

    threads = [threading.Thread(target=call) for _i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worked == [1]
    assert sorted(replayed for _status, _body, replayed in answers) == [False, True, True, True]


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_ever_for_another(monkeypatch):
    monkeypatch.setattr(idempotency, "WAIT", 100)
    alice = factories.owner("Alice")
    begun, told = threading.Event(), threading.Event()

    def work():
        begun.set()
        assert told.wait(20)
        return 201, {"n": 1}

    def call():
        try:
            _once(alice, work=work)
        finally:
            connection.close()

    first = threading.Thread(target=call)
    first.start()
    assert begun.wait(20)
    with pytest.raises(Conflict) as caught:
        _once(alice, work=lambda: pytest.fail("worked twice"))
    assert (caught.value.code, caught.value.should_retry) == ("idempotency_key_in_use", None)
    told.set()
    first.join()
    assert _once(alice) == (201, {"n": 1}, True)


def test_work_that_is_in_no_transaction():
    alice = factories.owner("Alice")

    def apart(payload="p", work=lambda: (201, {"n": 1})):
        return idempotency.once_apart(actor=alice.actor, key="k", payload=payload, work=work)

    def refuse():
        raise InvalidInput("no", code="x")

    with pytest.raises(InvalidInput):
        apart(work=refuse)
    assert apart() == (201, {"n": 1}, False)
    assert apart(work=lambda: pytest.fail("worked twice")) == (201, {"n": 1}, True)
    with pytest.raises(Unprocessable):
        apart(payload="other")
    with contextlib.closing(connection.copy()) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [f"{alice.actor.team.id} k"])
        assert cursor.fetchone() == (True,), "nothing is locked when the work is done"
        with pytest.raises(Conflict):
            apart()
