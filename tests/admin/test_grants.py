"""Grants and corrections: in the ledger, on top of the limit, carried over, ended."""

from __future__ import annotations

import uuid
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.errors import Conflict, InvalidInput, LimitReached, NotAllowed
from accounts.models import Grant, LedgerEntry, UsageCounter
from accounts.operators import Operator
from accounts.services import grants, ledger, limits, quotas
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture
def alice():
    """A team with 100 characters a month."""
    person = factories.owner("Alice")
    quotas.change(by=BY, targets=[person.actor.team], values={"characters_per_month": 100})
    person.actor.team.refresh_from_db()
    return person


def reserve(person, characters):
    request = uuid.uuid4()
    ledger.reserve(actor=person.actor, request_id=request, characters=characters)
    return request


def give(person, characters, **options):
    return grants.give(by=BY, team=person.actor.team, characters=characters, reason="A gift", **options)


def balance(person) -> int:
    return sum(LedgerEntry.objects.filter(kind__in=["grant", "adjust"]).values_list("characters", flat=True))


def counter(person, **subject) -> UsageCounter:
    subject = {"user": None, "api_key": None} | subject
    return UsageCounter.objects.get(
        team=person.actor.team, period_start=limits.period(person.actor.team).key, **subject
    )


def test_a_grant_comes_on_top_of_the_limit_to_the_character(alice):
    give(alice, 50)
    assert limits.standing(alice.actor).limit == 150
    reserve(alice, 100)
    reserve(alice, 50)
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 1)
    assert counter(alice).allowance == 150


def test_one_request_may_be_larger_than_the_limit_alone(alice):
    give(alice, 50)
    reserve(alice, 140)
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 11)


def test_a_grant_to_a_person_with_a_limit_of_their_own(alice):
    bob = factories.colleague(alice, "Bob")
    with pytest.raises(InvalidInput) as caught:
        give(alice, 5, user=bob.user)
    assert caught.value.code == "person_unlimited"
    quotas.change(by=BY, targets=[bob.actor.membership], values={"characters_per_month": 10})
    bob.actor.membership.refresh_from_db()
    give(alice, 5, user=bob.user)
    reserve(bob, 15)
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(bob, 1)
    assert counter(alice).granted == 0


@pytest.mark.parametrize(
    "options",
    [
        {"characters": 0},
        {"characters": -5},
        {"reason": "  "},
        {"expires_at": timezone.now() - timedelta(days=1)},
    ],
)
def test_what_makes_no_sense_is_refused(alice, options):
    with pytest.raises(InvalidInput):
        grants.give(**({"by": BY, "team": alice.actor.team, "characters": 1, "reason": "x"} | options))
    assert not Grant.objects.exists()


def test_an_expired_grant_takes_only_what_nobody_used(alice):
    grant = give(alice, 50, expires_at=timezone.now() + timedelta(days=1))
    reserve(alice, 120)
    assert grants.left(grant) == 30
    Grant.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert grants.tend() == 1
    assert grants.tend() == 0
    assert limits.standing(alice.actor).limit == 120
    assert balance(alice) == counter(alice).granted == 20
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 1)


def test_the_one_that_expires_first_is_used_first(alice):
    later = give(alice, 50, expires_at=timezone.now() + timedelta(days=9))
    soon = give(alice, 50, expires_at=timezone.now() + timedelta(days=1))
    never = give(alice, 50)
    reserve(alice, 160)
    assert [grants.left(one) for one in (soon, later, never)] == [0, 40, 50]


def test_what_is_left_goes_on_to_the_next_month(alice):
    grant = give(alice, 50)
    reserve(alice, 120)
    last_month = date(2020, 1, 1)
    # The month ends: everything that was this month's is now an earlier one's.
    UsageCounter.objects.update(period_start=last_month)
    Grant.objects.update(period_start=last_month)
    assert grants.tend() == 1
    grant.refresh_from_db()
    assert (grant.placed, grant.period_start) == (30, limits.period(alice.actor.team).key)
    assert counter(alice).granted == 30
    assert UsageCounter.objects.get(team=alice.actor.team, user=None, period_start=last_month).granted == 20
    reserve(alice, 130)
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 1)


def test_a_grant_that_is_used_up_ends_with_its_month(alice):
    give(alice, 50)
    reserve(alice, 150)
    UsageCounter.objects.update(period_start=date(2020, 1, 1))
    Grant.objects.update(period_start=date(2020, 1, 1))
    grants.tend()
    assert Grant.objects.get().ended_at is not None
    assert limits.standing(alice.actor).limit == 100


def test_a_grant_stays_where_the_teams_month_has_not_ended(alice):
    team = alice.actor.team
    team.time_zone = "Pacific/Kiritimati"  # the first to enter a month
    team.save()
    give(alice, 50)
    assert grants.tend() == 0


def test_revoking_takes_back_the_rest_once(alice):
    grant = give(alice, 50)
    reserve(alice, 130)
    assert grants.revoke(by=BY, grant_id=grant.pk) == 20
    assert limits.standing(alice.actor).remaining == 0
    with pytest.raises(Conflict):
        grants.revoke(by=BY, grant_id=grant.pk)


def test_a_released_reservation_gives_granted_characters_back(alice):
    grant = give(alice, 50)
    request = reserve(alice, 150)
    ledger.release(request)
    assert grants.left(grant) == 50


def test_corrections_go_both_ways_and_keep_what_was_promised(alice):
    grants.adjust(by=BY, team=alice.actor.team, characters=20, reason="Their outage")
    reserve(alice, 115)
    grants.adjust(by=BY, team=alice.actor.team, characters=-60, reason="Wrong account")
    assert limits.standing(alice.actor).remaining == 0
    assert counter(alice).reserved == 115
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 1)
    for characters, reason in ((0, "x"), (5, " ")):
        with pytest.raises(InvalidInput):
            grants.adjust(by=BY, team=alice.actor.team, characters=characters, reason=reason)


def test_a_correction_before_anything_was_used(alice):
    grants.adjust(by=BY, team=alice.actor.team, characters=-40, reason="Shared with another team")
    reserve(alice, 60)
    with pytest.raises(LimitReached), transaction.atomic():
        reserve(alice, 1)


def test_a_grant_survives_a_change_of_the_limit(alice):
    give(alice, 50)
    reserve(alice, 1)
    quotas.change(by=BY, targets=[alice.actor.team], values={"characters_per_month": 10})
    alice.actor.team.quota.refresh_from_db()
    assert limits.standing(alice.actor).limit == 60


def test_without_the_right_nothing_happens(alice):
    helper = Operator.person(staff.person("Helper", roles=["support"]))
    with pytest.raises(NotAllowed):
        grants.give(by=helper, team=alice.actor.team, characters=5, reason="x")
    with pytest.raises(NotAllowed):
        grants.adjust(by=helper, team=alice.actor.team, characters=5, reason="x")


def test_from_the_panel(alice):
    client = staff.client_of(staff.person("Money", roles=["billing"]))
    team = alice.actor.team
    address = f"/admin/accounts/team/{team.pk}/do/grant/"
    until = timezone.localdate() + timedelta(days=40)
    sent = {"characters": "500", "reason": "Launch", "expires_at": until.isoformat()}
    assert "600" in client.post(address, {"step": "ask", **sent}).content.decode()
    client.post(address, {"step": "do", **sent})
    grant = Grant.objects.get()
    assert grant.expires_at == datetime(
        until.year, until.month, until.day, 23, 59, 59, tzinfo=ZoneInfo("UTC")
    )
    assert "Launch" in client.get(f"/admin/accounts/team/{team.pk}/").content.decode()
    client.post(f"/admin/accounts/grant/{grant.pk}/do/revoke/", {"step": "do", "reason": "Mistake"})
    assert limits.standing(alice.actor).limit == 100
    client.post(
        f"/admin/accounts/team/{team.pk}/do/adjust/", {"step": "do", "characters": "-1", "reason": "r"}
    )
    assert limits.standing(alice.actor).limit == 99
