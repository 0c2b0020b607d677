"""Quota: reserve at submission, settle at success, release at failure or cancellation.

The counters and the ledger change together, in the caller's transaction. Each step happens once for a request,
however often it is called: the ledger's unique constraints decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import LimitReached
from accounts.ids import new_id
from accounts.models import LedgerEntry, Team, UsageCounter
from accounts.queries import insert, insertion
from accounts.services import limits

# One statement makes the month's counter when it is missing and takes the characters only when they fit, so that no
# number of simultaneous requests passes the limit. No row back: it does not fit.
_RESERVE = """
INSERT INTO accounts_usagecounter AS counter
    (id, team_id, user_id, api_key_id, period_start, allowance, used, reserved, granted)
SELECT %(id)s, %(team)s, %(user)s, %(key)s, %(period)s,
       -- Constraints are checked before the conflict is noticed: more than the limit must pass them, see below.
       CASE WHEN %(limit)s::bigint IS NOT NULL THEN greatest(%(limit)s, %(n)s) END, 0, %(n)s, 0
WHERE %(limit)s::bigint IS NULL OR %(n)s <= %(limit)s
    -- More than the limit itself: only what was granted, on a row that is there already, can cover it.
    OR %(n)s <= %(limit)s + (
        SELECT granted FROM accounts_usagecounter
        WHERE team_id = %(team)s AND user_id IS NOT DISTINCT FROM %(user)s
          AND api_key_id IS NOT DISTINCT FROM %(key)s AND period_start = %(period)s)
ON CONFLICT (team_id, user_id, api_key_id, period_start) DO UPDATE
    SET reserved = counter.reserved + %(n)s, allowance = %(limit)s + counter.granted
    WHERE %(limit)s::bigint IS NULL OR counter.used + counter.reserved + %(n)s <= %(limit)s + counter.granted
RETURNING reserved
"""


#: Entries that are sent at once.
_ENTRIES = 1_000


def reserve(
    *,
    actor: Actor,
    request_id: UUID,
    characters: int,
    then: str = "",
    values: Mapping[str, Any] | None = None,
) -> tuple[Any, ...] | None:
    """Set `characters` aside for a request on every counter that holds for `actor`: team, person, key.

    The team's counter is locked by it until the caller's transaction ends, and so are this team's submissions. `then`
    is a query, with `values` for its `%(name)s`, that is sent along and answered under this lock: its first row.

    Raises LimitReached (`quota_exceeded`) with what remains; the caller's transaction is rolled back by it.
    """
    return _reserve(actor, {request_id: characters}, "", then, values or {})


def reserve_many(*, actor: Actor, characters: Mapping[UUID, int], note: str = "") -> None:
    """The same for several requests: for all of them or for none. `note` stays in the entries."""
    _reserve(actor, characters, note, "", {})


def _reserve(
    actor: Actor, characters: Mapping[UUID, int], note: str, then: str, more: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    total = sum(characters.values())
    period = limits.period(actor.team)
    # Always in this order, so that two requests cannot wait for each other.
    subjects: list[tuple[UUID | None, UUID | None, int | None]] = [
        (None, None, limits.of_team(actor.team).characters_per_month),
        (actor.user.id, None, limits.of_member(actor.membership).characters_per_month),
    ]
    if actor.api_key:
        subjects.append((None, actor.api_key.id, actor.api_key.characters_per_month))
    statements: list[str] = []
    values: dict[str, Any] = {}
    for number, (user, key, limit) in enumerate(subjects):
        statements.append(_RESERVE.replace(")s", f"{number})s"))
        counter = {
            "id": new_id(),
            "team": actor.team.id,
            "user": user,
            "key": key,
            "period": period.key,
            "limit": limit,
            "n": total,
        }
        values |= {f"{name}{number}": value for name, value in counter.items()}
    entries = [
        LedgerEntry(
            kind=LedgerEntry.Kind.RESERVE,
            team_id=actor.team.id,
            user_id=actor.user.id,
            api_key_id=actor.api_key.id if actor.api_key else None,
            request_id=request_id,
            characters=count,
            period_start=period.key,
            note=note,
        )
        for request_id, count in characters.items()
    ]
    # All in one round trip: others of the team wait from here to the transaction's end.
    written, row_values = insertion(*entries[:_ENTRIES])
    statements += [written, then] if then else [written]
    # Without a savepoint: an error here is the end of the caller's transaction as well.
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        cursor.execute(";".join(statements), {**values, **row_values, **more})
        for _subject in subjects:
            if cursor.fetchone() is None:
                raise exceeded(actor, total)
            cursor.nextset()
        row = cursor.fetchone() if cursor.nextset() else None
        for number in range(_ENTRIES, len(entries), _ENTRIES):
            insert(*entries[number : number + _ENTRIES])
    return row


def exceeded(actor: Actor, required: int) -> LimitReached:
    """The error that tells what remains, what is required and when the quota resets."""
    now = limits.standing(actor)
    return LimitReached(
        _(
            "The quota does not cover this: %(remaining)d characters remain, %(required)d are required. "
            "It resets on %(reset)s."
        )
        % {
            "remaining": now.remaining,
            "required": required,
            "reset": date_format(now.period.end, "DATE_FORMAT"),
        },
        code="quota_exceeded",
        retry_after=max(1, int((now.period.end - timezone.now()).total_seconds())),
        characters_remaining=now.remaining,
        characters_required=required,
        resets_at=now.period.end.isoformat(),
    )


# `greatest` ignores NULL, and no limit must stay none: hence the CASE.
_MOVE_ALLOWANCE = """
INSERT INTO accounts_usagecounter AS counter
    (id, team_id, user_id, api_key_id, period_start, allowance, used, reserved, granted)
VALUES (%(id)s, %(team)s, %(user)s, NULL, %(period)s,
        CASE WHEN %(limit)s::bigint IS NOT NULL THEN greatest(0, %(limit)s + %(n)s) END, 0, 0, %(n)s)
ON CONFLICT (team_id, user_id, api_key_id, period_start) DO UPDATE
    -- What was promised under an earlier, higher limit stays.
    SET granted = counter.granted + %(n)s,
        allowance = CASE WHEN %(limit)s::bigint IS NOT NULL THEN
            greatest(counter.used + counter.reserved, %(limit)s + counter.granted + %(n)s) END
"""


def hold(team: Team) -> None:
    """Keep everybody else from reserving for `team` until the caller's transaction ends, as a reservation does."""
    with connection.cursor() as cursor:
        cursor.execute(
            _MOVE_ALLOWANCE,
            {
                "id": new_id(),
                "team": team.id,
                "user": None,
                "period": limits.period(team).key,
                "limit": limits.of_team(team).characters_per_month,
                "n": 0,
            },
        )


def move_allowance(
    *,
    kind: LedgerEntry.Kind,
    team_id: UUID,
    user_id: UUID | None,
    period_start: date,
    characters: int,
    limit: int | None,
    grant_id: UUID | None = None,
    note: str = "",
) -> LedgerEntry:
    """A `grant` or an `adjust`: `characters` (below zero: fewer) on top of `limit` in one month.

    The counter and the entry, in the caller's transaction.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            _MOVE_ALLOWANCE,
            {
                "id": new_id(),
                "team": team_id,
                "user": user_id,
                "period": period_start,
                "limit": limit,
                "n": characters,
            },
        )
        return LedgerEntry.objects.create(
            kind=kind,
            team_id=team_id,
            user_id=user_id,
            grant_id=grant_id,
            characters=characters,
            period_start=period_start,
            note=note,
        )


def settle(request_id: UUID) -> bool:
    """Turn a reservation into use; False when it was closed before."""
    return _close(request_id, LedgerEntry.Kind.SETTLE)


def release(request_id: UUID) -> bool:
    """Give a reservation back; False when it was closed before."""
    return _close(request_id, LedgerEntry.Kind.RELEASE)


_RELEASE_MANY = """
WITH closed AS (
    INSERT INTO accounts_ledgerentry
        (id, kind, team_id, user_id, api_key_id, request_id, characters, period_start, note, created_at)
    SELECT asked.id, 'release', l.team_id, l.user_id, l.api_key_id, l.request_id, l.characters, l.period_start, '',
           now()
    FROM unnest(%s::uuid[], %s::uuid[]) AS asked (id, request_id)
    JOIN accounts_ledgerentry l ON l.request_id = asked.request_id AND l.kind = 'reserve'
    ON CONFLICT DO NOTHING
    RETURNING team_id, user_id, api_key_id, period_start, characters
)
SELECT team_id, user_id, api_key_id, period_start, sum(characters)::bigint FROM closed GROUP BY 1, 2, 3, 4
"""


def release_many(request_ids: Sequence[UUID]) -> None:
    """`release` of several requests at once; those that were closed before stay as they are."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_RELEASE_MANY, [[new_id() for _id in request_ids], list(request_ids)])
            sums = cursor.fetchall()
        for team, user, key, period, characters in sums:
            given_back = LedgerEntry(
                team_id=team, user_id=user, api_key_id=key, period_start=period, characters=characters
            )
            _move_all(given_back, LedgerEntry.Kind.RELEASE)


def _close(request_id: UUID, kind: LedgerEntry.Kind) -> bool:
    with transaction.atomic():
        reservation = LedgerEntry.objects.get(request_id=request_id, kind=LedgerEntry.Kind.RESERVE)
        # `ignore_conflicts` leaves no trace of whether a row was written, and an error would end the transaction.
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO accounts_ledgerentry
                    (id, kind, team_id, user_id, api_key_id, request_id, characters, period_start, note, created_at)
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s, '', now())
                ON CONFLICT DO NOTHING
                """,
                [
                    new_id(),
                    kind,
                    reservation.team_id,
                    reservation.user_id,
                    reservation.api_key_id,
                    request_id,
                    reservation.characters,
                    reservation.period_start,
                ],
            )
            if cursor.rowcount == 0:
                return False
        _move_all(reservation, kind)
        return True


def _move_all(reservation: LedgerEntry, kind: LedgerEntry.Kind) -> None:
    # The month of the reservation, though another may have begun since.
    _move(reservation, None, None, kind)
    _move(reservation, reservation.user_id, None, kind)
    if reservation.api_key_id:
        _move(reservation, None, reservation.api_key_id, kind)


def _move(reservation: LedgerEntry, user: UUID | None, key: UUID | None, kind: LedgerEntry.Kind) -> None:
    changes = {"reserved": F("reserved") - reservation.characters}
    if kind == LedgerEntry.Kind.SETTLE:
        changes["used"] = F("used") + reservation.characters
    period: date = reservation.period_start
    UsageCounter.objects.filter(team=reservation.team_id, user=user, api_key=key, period_start=period).update(
        **changes
    )
