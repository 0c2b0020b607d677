"""Characters once, on top of a limit: given, carried into the next month, ended.

The limit is used up first, then the grants, the one that expires first before the others. A grant lies in one month's
counter at a time, as an entry of the ledger; what is left of it is taken out (an `adjust`) when it ends, and put into
the next month (another `grant`) when the month ends before it.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import Grant, LedgerEntry, Membership, Team, UsageCounter, User
from accounts.operators import Operator
from accounts.services import ledger, limits

MOST = 10**12
PERMISSION = "accounts.add_grant"


def give(
    *,
    by: Operator,
    team: Team,
    characters: int,
    reason: str,
    user: User | None = None,
    expires_at: datetime | None = None,
) -> Grant:
    """`characters` for a team, or for one person in it who has a limit of their own.

    Raises InvalidInput: no reason, a past expiry, a person without a limit of their own (theirs is the team's).
    """
    by.require(PERMISSION)
    reason = " ".join(reason.split())
    if not 0 < characters <= MOST:
        raise InvalidInput(
            _("Grant between 1 and %(most)s characters.") % {"most": f"{MOST:,}"},
            code="characters_out_of_range",
            param="characters",
        )
    if not reason:
        raise InvalidInput(_("Say why: the ledger keeps it."), code="reason_missing", param="reason")
    if expires_at is not None and expires_at <= timezone.now():
        raise InvalidInput(_("The expiry lies in the past."), code="expiry_past", param="expires_at")
    with transaction.atomic():
        limit = _limit(team, user)
        if user is not None and limit is None:
            raise InvalidInput(
                _("%(person)s has no limit of their own in this team. Grant the characters to the team.")
                % {"person": user.email},
                code="person_unlimited",
                param="user",
            )
        period = limits.period(team).key
        grant = Grant.objects.create(
            team=team,
            user=user,
            characters=characters,
            reason=reason[:200],
            expires_at=expires_at,
            period_start=period,
            placed=characters,
            created_by=by.user,
        )
        _place(grant, period, characters, limit)
        by.record(
            "grant.given",
            target=grant,
            team_id=team.pk,
            characters=characters,
            person=user.email if user else None,
            reason=grant.reason,
            expires_at=expires_at.isoformat() if expires_at else None,
        )
    return grant


def revoke(*, by: Operator, grant_id: UUID, reason: str = "") -> int:
    """Take back what is left of a grant; how many characters. Conflict when it has ended."""
    by.require("accounts.change_grant")
    with transaction.atomic():
        grant = Grant.objects.select_for_update(of=("self",)).filter(pk=grant_id).first()
        if grant is None:
            raise NotFound
        if grant.ended_at is not None:
            raise Conflict(_("This grant has ended."), code="grant_ended")
        left = _end(grant, "revoked")
        by.record("grant.revoked", target=grant, team_id=grant.team_id, characters=left, reason=reason)
    return left


def adjust(
    *, by: Operator, team: Team, characters: int, reason: str, user: User | None = None
) -> LedgerEntry:
    """Correct this month's allowance by `characters` (below zero: fewer), for good. Needs a reason."""
    by.require(PERMISSION)
    reason = " ".join(reason.split())
    if not reason:
        raise InvalidInput(_("Say why: the ledger keeps it."), code="reason_missing", param="reason")
    if characters == 0 or abs(characters) > MOST:
        raise InvalidInput(
            _("Adjust by at least one character, and at most %(most)s.") % {"most": f"{MOST:,}"},
            code="characters_out_of_range",
            param="characters",
        )
    with transaction.atomic():
        entry = ledger.move_allowance(
            kind=LedgerEntry.Kind.ADJUST,
            team_id=team.pk,
            user_id=user.pk if user else None,
            period_start=limits.period(team).key,
            characters=characters,
            limit=_limit(team, user),
            note=reason[:200],
        )
        by.record(
            "allowance.adjusted",
            target=team,
            team_id=team.pk,
            characters=characters,
            person=user.email if user else None,
            reason=reason,
        )
    return entry


def left(grant: Grant) -> int:
    """Characters of a grant that nobody has used or reserved."""
    return 0 if grant.ended_at else _unused(grant, lock=False)


def tend() -> int:
    """For the sweep: end what has expired or is used up with its month, carry the rest over; how many grants."""
    now = timezone.now()
    count = 0
    active = Grant.objects.filter(ended_at=None).select_related("team")
    # The first time zones enter a month 14 hours before UTC: before that no grant can be due to be carried over.
    latest = (now + timedelta(hours=14)).date().replace(day=1)
    due = active.filter(Q(expires_at__lte=now) | Q(period_start__lt=latest))
    for grant_id in due.values_list("pk", flat=True):
        with transaction.atomic():
            grant = (
                Grant.objects.select_for_update(of=("self",), skip_locked=True)
                .select_related("team__plan", "user")
                .filter(pk=grant_id, ended_at=None)
                .first()
            )
            if grant is not None:
                count += _tend(grant, now)
    return count


def _tend(grant: Grant, now: datetime) -> bool:
    if grant.expires_at is not None and grant.expires_at <= now:
        lost = _end(grant, "expired")
        Operator.sweep().record("grant.expired", target=grant, team_id=grant.team_id, characters=lost)
        return True
    period = limits.period(grant.team, now).key
    if grant.period_start >= period:
        return False
    unused = _unused(grant)
    if unused == 0:
        _end(grant, "used up")
        return True
    _place(grant, grant.period_start, -unused, _limit(grant.team, grant.user))
    grant.period_start, grant.placed = period, unused
    grant.save(update_fields=["period_start", "placed"])
    _place(grant, period, unused, _limit(grant.team, grant.user))
    return True


def _end(grant: Grant, why: str) -> int:
    unused = _unused(grant)
    if unused:
        _place(grant, grant.period_start, -unused, _limit(grant.team, grant.user), why)
    grant.ended_at = timezone.now()
    grant.save(update_fields=["ended_at"])
    return unused


def _unused(grant: Grant, *, lock: bool = True) -> int:
    """What is left of a grant: the limit is used first, then what was corrected or used of ended grants, then the
    active ones in the order in which they expire. `lock` keeps others from reserving until the transaction ends."""
    counters = UsageCounter.objects.select_for_update() if lock else UsageCounter.objects.all()
    counter = counters.filter(
        team=grant.team_id, user=grant.user_id, api_key=None, period_start=grant.period_start
    ).first()
    if counter is None:
        return grant.placed
    limit = _limit(grant.team, grant.user)
    beyond = 0 if limit is None else max(0, counter.used + counter.reserved - limit)
    active = list(
        Grant.objects.filter(
            team=grant.team_id, user=grant.user_id, period_start=grant.period_start, ended_at=None
        ).order_by(F("expires_at").asc(nulls_last=True), "id")
    )
    consumed = max(0, beyond - max(0, counter.granted - sum(one.placed for one in active)))
    for one in active:
        taken = min(one.placed, consumed)
        consumed -= taken
        if one.pk == grant.pk:
            return one.placed - taken
    return 0


def _place(grant: Grant, period: date, characters: int, limit: int | None, why: str = "") -> None:
    ledger.move_allowance(
        kind=LedgerEntry.Kind.GRANT if characters > 0 else LedgerEntry.Kind.ADJUST,
        team_id=grant.team_id,
        user_id=grant.user_id,
        period_start=period,
        characters=characters,
        limit=limit,
        grant_id=grant.pk,
        note=why or grant.reason,
    )


def _limit(team: Team, user: User | None) -> int | None:
    if user is None:
        return limits.of_team(team).characters_per_month
    membership = Membership.objects.select_related("quota").filter(team=team, user=user).first()
    if membership is None:
        return None
    return limits.of_member(membership).characters_per_month
