"""Whose turn it is: the rows of `Turn`, kept up with what triggers note, and the claim that reads them.

A claim over all that waits would walk every team that has something queued. Instead each team's turn is worked out
when something of it changes, and a claim looks at as many rows as it takes requests. What is only noted (`QueueChange`)
never makes a submission wait; the notes are read by whoever holds the claim's lock, so that a turn has one writer.

The claim itself is a function in the database (migration 0018): fair share of the characters between teams by weight,
among equals whoever was served longest ago, then a team's own priority and age; within the limits of team, person and
key. A dozen small looks by index, in one round trip.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from accounts.ids import new_id

#: `pg_advisory_xact_lock` of the claim.
CLAIM_LOCK = 0x43484F52
#: Notes read at once: some 10 ms of work when each is another team's.
NOTES = 100
#: The sweep reads so many times as many in one go at most.
_ROUNDS = 1000


def take(*, worker: str, engine: str, pool: str, limit: int) -> list[UUID]:
    """Mark up to `limit` queued requests as running for `worker`, each with its attempt; their ids.

    One statement, and so a transaction by itself.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chorus_claim(%s, %s, %s, %s::uuid[], %s, %s)",
            [
                worker,
                engine,
                pool,
                [new_id() for _attempt in range(limit)],
                settings.CHORUS_LEASE_SECONDS,
                NOTES,
            ],
        )
        return [row[0] for row in cursor.fetchall()]


def tidy() -> int:
    """For the sweep: read the notes that no claim has read, while nobody works; how many."""
    count = 0
    for _round in range(_ROUNDS):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM synthesis_queuechange)")
            if not cursor.fetchone()[0]:
                break
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
            cursor.execute("SELECT chorus_tidy(%s)", [NOTES])
            count += cursor.fetchone()[0]
    return count
