"""The queue's pages: what waits and why, failures by cause, orders to workers, pools."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.errors import Conflict, InvalidInput, NotAllowed, NotFound
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import quotas, suspension
from synthesis import doorbell
from synthesis.models import Pool, Status, SynthesisRequest, TeamPool, Worker
from synthesis.services import dispatch, housekeeping, operations, pools, queue, waiting, workers
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture(autouse=True)
def _fresh_pools():
    pools.forget()
    yield
    pools.forget()


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


def beat(name: str = "w", state: str = "idle", pool: str = "") -> str:
    return workers.beat(name=name, engine="hibari", host="here", pid=1, state=state, pool=pool)


def claim(worker: str = "w", pool: str = ""):
    return dispatch.claim(worker=worker, engine="hibari", pool=pool)


def why(request: SynthesisRequest) -> str:
    (found,) = [one for one in waiting.queued() if one.pk == request.pk]
    return str(getattr(found, "why"))  # noqa: B009  set by `waiting.queued`


# --- Why it waits -----------------------------------------------------------------------------------------------


def test_each_reason_is_named(alice):
    bob = factories.colleague(alice, "Bob")
    first, bobs = factories.submit(alice), factories.submit(bob)
    assert "No worker for hibari is alive" in why(first)
    beat(state="paused")
    assert "are paused" in why(first)
    beat(state="loading")
    assert "are loading" in why(first)
    beat()
    assert "fair share" in why(first)
    suspension.suspend_team(by=BY, team_id=alice.actor.team.pk)
    assert "suspended" in why(first)
    suspension.restore_team(by=BY, team_id=alice.actor.team.pk)
    SynthesisRequest.objects.filter(pk=first.pk).update(not_before=timezone.now() + timedelta(seconds=40))
    assert "pauses for 40 s" in why(first)
    (claimed,) = claim()
    assert claimed.pk == bobs.pk
    second = factories.submit(bob)
    quotas.change(by=BY, targets=[bob.actor.membership], values={"concurrent_requests": 1})
    assert "own limit of 1" in why(second)
    quotas.change(by=BY, targets=[alice.actor.team], values={"concurrent_requests": 1})
    assert "limit of 1 at once" in why(first)


def test_by_team(alice):
    charlie = factories.owner("Charlie")
    factories.submit(alice)
    factories.submit(alice)
    factories.submit(charlie)
    beat()
    claim()
    teams = {one.team.name: one for one in waiting.by_team()}
    assert {(name, one.waiting, one.running) for name, one in teams.items()} in (
        {("Harbour Audio", 1, 1), ("Charlie's team", 1, 0)},
        {("Harbour Audio", 2, 0), ("Charlie's team", 0, 1)},
    )
    assert all(one.why for one in teams.values() if one.waiting)
    assert not any(one.why for one in teams.values() if not one.waiting)


def test_looking_needs_few_queries(alice, django_assert_max_num_queries):
    for number in range(12):
        factories.submit(factories.owner(f"P{number}"))
    with django_assert_max_num_queries(8):
        waiting.by_team()
    with django_assert_max_num_queries(6):
        waiting.queued()


# --- Failures ---------------------------------------------------------------------------------------------------


def fail(person, code: str) -> SynthesisRequest:
    request = factories.submit(person)
    (claimed,) = claim()
    dispatch.fail(claimed, code=code, message=f"Because of {code}.", retryable=False)
    request.refresh_from_db()
    return request


def test_failures_by_cause_and_again(alice):
    charlie = factories.owner("Charlie")
    for person in (alice, charlie, alice):
        fail(person, "engine_error")
    old = fail(alice, "storage_unavailable")
    SynthesisRequest.objects.filter(pk=old.pk).update(completed_at=timezone.now() - timedelta(hours=30))
    (group,) = waiting.failures(hours=24)
    assert (group.code, group.count, group.teams, group.retried, group.open) == ("engine_error", 3, 2, 0, 3)
    assert group.message == "Because of engine_error."
    assert len(waiting.failures(hours=168)) == 2
    assert operations.retry_all(by=BY, code="engine_error", hours=24) == (3, 0, "")
    assert operations.retry_all(by=BY, code="engine_error", hours=24) == (0, 0, "")
    assert waiting.failures(hours=24)[0].open == 0


def test_what_cannot_be_tried_again_does_not_keep_the_others(alice):
    charlie = factories.owner("Charlie")
    fail(alice, "x")
    fail(charlie, "x")
    suspension.suspend_team(by=BY, team_id=alice.actor.team.pk)
    done, refused, reason = operations.retry_all(by=BY, code="x", hours=1)
    assert (done, refused) == (1, 1)
    assert "suspended" in reason


# --- Orders -----------------------------------------------------------------------------------------------------


def test_an_order_is_heard_with_the_next_report_and_holds_at_once(alice):
    request = factories.submit(alice)
    assert beat() == ""
    workers.order(by=BY, name="w", order="pause", reason="Update")
    assert claim() == []  # before it has heard of it
    assert beat() == "pause"
    workers.order(by=BY, name="w", order="")
    assert [one.pk for one in claim()] == [request.pk]
    entry = AuditEntry.objects.filter(action="worker.ordered").earliest("id")
    assert (entry.target_id, entry.data["after"], entry.data["reason"]) == ("w", "pause", "Update")


def test_a_worker_that_is_recycled_or_another_one_still_takes(alice):
    factories.submit(alice)
    factories.submit(alice)
    beat()
    beat("other")
    workers.order(by=BY, name="w", order="recycle")
    assert len(claim()) == 1
    workers.order(by=BY, name="w", order="stop")
    assert claim() == []
    assert len(claim("other")) == 1


def test_only_the_order_that_was_carried_out_is_cleared():
    beat()
    workers.order(by=BY, name="w", order="restart")
    workers.obeyed(name="w", order="restart")
    assert beat() == ""
    workers.order(by=BY, name="w", order="pause")
    workers.obeyed(name="w", order="restart")
    assert beat() == "pause"


def test_orders_that_are_none():
    beat()
    with pytest.raises(InvalidInput):
        workers.order(by=BY, name="w", order="explode")
    with pytest.raises(NotFound):
        workers.order(by=BY, name="nobody", order="pause")
    with pytest.raises(NotAllowed):
        workers.order(by=Operator.person(staff.person("Helper", roles=["support"])), name="w", order="pause")


def test_a_paused_worker_counts_as_none(alice):
    request = factories.submit(alice)
    beat(state="paused")
    assert queue.outlook(request).workers == 0


# --- Pools ------------------------------------------------------------------------------------------------------


def test_a_pool_serves_its_teams_and_nobody_else(alice):
    charlie = factories.owner("Charlie")
    pools.create(by=BY, name="Gold", note="Contract 7")
    alices, charlies = factories.submit(alice), factories.submit(charlie)
    pools.assign(by=BY, team_id=alice.actor.team.pk, name="gold")
    assert [one.pk for one in claim("a")] == [charlies.pk]
    assert claim("a") == []
    assert [one.pk for one in claim("b", "gold")] == [alices.pk]
    assert claim("b", "gold") == []
    assert AuditEntry.objects.get(action="pool.assigned").data["after"] == "gold"
    pools.assign(by=BY, team_id=alice.actor.team.pk, name="")
    back = factories.submit(alice)
    assert [one.pk for one in claim("a")] == [back.pk]


def test_place_and_outlook_are_the_pools_own(alice):
    charlie = factories.owner("Charlie")
    pools.create(by=BY, name="gold")
    pools.assign(by=BY, team_id=charlie.actor.team.pk, name="gold")
    pools.forget()
    for _i in range(5):
        factories.submit(charlie)
    beat("shared")
    mine = factories.submit(alice)
    outlook = queue.outlook(mine)
    assert outlook.place is not None
    assert (outlook.place.ahead, outlook.workers) == (0, 1)
    theirs = SynthesisRequest.objects.filter(team=charlie.actor.team).first()
    assert theirs is not None
    assert queue.outlook(theirs).workers == 0
    assert "pool gold" in why(theirs)


@pytest.mark.django_db(transaction=True)
def test_each_pool_has_its_own_bell(alice):
    for name in ("", "gold"):
        doorbell.queue(name).empty()
    pools.create(by=BY, name="gold")
    pools.assign(by=BY, team_id=alice.actor.team.pk, name="gold")
    factories.submit(alice)
    factories.submit(factories.owner("Charlie"))
    assert [doorbell.queue(name).count for name in ("", "gold")] == [1, 1]
    assert doorbell.queue("gold").name == "gpu-gold"
    for name in ("", "gold"):
        doorbell.queue(name).empty()
    assert housekeeping.ring_for_waiting() == 2
    assert [doorbell.queue(name).count for name in ("", "gold")] == [1, 1]
    for name in ("", "gold"):
        doorbell.queue(name).empty()


def test_pools_that_make_no_sense(alice):
    pools.create(by=BY, name="gold")
    for name in ("", "With space", "ünder", "-x", "x" * 33):
        with pytest.raises(InvalidInput):
            pools.create(by=BY, name=name)
    with pytest.raises(Conflict):
        pools.create(by=BY, name="gold")
    with pytest.raises(InvalidInput):
        pools.assign(by=BY, team_id=alice.actor.team.pk, name="silver")
    pools.assign(by=BY, team_id=alice.actor.team.pk, name="gold")
    with pytest.raises(Conflict):
        pools.delete(by=BY, name="gold")
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        pools.assign(by=helper, team_id=alice.actor.team.pk, name="")


# --- In the panel -----------------------------------------------------------------------------------------------


def test_the_pages(alice):
    client = staff.client_of(staff.person("Operator", roles=["operations"]))
    request = factories.submit(alice)
    beat()
    page = client.get("/admin/queue/").content.decode()
    assert "Harbour Audio" in page
    assert "fair share" in page
    part = client.get(
        f"/admin/queue/?team={alice.actor.team.pk}", headers={"hx-request": "true"}
    ).content.decode()
    assert "<html" not in part
    assert str(request.pk) in part
    fail(alice, "engine_error")
    fail(alice, "engine_error")
    assert (
        "Try 1 again" in client.get("/admin/failures/").content.decode()
        or "Try 2" in client.get("/admin/failures/").content.decode()
    )
    client.post("/admin/failures/", {"code": "engine_error", "hours": "24"})
    assert SynthesisRequest.objects.filter(retry_of__isnull=False, status=Status.QUEUED).count() == 2
    assert client.get("/admin/failures/?hours=5").status_code == 400


def test_orders_and_pools_from_the_panel(alice):
    client = staff.client_of(staff.person("Operator", roles=["operations"]))
    beat()
    address = "/admin/synthesis/worker/w/"
    client.post(f"{address}do/pause/", {"step": "do", "reason": ""})
    assert Worker.objects.get().order == "pause"
    assert client.get(f"{address}do/recycle/").status_code == 302  # paused: not possible now
    client.post(f"{address}do/resume/", {"step": "do", "reason": ""})
    assert Worker.objects.get().order == ""
    client.post("/admin/synthesis/pool/do/new/", {"step": "do", "name": "gold", "note": ""})
    assert Pool.objects.get().name == "gold"
    assign = f"/admin/accounts/team/{alice.actor.team.pk}/do/pool/"
    shown = client.post(assign, {"step": "ask", "pool": "gold", "reason": ""}).content.decode()
    assert "would wait" in shown
    client.post(assign, {"step": "do", "pool": "gold", "reason": ""})
    assert TeamPool.objects.get().team == alice.actor.team
    assert "Harbour Audio" in client.get("/admin/synthesis/pool/gold/").content.decode()


def test_support_may_look_and_retry_but_not_order(alice):
    client = staff.client_of(staff.person("Helper", roles=["support"]))
    beat()
    assert client.get("/admin/queue/").status_code == 200
    assert client.post("/admin/synthesis/worker/w/do/pause/", {"step": "do"}).status_code == 403
    assert client.get("/admin/synthesis/pool/").status_code == 403
