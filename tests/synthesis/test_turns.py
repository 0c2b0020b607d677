"""Whose turn it is: noted whoever changes something, exact, and found without a look at all that waits."""

from __future__ import annotations

import random
import re
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import MemberQuota, Plan, Team, TeamQuota
from benchmarks import rows
from synthesis.models import Attempt, Pool, QueueChange, SynthesisRequest, TeamPool, Turn
from synthesis.services import dispatch, housekeeping, queue, turns
from tests import factories

pytestmark = pytest.mark.django_db


def _claim(limit=1, pool=""):
    return dispatch.claim(worker="w", engine="hibari", limit=limit, pool=pool)


def _pages(teams, queued):
    """Buffers that a claim touches, of its own and of the functions that it calls."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM synthesis_queuechange")
        cursor.execute("UPDATE synthesis_synthesisrequest SET status = 'canceled', completed_at = now()")
        turns.tidy()
        ids = rows.teams(cursor, teams)
        rows.requests(cursor, queued, teams=ids, engine="hibari", status="queued")
        turns.tidy()
        cursor.execute("VACUUM ANALYZE")
        for _warm in range(3):
            assert _claim()
        cursor.execute(
            "EXPLAIN (ANALYZE, BUFFERS) SELECT chorus_claim('w', 'hibari', '', ARRAY[uuidv7()], 30, 100)"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "rows=1" in plan
    return int(re.search(r"shared hit=(\d+)", plan)[1])


@pytest.mark.django_db(transaction=True)
def test_a_claim_does_not_read_more_when_more_teams_wait():
    factories.owner("Alice", plan_=factories.plan("Wide", concurrent_requests=100))
    factories.preset()
    few = _pages(5, 50)
    many = _pages(1_000, 10_000)
    # An index that is one level deeper is a page more for each look; walking all teams would be some thousand.
    assert many < 2 * few + 50, (few, many)


def test_it_takes_what_a_look_at_everything_would_take():
    dice = random.Random(7)
    people = []
    for number in range(6):
        plan = factories.plan(
            f"Plan {number % 3}", weight=[1.0, 2.0, 0.5][number % 3], concurrent_requests=2 + number % 3
        )
        people.append(factories.owner(f"Owner{number}", plan_=plan))
    people += [factories.colleague(people[0], f"Colleague{number}") for number in range(2)]
    MemberQuota.objects.create(membership=people[-1].actor.membership, concurrent_requests=1)
    TeamQuota.objects.create(team=people[1].actor.team, concurrent_requests=1)
    shares = _Shares()
    for _turn in range(250):
        fate = dice.random()
        if fate < 0.45:
            request = factories.submit(dice.choice(people), "Hello. " * dice.choice([1, 1, 2, 9]))
            if dice.random() < 0.2:
                SynthesisRequest.objects.filter(pk=request.pk).update(priority=dice.choice([-5, 5]))
        elif fate < 0.5 and (running := _some("running", dice)):
            dispatch.fail(running, code="x", message="y", retryable=True)
            # No pause that ends between our look and the claim's.
            pause = timedelta(hours=dice.choice([-1, 1]))
            SynthesisRequest.objects.filter(pk=running.pk).update(not_before=timezone.now() + pause)
        elif fate < 0.7 and (running := _some("running", dice)):
            dispatch.cancel(running.pk)
        elif fate < 0.75 and (queued := _some("queued", dice)):
            dispatch.cancel(queued.pk)
        elif fate < 0.8:
            team = dice.choice(people).actor.team
            suspended = None if Team.objects.get(pk=team.pk).suspended_at else timezone.now()
            Team.objects.filter(pk=team.pk).update(suspended_at=suspended)
        else:
            best = shares.best()
            taken = _claim()
            assert taken == ([best] if best else []), _turn
            for request in taken:
                shares.take(request)


def _some(status, dice):
    found = list(SynthesisRequest.objects.filter(status=status).select_related("team__plan"))
    return dice.choice(found) if found else None


class _Shares:
    """What comes next, from the rows and from what was taken before: start-time fair queueing, as in the books."""

    def __init__(self):
        self.now = 0.0
        self.finish = {}

    def begins(self, team):
        return max(self.now, self.finish.get(team.pk, 0.0))

    def take(self, request):
        self.now = self.begins(request.team)
        self.finish[request.team.pk] = self.now + request.characters / request.team.plan.weight

    def best(self):
        now = timezone.now()
        running = list(SynthesisRequest.objects.filter(status="running"))
        candidates = []
        for team in Team.objects.filter(suspended_at=None).select_related("plan"):
            override = TeamQuota.objects.filter(team=team).first()
            allowed = override.concurrent_requests if override else team.plan.concurrent_requests
            if sum(one.team_id == team.pk for one in running) >= allowed:
                continue
            full = {
                quota.membership.user_id
                for quota in MemberQuota.objects.filter(membership__team=team)
                if sum(one.user_id == quota.membership.user_id for one in running)
                >= quota.concurrent_requests
            }
            queued = [
                one
                for one in SynthesisRequest.objects.filter(team=team, status="queued", not_before__lte=now)
                if one.user_id not in full
            ]
            if queued:
                first = min(queued, key=lambda one: (-one.priority, one.created_at))
                served = max(
                    Attempt.objects.filter(request__team=team).values_list("started_at", flat=True),
                    default=None,
                )
                since = max(first.created_at, served) if served else first.created_at
                candidates.append((self.begins(team), since, first))
        return min(candidates, key=lambda one: one[:2])[2] if candidates else None


def test_among_many_the_place_is_nearly_the_same(monkeypatch):
    dice = random.Random(3)
    plans = [factories.plan(f"P{number}", weight=weight) for number, weight in enumerate([1.0, 2.0, 0.5])]
    people = [factories.owner(f"Owner{number}", plan_=plans[number % 3]) for number in range(7)]
    queued = [factories.submit(dice.choice(people)) for _number in range(40)]
    turns.tidy()
    exact = [queue.place(request) for request in queued]
    monkeypatch.setattr(queue, "_MANY", 10)
    for request, known in zip(queued, exact, strict=True):
        place = queue.place(request)
        assert place.ahead_own == known.ahead_own
        # Of each other team, whether its request of the same share comes before is not asked.
        assert abs(place.ahead - known.ahead) < len(people)


def test_one_worker_goes_round_the_teams():
    """Nothing runs when it asks: a team that has queued many must not come first until the last of them."""
    heavy, light = factories.owner("Alice"), factories.owner("Charlie")
    many = [factories.submit(heavy).pk for _number in range(6)]
    served = []
    few = []
    for number in range(6):
        if number == 1:
            few = [factories.submit(light).pk for _number in range(2)]
        (request,) = _claim()
        served.append(request.pk)
        dispatch.cancel(request.pk)
    assert served == [many[0], few[0], many[1], few[1], many[2], many[3]]


def _served(people, text, claims):
    """How many of so many turns each team gets, one after the other, when all have more queued than that."""
    for person in people:
        for _number in range(claims):
            factories.submit(person, text[person])
    teams = []
    for _number in range(claims):
        (request,) = _claim()
        teams.append(request.team_id)
        dispatch.cancel(request.pk)
    return [teams.count(person.actor.team.pk) for person in people]


def test_one_worker_serves_by_weight_and_starves_nobody():
    people = [
        factories.owner(f"Owner{weight}", plan_=factories.plan(f"Plan {weight}", weight=weight))
        for weight in (3.0, 1.0)
    ]
    assert _served(people, dict.fromkeys(people, "Hello."), 12) == [9, 3]


def test_what_is_shared_is_characters_and_not_requests():
    people = [factories.owner("Alice"), factories.owner("Charlie")]
    assert _served(people, {people[0]: "Hello. " * 30, people[1]: "Hello. " * 10}, 12) == [3, 9]


def test_a_pause_earns_nothing():
    busy, away = factories.owner("Alice"), factories.owner("Charlie")
    for _number in range(20):
        factories.submit(busy)
    for _number in range(10):
        dispatch.cancel(_claim()[0].pk)
    for _number in range(5):
        factories.submit(away)
    teams = [_claim()[0].team_id for _number in range(6)]
    assert teams.count(away.actor.team.pk) == 3


def test_another_pool_has_a_clock_of_its_own():
    """What a team was served elsewhere does not count where it comes to."""
    moving, staying = factories.owner("Alice"), factories.owner("Charlie")
    for _number in range(8):
        factories.submit(moving)
    for _number in range(5):
        dispatch.cancel(_claim()[0].pk)
    Pool.objects.create(name="own")
    for person in (moving, staying):
        TeamPool.objects.create(team=person.actor.team, pool_id="own")
    for _number in range(3):
        factories.submit(staying)
    teams = [_claim(pool="own")[0].team_id for _number in range(4)]
    assert teams.count(moving.actor.team.pk) == 2


def test_the_place_is_what_the_claims_then_do():
    dice = random.Random(5)
    plans = [
        factories.plan(f"P{number}", weight=weight, concurrent_requests=100)
        for number, weight in enumerate([1.0, 2.0, 0.5])
    ]
    people = [factories.owner(f"Owner{number}", plan_=plans[number % 3]) for number in range(5)]
    for person in people:
        factories.submit(person)
    _claim(limit=2)
    queued = [factories.submit(dice.choice(people), "Hi! " * dice.randint(1, 9)) for _number in range(25)]
    turns.tidy()
    expected = {request.pk: queue.place(request).ahead for request in queued}
    order = [_claim()[0].pk for _number in range(28)]
    assert {pk: order.index(pk) for pk in expected} == expected


def test_whatever_lets_a_team_go_on_is_noticed():
    alice = factories.owner("Alice", plan_=factories.plan("One", concurrent_requests=1))
    for _number in range(6):
        factories.submit(alice)
    team = alice.actor.team
    assert len(_claim(limit=2)) == 1
    Plan.objects.filter(pk=team.plan_id).update(concurrent_requests=2)
    assert len(_claim(limit=2)) == 1
    TeamQuota.objects.create(team=team, concurrent_requests=3)
    assert len(_claim(limit=2)) == 1
    TeamQuota.objects.filter(team=team).update(concurrent_requests=4)
    Pool.objects.create(name="own")
    TeamPool.objects.create(team=team, pool_id="own")
    assert not _claim()
    assert _claim(pool="own")
    TeamPool.objects.filter(team=team).delete()
    TeamQuota.objects.filter(team=team).update(concurrent_requests=9)
    MemberQuota.objects.create(membership=alice.actor.membership, concurrent_requests=4)
    assert not _claim()
    MemberQuota.objects.all().delete()
    assert _claim()
    # As the version before does it, which knows of no turns.
    SynthesisRequest.objects.filter(status="running").update(status="queued", lease_until=None)
    assert len(_claim(limit=10)) == 6


def test_the_end_of_a_pause_needs_no_note():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    SynthesisRequest.objects.update(not_before=timezone.now() + timedelta(seconds=0.3))
    assert not _claim()
    assert Turn.objects.get().look_at is not None
    assert not QueueChange.objects.exists()
    threading.Event().wait(0.35)
    assert [one.pk for one in _claim()] == [request.pk]


def test_several_at_once_each_with_its_attempt():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    mine = [factories.submit(alice) for _number in range(3)]
    theirs = factories.submit(charlie)
    taken = {request.pk for request in _claim(limit=3)}
    assert taken == {mine[0].pk, mine[1].pk, theirs.pk}
    assert {attempt.request_id for attempt in Attempt.objects.all()} == taken


def test_the_sweep_reads_what_no_claim_has_read():
    alice = factories.owner("Alice")
    factories.submit(alice)
    assert QueueChange.objects.exists()
    assert turns.tidy() >= 1
    assert not QueueChange.objects.exists()
    assert turns.tidy in [task for task, _seconds in housekeeping.TASKS]


@pytest.mark.django_db(transaction=True)
def test_what_somebody_holds_is_not_waited_for():
    alice = factories.owner("Alice")
    first, second = factories.submit(alice), factories.submit(alice)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                SynthesisRequest.objects.select_for_update().get(pk=first.pk)
                held.set()
                done.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(10)
        assert [request.pk for request in _claim()] == [second.pk]
        assert not _claim()
    finally:
        done.set()
        thread.join()
    assert [request.pk for request in _claim()] == [first.pk]
