"""Claim, renew, complete, fail, cancel, abandon: fenced, fair, and charged once."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.actors import Actor
from accounts.models import MemberQuota, TeamQuota, UsageCounter
from accounts.services import keys
from synthesis.models import Attempt, Output, SynthesisRequest
from synthesis.services import dispatch, queue, workers
from tests import factories

pytestmark = pytest.mark.django_db


def _claim(worker="w1", limit=1):
    return dispatch.claim(worker=worker, engine="hibari", limit=limit)


def _made(request):
    return dispatch.Made(
        key=f"teams/{request.team_id}/x",
        content_type="audio/mpeg",
        bytes=1,
        sha256="0" * 64,
        seconds=1.0,
        sample_rate=24000,
    )


def _usage(person):
    counter = UsageCounter.objects.get(team=person.actor.team, user=None, api_key=None)
    return counter.used, counter.reserved


def test_a_claim_starts_an_attempt_under_a_lease():
    alice = factories.owner("Alice")
    factories.submit(alice)
    (request,) = _claim()
    assert (request.status, request.attempt, request.worker) == ("running", 1, "w1")
    assert request.lease_until > timezone.now()
    assert Attempt.objects.get().outcome == ""
    assert _claim() == []


def test_complete_settles_and_fail_releases():
    alice = factories.owner("Alice")
    done, lost = factories.submit(alice, "Ten chars."), factories.submit(alice, "Twelve chars")
    for request in _claim(limit=2):
        if request.id == done.id:
            assert dispatch.complete(request, _made(request))
            assert not dispatch.complete(request, _made(request))
        else:
            assert dispatch.fail(request, code="x", message="y", retryable=False)
    assert _usage(alice) == (10, 0)
    lost.refresh_from_db()
    assert (lost.status, lost.error_code) == ("failed", "x")


def test_a_superseded_attempt_writes_nothing():
    alice = factories.owner("Alice")
    factories.submit(alice)
    (old,) = _claim("w1")
    assert dispatch.abandon(worker="w1") == 1
    (new,) = _claim("w2")
    assert new.attempt == 2
    assert not dispatch.renew(old)
    assert not dispatch.save_segment(old, index=0, audio_key="k", seconds=1, engine_seconds=1)
    assert not dispatch.complete(old, _made(old))
    assert not dispatch.fail(old, code="x", message="y", retryable=False)
    assert dispatch.renew(new)
    assert dispatch.complete(new, _made(new))
    assert Output.objects.get().attempt == 2
    assert list(Attempt.objects.values_list("outcome", flat=True)) == ["lost", "succeeded"]


def test_cancel_ends_queued_and_running_at_once_without_charge():
    alice = factories.owner("Alice")
    factories.submit(alice)
    (running,) = _claim()
    queued = factories.submit(alice)
    assert dispatch.cancel(queued.id)
    assert dispatch.cancel(running.id)
    assert not dispatch.cancel(running.id)
    assert not dispatch.renew(running)
    assert not dispatch.complete(running, _made(running))
    assert _usage(alice) == (0, 0)
    assert _claim() == []


def test_an_expired_lease_returns_the_request_and_keeps_its_segments():
    alice = factories.owner("Alice")
    factories.submit(alice, "First sentence of the text is here. " * 20)
    (request,) = _claim()
    assert dispatch.save_segment(request, index=0, audio_key="k", seconds=1, engine_seconds=0.5)
    assert dispatch.expire() == 0
    SynthesisRequest.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert dispatch.expire() == 1
    (again,) = _claim("w2")
    assert (again.id, again.attempt, again.segments_done, again.engine_seconds) == (request.id, 2, 1, 0.5)
    assert again.segments.get(index=0).audio_key == "k"


def test_errors_are_retried_with_a_pause_then_final():
    alice = factories.owner("Alice")
    factories.submit(alice)
    for failure in range(dispatch.MAX_FAILURES):
        (request,) = _claim()
        dispatch.fail(request, code="engine_error", message="m", retryable=True)
        request.refresh_from_db()
        assert request.failures == failure + 1
        if not request.is_final:
            assert request.not_before > timezone.now()
            assert _claim() == []
            SynthesisRequest.objects.update(not_before=timezone.now())
    assert request.status == "failed"
    assert _usage(alice) == (0, 0)


def test_what_kills_every_worker_is_given_up():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    for _i in range(dispatch.MAX_LOST):
        assert _claim()
        dispatch.abandon(worker="w1")
    request.refresh_from_db()
    assert (request.status, request.error_code) == ("failed", "worker_lost")
    assert _usage(alice) == (0, 0)


def test_a_worker_that_is_stopped_says_nothing_against_what_it_spoke():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    for _i in range(dispatch.MAX_LOST + 1):
        assert _claim()
        dispatch.abandon(worker="w1", stopped=True)
    request.refresh_from_db()
    assert (request.status, request.error_code) == ("queued", "")
    outcomes = set(request.attempts.values_list("outcome", "error_code"))
    assert outcomes == {("returned", "worker_stopped")}


def test_a_light_team_comes_next_though_another_has_300_queued():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    for _i in range(30):
        factories.submit(alice, "Hi there.")
    _claim()
    light = factories.submit(charlie)
    assert queue.place(light).ahead == 0
    assert [request.id for request in _claim()] == [light.id]


def test_the_weight_of_the_plan_divides_the_workers():
    heavy = factories.owner("Alice", plan_=factories.plan("Big", weight=3.0, concurrent_requests=100))
    light = factories.owner("Charlie", plan_=factories.plan("Small", concurrent_requests=100))
    for _i in range(12):
        factories.submit(heavy, "Hi there.")
        factories.submit(light, "Hi there.")
    taken = [_claim()[0].team_id for _i in range(8)]
    assert taken.count(heavy.actor.team.id) == 6


def test_limits_of_team_and_person_hold_for_what_runs_at_once():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    TeamQuota.objects.create(team=alice.actor.team, concurrent_requests=3)
    MemberQuota.objects.create(membership=bob.actor.membership, concurrent_requests=1)
    for _i in range(3):
        factories.submit(bob)
    assert len(_claim(limit=3)) == 1
    assert _claim(limit=3) == []
    for _i in range(4):
        factories.submit(alice)
    assert {request.user_id for request in _claim(limit=5)} == {alice.user.id}
    assert SynthesisRequest.objects.filter(status="running").count() == 3
    assert _claim(limit=5) == []


def test_a_keys_limit_holds_for_what_runs_at_once_and_its_owners_other_key_goes_on():
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, concurrent_requests=3)
    key, _secret = keys.create(actor=alice.actor, name="one at a time", concurrent_requests=1)
    slow = dataclasses.replace(alice, by_key=Actor(alice.actor.membership, key))
    waiting = [factories.submit(slow) for _i in range(3)]
    first = _claim(limit=3)
    assert [request.id for request in first] == [waiting[0].id]
    assert _claim(limit=3) == []
    others = {factories.submit(alice).id for _i in range(3)}
    assert {request.id for request in _claim(limit=5)} < others
    assert SynthesisRequest.objects.filter(status="running").count() == 3
    assert _claim(limit=5) == []
    dispatch.cancel(first[0].id)
    assert [request.id for request in _claim(limit=1)] == [waiting[1].id]


def test_priority_then_age_within_a_team():
    alice = factories.owner("Alice")
    first, second = factories.submit(alice), factories.submit(alice)
    urgent = factories.submit(alice)
    SynthesisRequest.objects.filter(id=urgent.id).update(priority=5)
    assert [_claim()[0].id for _i in range(3)] == [urgent.id, first.id, second.id]


def test_a_suspended_teams_requests_wait():
    alice = factories.owner("Alice")
    factories.submit(alice)
    alice.actor.team.suspended_at = timezone.now()
    alice.actor.team.save()
    assert _claim() == []


def test_another_engines_requests_are_not_taken():
    alice = factories.owner("Alice")
    factories.submit(alice)
    assert dispatch.claim(worker="w", engine="kokoro") == []


@pytest.mark.django_db(transaction=True)
def test_simultaneous_claims_take_each_request_once_and_pass_no_limit():
    people = [
        factories.owner(name, plan_=factories.plan("Four", concurrent_requests=4))
        for name in ("Alice", "Charlie")
    ]
    for person in people:
        for _i in range(10):
            factories.submit(person)
    taken: list = []

    def take() -> None:
        try:
            for _i in range(5):
                taken.extend(request.id for request in _claim(threading.current_thread().name))
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 8


def test_place_counts_only_what_comes_before():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    mine = [factories.submit(alice) for _i in range(3)]
    theirs = [factories.submit(charlie) for _i in range(2)]
    order = []
    places = {request.id: queue.place(request).ahead for request in mine + theirs}
    while taken := _claim():
        order.append(taken[0].id)
        dispatch.cancel(taken[0].id)
    # Without anything running the order alternates by age only while both have nothing at work.
    assert places[mine[0].id] == 0
    assert sorted(places.values()) == [0, 1, 2, 3, 4]


def test_the_outlook_needs_a_worker_to_promise_a_time():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    assert queue.outlook(request).seconds is None
    workers.beat(name="w", engine="hibari", host="h", pid=1, state="idle")
    outlook = queue.outlook(request)
    assert outlook.workers == 1
    assert outlook.seconds >= 1
