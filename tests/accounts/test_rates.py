"""Requests per minute: a sliding window that never blocks when Redis is away."""

from __future__ import annotations

import time

import pytest

from accounts import redis
from accounts.errors import LimitReached
from accounts.models import MemberQuota, TeamQuota
from accounts.services import rates
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
