"""Which limits hold for somebody right now: the plan, the team's overrides, the person's, the key's."""

from __future__ import annotations

import calendar
import zoneinfo
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import InvalidInput
from accounts.models import ApiKey, Membership, Team, UsageCounter
from accounts.models.quotas import Override

FIELDS = (
    "characters_per_month",
    "concurrent_requests",
    "queued_requests",
    "requests_per_minute",
    "characters_per_request",
    "stored_voices",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """None: nothing of its own, the level above decides."""

    characters_per_month: int | None
    concurrent_requests: int | None
    queued_requests: int | None
    requests_per_minute: int | None
    characters_per_request: int | None
    stored_voices: int | None


def of_team(team: Team) -> Limits:
    """The plan's limits with the team's overrides; none of them is None."""
    override = override_of(team)
    values = {}
    for name in FIELDS:
        own = getattr(override, name, None)
        values[name] = getattr(team.plan, name) if own is None else own
    return Limits(**values)


def of_member(membership: Membership) -> Limits:
    """A person's own limits."""
    override = override_of(membership)
    return Limits(**{name: getattr(override, name, None) for name in FIELDS})


def of_key(key: ApiKey | None) -> Limits:
    """What a key may of itself; nothing is limited without one."""
    return Limits(**{name: getattr(key, name, None) for name in FIELDS})


def tightest(actor: Actor) -> Limits:
    """For each limit the lowest of the team's, the person's and the key's; none of them is None."""
    levels = (of_team(actor.team), of_member(actor.membership), of_key(actor.api_key))
    values = {}
    for name in FIELDS:
        values[name] = min(limit for limit in (getattr(level, name) for level in levels) if limit is not None)
    return Limits(**values)


def override_of(owner: Team | Membership) -> Override | None:
    """The limits that a team or a member has of its own; None when there are none."""
    try:
        return owner.quota
    except ObjectDoesNotExist:
        return None


@dataclass(frozen=True, slots=True)
class Period:
    """A calendar month in a team's time zone; `end` is the first moment after it."""

    key: date
    start: datetime
    end: datetime


def period(team: Team, at: datetime | None = None) -> Period:
    """The month that `at` (now) falls into for `team`."""
    zone = zoneinfo.ZoneInfo(team.time_zone)
    first = (at or timezone.now()).astimezone(zone).date().replace(day=1)
    following = first + timedelta(days=calendar.monthrange(first.year, first.month)[1])
    midnight = time.min
    return Period(first, datetime.combine(first, midnight, zone), datetime.combine(following, midnight, zone))


@dataclass(frozen=True, slots=True)
class Standing:
    """Characters of a month: what may be used (with what was granted), is used, is reserved; all integers."""

    limit: int
    used: int
    reserved: int
    period: Period

    @property
    def remaining(self) -> int:
        """What can still be reserved; never below zero."""
        return max(0, self.limit - self.used - self.reserved)


def standing(actor: Actor) -> Standing:
    """The tightest of the actor's counters (team, person, key): what they can really still use."""
    now = period(actor.team)
    limits: dict[tuple[object, object], int | None] = {
        (None, None): of_team(actor.team).characters_per_month,
        (actor.user.id, None): of_member(actor.membership).characters_per_month,
    }
    if actor.api_key:
        limits[None, actor.api_key.id] = actor.api_key.characters_per_month
    mine = Q(user=None, api_key=None) | Q(user=actor.user)
    if actor.api_key:
        mine |= Q(api_key=actor.api_key)
    counters = {
        (counter.user_id, counter.api_key_id): counter
        for counter in UsageCounter.objects.filter(mine, team=actor.team, period_start=now.key)
    }
    candidates = [
        Standing(
            max(0, limit + (counters[key].granted if key in counters else 0)),
            counters[key].used if key in counters else 0,
            counters[key].reserved if key in counters else 0,
            now,
        )
        for key, limit in limits.items()
        if limit is not None
    ]
    return min(candidates, key=lambda candidate: candidate.remaining)


def standing_of(target: Team | Membership) -> Standing | None:
    """This month of a team, or of one of its members; None for a member without a limit of their own."""
    team = target if isinstance(target, Team) else target.team
    user = None if isinstance(target, Team) else target.user
    limit = (of_team(target) if isinstance(target, Team) else of_member(target)).characters_per_month
    if limit is None:
        return None
    now = period(team)
    counter = UsageCounter.objects.filter(team=team, user=user, api_key=None, period_start=now.key).first()
    if counter is None:
        return Standing(limit, 0, 0, now)
    return Standing(max(0, limit + counter.granted), counter.used, counter.reserved, now)


def allowance_of(target: Team | Membership) -> int:
    """Characters of this month with grants and corrections: below zero where more was taken away than there was."""
    team = target if isinstance(target, Team) else target.team
    user = None if isinstance(target, Team) else target.user
    limit = (of_team(target) if isinstance(target, Team) else of_member(target)).characters_per_month or 0
    counter = UsageCounter.objects.filter(
        team=team, user=user, api_key=None, period_start=period(team).key
    ).first()
    return limit + (counter.granted if counter else 0)


def check_length(actor: Actor, characters: int, *, param: str) -> None:
    """InvalidInput when a text is longer than team or person may send in one request."""
    allowed = tightest(actor).characters_per_request
    if allowed is not None and characters > allowed:
        raise InvalidInput(
            _(
                "The text has %(characters)d characters; one request may have %(allowed)d. "
                "Split it into several requests."
            )
            % {"characters": characters, "allowed": allowed},
            code="text_too_long",
            param=param,
            characters=characters,
            characters_limit=allowed,
        )


def retention_days(team: Team) -> int:
    """Days that outputs are kept: as the plan says, or fewer where the team wants that."""
    plan = team.plan.retention_days
    return plan if team.retention_days is None else min(plan, team.retention_days)
