"""Changing limits: audited with before and after, previewed, planned, undone."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.errors import Conflict, InvalidInput, LimitReached, NotAllowed
from accounts.models import AuditEntry, MemberQuota, Plan, QuotaChange, TeamQuota
from accounts.operators import Operator
from accounts.services import ledger, limits, quotas
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture
def alice():
    return factories.owner("Alice")


def fresh(person):
    """The actor as the next request would see it."""
    membership = person.actor.membership
    return type(person.actor)(
        type(membership)
        .objects.select_related("team__plan", "team__quota", "user", "quota")
        .get(pk=membership.pk)
    )


def test_a_change_is_written_and_audited_with_before_and_after(alice):
    root = Operator.person(staff.person())
    (made,) = quotas.change(
        by=root,
        targets=[alice.actor.team],
        values={"characters_per_month": 5_000, "stored_voices": 3},
        reason="Asked",
    )
    assert limits.of_team(fresh(alice).team).characters_per_month == 5_000
    assert made.before == {"characters_per_month": None, "stored_voices": None}
    entry = AuditEntry.objects.get(action="quota.changed")
    assert entry.team_id == alice.actor.team.pk
    assert entry.actor_name == "root@chorus.example"
    assert entry.data["before"] == {"characters_per_month": None, "stored_voices": None}
    assert entry.data["after"] == {"characters_per_month": 5_000, "stored_voices": 3}
    assert entry.data["reason"] == "Asked"


def test_a_members_own_limit(alice):
    bob = factories.colleague(alice, "Bob")
    quotas.change(by=BY, targets=[bob.actor.membership], values={"characters_per_month": 10})
    with pytest.raises(LimitReached), transaction.atomic():
        ledger.reserve(actor=fresh(bob), request_id=uuid.uuid4(), characters=11)
    ledger.reserve(actor=fresh(alice), request_id=uuid.uuid4(), characters=11)


def test_another_plan(alice):
    big = quotas.create_plan(by=BY, name="Big", values={"characters_per_month": 9_000_000})
    quotas.change(by=BY, targets=[alice.actor.team], values={"plan": big})
    assert fresh(alice).team.plan == big
    assert AuditEntry.objects.get(action="quota.changed").data["after"] == {"plan": "Big"}


def test_nothing_is_written_when_nothing_changes(alice):
    quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 3})
    assert quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 3}) == []
    assert QuotaChange.objects.count() == 1


def test_preview_shows_and_does_nothing(alice):
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=100)
    effects = quotas.preview(
        targets=[alice.actor.team], values={"characters_per_month": 100, "stored_voices": None}
    )
    (effect,) = effects
    assert effect.before == f"{alice.actor.team.plan.characters_per_month:,}, as the level above says"
    assert effect.after == "100"
    assert "Used up already" in str(effect.warning)
    assert not TeamQuota.objects.exists()
    assert not QuotaChange.objects.exists()


def test_preview_of_a_plan_shows_what_it_means_for_the_team(alice):
    small = quotas.create_plan(by=BY, name="Small", values={"characters_per_month": 10, "queued_requests": 1})
    for _i in range(2):
        factories.submit(alice)
    quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 7})
    effects = {
        str(effect.what): effect
        for effect in quotas.preview(targets=[alice.actor.team], values={"plan": small.pk})
    }
    assert effects["plan"].after == "Small"
    assert effects["characters per month"].after == "10"
    assert str(effects["requests waiting at once"].warning).startswith("2 are in use")
    assert "stored voices" not in effects  # the team has its own


def test_a_planned_change_waits_for_the_next_month(alice):
    (made,) = quotas.change(
        by=BY, targets=[alice.actor.team], values={"characters_per_month": 5}, next_period=True
    )
    assert made.apply_at == limits.period(alice.actor.team).end
    assert quotas.apply_due() == 0
    assert not TeamQuota.objects.exists()
    QuotaChange.objects.update(apply_at=timezone.now() - timedelta(seconds=1))
    assert quotas.apply_due() == 1
    assert quotas.apply_due() == 0
    assert TeamQuota.objects.get().characters_per_month == 5
    assert AuditEntry.objects.filter(action="quota.changed", actor_name="sweep").count() == 1


def test_a_planned_change_can_be_withdrawn(alice):
    (made,) = quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 5}, next_period=True)
    quotas.withdraw(by=BY, change_id=made.pk)
    QuotaChange.objects.update(apply_at=timezone.now())
    assert quotas.apply_due() == 0
    with pytest.raises(Conflict):
        quotas.withdraw(by=BY, change_id=made.pk)


def test_undo_puts_back_what_was_there(alice):
    team = alice.actor.team
    quotas.change(by=BY, targets=[team], values={"stored_voices": 5})
    (made,) = quotas.change(by=BY, targets=[team], values={"stored_voices": 9, "concurrent_requests": 1})
    quotas.undo(by=BY, change_id=made.pk)
    quota = TeamQuota.objects.get()
    assert (quota.stored_voices, quota.concurrent_requests) == (5, None)
    with pytest.raises(Conflict):
        quotas.undo(by=BY, change_id=made.pk)


def test_what_was_changed_again_is_not_undone(alice):
    (first,) = quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 5})
    quotas.change(by=BY, targets=[alice.actor.team], values={"stored_voices": 6})
    with pytest.raises(Conflict) as caught:
        quotas.undo(by=BY, change_id=first.pk)
    assert caught.value.code == "changed_since"


def test_many_at_once_are_one_batch(alice):
    charlie = factories.owner("Charlie")
    made = quotas.change(
        by=BY, targets=[alice.actor.team, charlie.actor.team], values={"requests_per_minute": 3}
    )
    assert len({one.batch for one in made}) == 1
    assert [limits.of_team(fresh(one).team).requests_per_minute for one in (alice, charlie)] == [3, 3]


@pytest.mark.parametrize(
    "values",
    [
        {"characters_per_month": -1},
        {"characters_per_month": 10**15},
        {"characters_per_request": 20_001},
        {"weight": 2},
        {"plan": "01890000-0000-7000-8000-000000000000"},
        {"colour": 1},
    ],
)
def test_what_makes_no_sense_is_refused(alice, values):
    with pytest.raises(InvalidInput):
        quotas.change(by=BY, targets=[alice.actor.team], values=values)
    assert not QuotaChange.objects.exists()


def test_plans(alice):
    plan = quotas.create_plan(by=BY, name=" Gold  plan ", values={"weight": 2.5})
    assert (plan.name, plan.weight) == ("Gold plan", 2.5)
    with pytest.raises(Conflict):
        quotas.create_plan(by=BY, name="gold PLAN", values={})
    with pytest.raises(InvalidInput):
        quotas.change(by=BY, targets=[plan], values={"weight": 0})
    with pytest.raises(InvalidInput):
        quotas.change(by=BY, targets=[plan], values={"stored_voices": None})
    (made,) = quotas.change(by=BY, targets=[plan], values={"weight": 1.5, "retention_days": 7})
    quotas.undo(by=BY, change_id=made.pk)
    plan.refresh_from_db()
    assert (plan.weight, plan.retention_days) == (2.5, 90)
    quotas.change(by=BY, targets=[alice.actor.team], values={"plan": plan})
    with pytest.raises(Conflict):
        quotas.delete_plan(by=BY, plan_id=plan.pk)
    quotas.change(by=BY, targets=[alice.actor.team], values={"plan": factories.plan()})
    quotas.delete_plan(by=BY, plan_id=plan.pk)
    assert not Plan.objects.filter(pk=plan.pk).exists()


def test_without_the_right_nothing_happens(alice):
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        quotas.change(by=helper, targets=[alice.actor.team], values={"stored_voices": 1})
    with pytest.raises(NotAllowed):
        quotas.change(by=helper, targets=[alice.actor.membership], values={"stored_voices": 1})
    with pytest.raises(NotAllowed):
        quotas.create_plan(by=helper, name="Mine", values={})
    assert not TeamQuota.objects.exists()
    assert not MemberQuota.objects.exists()


# --- In the panel -----------------------------------------------------------------------------------------------


def fields(**own):
    empty = dict.fromkeys(limits.FIELDS, "")
    return {**empty, "next_period": "", "reason": "", **own}


def test_the_page_asks_shows_and_applies(alice):
    client = staff.client_of(staff.person("Money", roles=["billing"]))
    team = alice.actor.team
    address = f"/admin/accounts/team/{team.pk}/do/limits/"
    sent = fields(plan=str(team.plan_id), characters_per_month="1234", reason="Contract")
    shown = client.post(address, {"step": "ask", **sent})
    assert shown.status_code == 200
    assert "1,234" in shown.content.decode()
    assert not TeamQuota.objects.exists()
    done = client.post(address, {"step": "do", **sent})
    assert done.headers["Location"] == f"/admin/accounts/team/{team.pk}/"
    assert TeamQuota.objects.get().characters_per_month == 1234
    page = client.get(f"/admin/accounts/team/{team.pk}/").content.decode()
    assert "1,234" in page
    assert "Contract" in page
    change = QuotaChange.objects.get()
    client.post(f"/admin/accounts/quotachange/{change.pk}/do/undo/", {"step": "do"})
    assert TeamQuota.objects.get().characters_per_month is None


def test_a_wrong_number_comes_back_with_its_reason(alice):
    client = staff.client_of(staff.person())
    address = f"/admin/accounts/team/{alice.actor.team.pk}/do/limits/"
    sent = fields(plan=str(alice.actor.team.plan_id), characters_per_request="20001")
    answer = client.post(address, {"step": "ask", **sent})
    assert answer.status_code == 422
    assert "must be between" in answer.content.decode()


def test_many_teams_from_the_list(alice):
    charlie = factories.owner("Charlie")
    client = staff.client_of(staff.person())
    ids = [str(one.actor.team.pk) for one in (alice, charlie)]
    asked = client.post("/admin/accounts/team/", {"action": "limits", "_selected_action": ids, "index": "0"})
    assert asked.status_code == 200
    assert "2 chosen" in asked.content.decode()
    charlies = charlie.actor.team
    quotas.change(by=BY, targets=[charlies], values={"requests_per_minute": 9, "concurrent_requests": 1})
    # A number is a change; a ticked box without one is the plan's value; anything else stays.
    sent = fields(plan="", stored_voices="4", set_requests_per_minute="on", object=ids)
    shown = client.post("/admin/accounts/team/do/limits/", {"step": "ask", **sent})
    assert shown.content.decode().count("<strong>4</strong>") == 2
    client.post("/admin/accounts/team/do/limits/", {"step": "do", **sent})
    found = TeamQuota.objects.values_list("stored_voices", "requests_per_minute", "concurrent_requests")
    assert set(found) == {(4, None, None), (4, None, 1)}


def test_a_members_limits_from_the_panel(alice):
    client = staff.client_of(staff.person())
    address = f"/admin/accounts/membership/{alice.actor.membership.pk}/"
    client.post(f"{address}do/limits/", {"step": "do", **fields(characters_per_month="77")})
    assert MemberQuota.objects.get().characters_per_month == 77
    assert "77" in client.get(address).content.decode()


def test_a_new_plan_from_the_panel():
    client = staff.client_of(staff.person())
    sent = {name: str(getattr(Plan(), name)) for name in quotas.PLAN_FIELDS}
    client.post("/admin/accounts/plan/do/new/", {"step": "do", "name": "Silver", **sent})
    plan = Plan.objects.get(name="Silver")
    answer = client.post(
        f"/admin/accounts/plan/{plan.pk}/do/change/",
        {"step": "do", "name": "Silver", "next_period": "", "reason": "", **sent, "weight": "3"},
    )
    assert answer.status_code == 302
    plan.refresh_from_db()
    assert plan.weight == 3


def test_previews_warn_of_what_counts_more_and_of_teams_that_are_over(alice):
    bob = factories.colleague(alice, "Bob")
    (effect,) = quotas.preview(targets=[bob.actor.membership], values={"concurrent_requests": 5_000})
    assert "that is what counts" in str(effect.warning)
    ledger.reserve(actor=alice.actor, request_id=uuid.uuid4(), characters=100)
    plan = alice.actor.team.plan
    effects = quotas.preview(targets=[plan], values={"characters_per_month": 100, "requests_per_minute": 0})
    assert [str(one.warning)[:16] for one in effects] == ["", "Nothing can be s", "1 of them have u"]
    assert not quotas.preview(targets=[plan], values={"characters_per_month": 101})[1].warning
