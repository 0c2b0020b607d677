"""Requests per minute: a sliding window that never blocks when Redis is away."""

from __future__ import annotations

import threading
import time

import pytest

from accounts import redis
from accounts.actors import Actor
from accounts.errors import LimitReached
from accounts.models import MemberQuota, TeamQuota
from accounts.services import keys, limits, rates
from tests import factories

pytestmark = pytest.mark.django_db


def test_the_window_slides(monkeypatch):
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=3)
    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    assert [rates.hit(alice.actor).remaining for _i in range(3)] == [2, 1, 0]
    with pytest.raises(LimitReached) as caught:
        rates.hit(alice.actor)
    assert caught.value.code == "rate_limit_exceeded"
    assert 1 <= caught.value.retry_after <= 61
    now[0] += 61
    assert rates.hit(alice.actor).remaining == 2


def test_a_persons_own_limit_and_the_strangers():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    bob = factories.colleague(alice, "Bob")
    MemberQuota.objects.create(membership=bob.actor.membership, requests_per_minute=1)
    rates.hit(bob.actor)
    with pytest.raises(LimitReached):
        rates.hit(bob.actor)
    assert rates.hit(alice.actor).remaining == 598  # the refused one was not counted for the team
    assert rates.hit(charlie.actor).remaining == 599


def test_a_flushed_redis_forgets_and_an_absent_one_lets_pass(monkeypatch, settings):
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
    rates.hit(alice.actor)
    redis.client().flushdb()
    rates.hit(alice.actor)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis.client.cache_clear()
    try:
        assert rates.hit(alice.actor) is None
    finally:
        redis.client.cache_clear()


def test_a_keys_own_limit_is_below_its_owners():
    alice = factories.owner("Alice")
    key, _secret = keys.create(actor=alice.actor, name="slow", requests_per_minute=2)
    slow = Actor(alice.actor.membership, key)
    assert [rates.hit(slow).remaining for _i in range(2)] == [1, 0]
    with pytest.raises(LimitReached) as caught:
        rates.hit(slow)
    assert caught.value.details["requests_limit"] == 2
    assert caught.value.retry_after >= 1
    # Nor was the refused one counted for the team.
    assert rates.hit(alice.by_key).remaining == 597


def test_exactly_as_many_as_allowed_whatever_runs_at_once():
    alice = factories.owner("Alice")
    key, _secret = keys.create(actor=alice.actor, name="slow", requests_per_minute=20)
    slow = Actor(alice.actor.membership, key)
    # Read once, before there are threads: each has a database connection of its own.
    assert limits.tightest(slow).requests_per_minute == 20
    passed = []

    def knock() -> None:
        for _i in range(10):
            try:
                rates.hit(slow)
                passed.append(1)
            except LimitReached:
                pass

    threads = [threading.Thread(target=knock) for _i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == 20


def test_one_round_trip(monkeypatch):
    alice = factories.owner("Alice")
    key, _secret = keys.create(actor=alice.actor, name="slow", requests_per_minute=2)
    calls = []
    monkeypatch.setattr(
        redis.client(), "execute_command", lambda *args, **_options: calls.append(args) or [1, 1, "0"]
    )
    rates.hit(Actor(alice.actor.membership, key))
    assert [(args[0], args[2]) for args in calls] == [("EVAL", 2)]
