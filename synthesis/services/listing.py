"""Ledger entries and requests of a range, row by row, for exports of any length.

Read in pages by key, not by a cursor of the database: a cursor outside of a transaction would first copy everything
aside, and one inside would hold a snapshot for as long as a slow client downloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from accounts.ids import first_id
from accounts.models import LedgerEntry
from accounts.names import emails, team_names
from synthesis.models import SynthesisRequest

_PAGE = 2_000
#: Ids begin with the time; clocks of several machines differ by less.
_SLACK = timedelta(minutes=10)

LEDGER_COLUMNS = (
    "when",
    "kind",
    "characters",
    "team",
    "person",
    "team_id",
    "user_id",
    "api_key_id",
    "request_id",
    "grant_id",
    "month",
    "note",
)
REQUEST_COLUMNS = (
    "submitted",
    "started",
    "ended",
    "status",
    "team",
    "person",
    "voice_id",
    "api_key_id",
    "engine",
    "language",
    "characters",
    "audio_seconds",
    "engine_seconds",
    "attempts",
    "error",
    "request_id",
)


def ledger(first: date, last: date, team: UUID | None = None) -> Iterator[tuple[Any, ...]]:
    """Entries of these days (UTC, both included), the oldest first, as LEDGER_COLUMNS."""
    entries = LedgerEntry.objects.all() if team is None else LedgerEntry.objects.filter(team_id=team)
    for page in _pages(entries, first, last):
        teams, people = team_names(one.team_id for one in page), emails(one.user_id for one in page)
        for one in page:
            yield (
                one.created_at,
                one.kind,
                one.characters,
                teams.get(one.team_id, ""),
                people.get(one.user_id, "") if one.user_id else "",
                one.team_id,
                one.user_id,
                one.api_key_id,
                one.request_id,
                one.grant_id,
                one.period_start,
                one.note,
            )


def requests(first: date, last: date, team: UUID | None = None) -> Iterator[tuple[Any, ...]]:
    """Requests submitted on these days (UTC, both included), the oldest first, as REQUEST_COLUMNS; without texts."""
    found = SynthesisRequest.objects.defer("text", "instruction", "title")
    if team is not None:
        found = found.filter(team=team)
    for page in _pages(found, first, last):
        teams, people = team_names(one.team_id for one in page), emails(one.user_id for one in page)
        for one in page:
            yield (
                one.created_at,
                one.started_at,
                one.completed_at,
                one.status,
                teams.get(one.team_id, ""),
                people.get(one.user_id, ""),
                one.voice_id,
                one.api_key_id,
                one.engine,
                one.language,
                one.characters,
                one.audio_seconds,
                one.engine_seconds,
                one.attempt,
                one.error_code,
                one.pk,
            )


def _pages(rows: Any, first: date, last: date) -> Iterator[list[Any]]:
    start = datetime.combine(first, datetime.min.time(), UTC)
    end = datetime.combine(last + timedelta(days=1), datetime.min.time(), UTC)
    rows = rows.filter(created_at__gte=start, created_at__lt=end, pk__lt=first_id(end + _SLACK)).order_by(
        "pk"
    )
    after = first_id(start - _SLACK)
    while page := list(rows.filter(pk__gt=after)[:_PAGE]):
        yield page
        after = page[-1].pk
