"""Usage by day, month, team, person, key or voice, with what it costs. Reports read the rollup, never requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import InvalidInput
from accounts.models import ApiKey, Team, User
from accounts.services import prices
from synthesis.models import Dimension, Voice

PERMISSION = "synthesis.view_usagerollup"

#: What a report can be grouped by.
GROUPS = {
    "day": gettext_lazy("Day"),
    "month": gettext_lazy("Month"),
    "team": gettext_lazy("Team"),
    "user": gettext_lazy("Person"),
    "key": gettext_lazy("API key"),
    "voice": gettext_lazy("Voice"),
}
#: A report covers at most so many days.
MOST_DAYS = 3_700


@dataclass(frozen=True)
class Query:
    """`first` to `last`, both included, grouped by one of GROUPS; of one team, and of one person, key or voice."""

    first: date
    last: date
    by: str = "day"
    team: UUID | None = None
    #: (dimension, id); only with grouping by day or month.
    subject: tuple[str, UUID] | None = None

    def check(self) -> None:
        """InvalidInput for what cannot be answered."""
        if self.by not in GROUPS:
            raise InvalidInput(
                _("Group by one of: %(all)s.") % {"all": ", ".join(GROUPS)}, code="group_unknown", param="by"
            )
        if self.last < self.first:
            raise InvalidInput(_("The first day lies after the last."), code="range_invalid", param="from")
        if (self.last - self.first).days > MOST_DAYS:
            raise InvalidInput(_("A report covers ten years at most."), code="range_too_long", param="from")
        if self.last.year == MAXYEAR:  # there is no day after it to count up to
            raise InvalidInput(
                _("The last day lies too far in the future."), code="range_invalid", param="to"
            )
        if self.subject and self.by not in ("day", "month"):
            raise InvalidInput(
                _("The use of one person, key or voice can be shown by day or month."),
                code="group_unknown",
                param="by",
            )


@dataclass
class Numbers:
    """What was used. Seconds of sound and of the engine; `cost` in the currency of the price table."""

    requests: int = 0
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    characters: int = 0
    audio_seconds: float = 0.0
    engine_seconds: float = 0.0
    wait_seconds: float = 0.0
    cost: Decimal = Decimal(0)

    def add(self, other: Numbers) -> None:
        """Add up."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def failed_share(self) -> float:
        """Of all that ended, 0 to 1."""
        return self.failed / self.requests if self.requests else 0.0

    @property
    def mean_wait(self) -> float:
        """Seconds before a worker took a request."""
        return self.wait_seconds / self.requests if self.requests else 0.0

    @property
    def real_time_factor(self) -> float | None:
        """Engine seconds for a second of sound."""
        return self.engine_seconds / self.audio_seconds if self.audio_seconds else None


@dataclass
class Row(Numbers):
    """One line. `start` when grouped by time, ids otherwise; names are filled in where they are still known."""

    start: date | None = None
    team_id: UUID | None = None
    subject_id: UUID | None = None
    team: str = ""
    name: str = ""


@dataclass
class Report:
    """The lines (the most characters first, or by time), and the sum of all lines, also of those beyond a limit."""

    query: Query
    rows: list[Row] = field(default_factory=list)
    total: Numbers = field(default_factory=Numbers)
    count: int = 0


def report(query: Query, *, limit: int | None = None) -> Report:
    """Answer a query; `limit` keeps so many lines."""
    query.check()
    result = Report(query)
    for row in _read(query):
        result.count += 1
        result.total.add(_numbers(row))
        if limit is None or len(result.rows) < limit:
            result.rows.append(row)
    name(result.rows)
    return result


def stream(query: Query, *, chunk: int = 1_000) -> Iterator[Row]:
    """The lines, named, a chunk at a time: for exports of any length."""
    query.check()
    pending: list[Row] = []
    for row in _read(query):
        pending.append(row)
        if len(pending) >= chunk:
            name(pending)
            yield from pending
            pending = []
    name(pending)
    yield from pending


#: What an export has of each line.
COLUMNS = (
    "day",
    "team",
    "name",
    "requests",
    "succeeded",
    "failed",
    "canceled",
    "characters",
    "audio_seconds",
    "engine_seconds",
    "mean_wait_seconds",
    "cost",
    "team_id",
    "subject_id",
)


def export_rows(query: Query) -> Iterator[tuple[Any, ...]]:
    """All lines, as COLUMNS."""
    for row in stream(query):
        yield (
            row.start,
            row.team,
            row.name,
            row.requests,
            row.succeeded,
            row.failed,
            row.canceled,
            row.characters,
            round(row.audio_seconds, 3),
            round(row.engine_seconds, 3),
            round(row.mean_wait, 3),
            row.cost,
            row.team_id,
            row.subject_id,
        )


def _numbers(row: Row) -> Numbers:
    return Numbers(**{field: getattr(row, field) for field in Numbers.__dataclass_fields__})


# --- The statement ----------------------------------------------------------------------------------------------

_MEASURES = (
    "requests",
    "succeeded",
    "failed",
    "canceled",
    "characters",
    "audio_seconds",
    "engine_seconds",
    "wait_seconds",
)
_STATEMENT = """
WITH span(grain, low, high, i) AS (VALUES {spans}),
price(i, plan_id, per_character, per_audio, per_engine) AS (VALUES {prices}),
used AS (
    SELECT {key} AS start, {team} AS team_id, {subject} AS subject_id, s.i, t.plan_id, {sums}
    FROM span s
    JOIN synthesis_usagerollup u
        ON u.grain = s.grain AND u.dimension = %(dimension)s AND u.start >= s.low AND u.start <= s.high {filters}
    LEFT JOIN accounts_team t ON t.id = u.team_id
    GROUP BY 1, 2, 3, 4, 5
)
SELECT start, team_id, subject_id, {again},
       sum(characters * coalesce(own.per_character, every.per_character, 0)
         + audio_seconds * coalesce(own.per_audio, every.per_audio, 0)
         + engine_seconds * coalesce(own.per_engine, every.per_engine, 0))::numeric(20, 6) AS cost
FROM used
LEFT JOIN price own ON own.i = used.i AND own.plan_id = used.plan_id
LEFT JOIN price every ON every.i = used.i AND every.plan_id IS NULL
GROUP BY 1, 2, 3
ORDER BY {order}
"""


def _read(query: Query) -> Iterator[Row]:
    cuts = prices.intervals(query.first, query.last)
    by_time = query.by in ("day", "month")
    if query.subject:
        dimension = query.subject[0]
    elif not by_time:
        dimension = query.by
    # Without prices of single plans the sum of all teams is enough.
    elif query.team or any(plan is not None for cut in cuts for plan in cut.rates):
        dimension = Dimension.TEAM
    else:
        dimension = Dimension.SERVICE
    values: dict[str, Any] = {"dimension": dimension}
    filters = ""
    if query.team:
        filters += " AND u.team_id = %(team)s"
        values["team"] = query.team
    if query.subject:
        filters += " AND u.subject_id = %(subject)s"
        values["subject"] = query.subject[1]
    statement = _STATEMENT.format(
        spans=_spans(cuts, days_only=query.by == "day"),
        prices=_prices(cuts),
        key={"day": "u.start", "month": "date_trunc('month', u.start)::date"}.get(query.by, "NULL::date"),
        team="u.team_id" if query.by in ("team", "user", "key") else "NULL::uuid",
        subject="u.subject_id" if query.by in ("user", "key", "voice") else "NULL::uuid",
        sums=", ".join(f"sum(u.{name}) AS {name}" for name in _MEASURES),
        again=", ".join(f"sum({name})" for name in _MEASURES),
        filters=filters,
        order="start" if by_time else f"{4 + _MEASURES.index('characters')} DESC, team_id, subject_id",
    )
    # A cursor of the database: an export of many people's use does not come into memory as a whole.
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while rows := cursor.fetchmany(2_000):
            for start, team, subject, *numbers, cost in rows:
                measured = dict(zip(_MEASURES, numbers, strict=True))
                for name in _MEASURES[:5]:
                    measured[name] = int(measured[name])
                yield Row(start=start, team_id=team, subject_id=subject, cost=cost or Decimal(0), **measured)


def _spans(cuts: Sequence[prices.Interval], *, days_only: bool) -> str:
    """Whole months where they fit into an interval of prices, single days for the rest, as SQL values."""
    parts = []
    for index, cut in enumerate(cuts):
        pieces = [("d", cut.first, cut.last)] if days_only else _months(cut.first, cut.last)
        parts += [f"('{grain}', date '{low}', date '{high}', {index})" for grain, low, high in pieces]
    return ", ".join(parts)


def _months(first: date, last: date) -> list[tuple[str, date, date]]:
    start = first if first.day == 1 else _next_month(first)
    following = last + timedelta(days=1)
    end = following.replace(day=1)
    if start >= end:  # no whole month lies within
        return [("d", first, last)]
    pieces = [("m", start, end - timedelta(days=1))]
    if first < start:
        pieces.append(("d", first, start - timedelta(days=1)))
    if end <= last:
        pieces.append(("d", end, last))
    return pieces


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def _prices(cuts: Sequence[prices.Interval]) -> str:
    """Rates per character and per second, as SQL values; a row of nothing keeps the list from being empty."""
    rows = ["(-1, NULL::uuid, 0::numeric, 0::numeric, 0::numeric)"]
    for index, cut in enumerate(cuts):
        for plan, rates in cut.rates.items():
            who = f"'{plan}'::uuid" if plan else "NULL::uuid"
            per_audio, per_engine = f"{rates.per_audio_hour} / 3600.0", f"{rates.per_engine_hour} / 3600.0"
            rows.append(f"({index}, {who}, {rates.per_million_characters} / 1e6, {per_audio}, {per_engine})")
    return ", ".join(rows)


# --- Names ------------------------------------------------------------------------------------------------------


def name(rows: Sequence[Row]) -> None:
    """Fill in what the ids are called; empty for what was deleted."""
    teams = dict(
        Team.objects.filter(pk__in={row.team_id for row in rows if row.team_id}).values_list("pk", "name")
    )
    subjects = {row.subject_id for row in rows if row.subject_id}
    names: dict[UUID, str] = {}
    if subjects:
        names |= dict(User.objects.filter(pk__in=subjects).values_list("pk", "email"))
        names |= {key.pk: str(key) for key in ApiKey.objects.filter(pk__in=subjects)}
        names |= dict(Voice.objects.filter(pk__in=subjects).values_list("pk", "name"))
    for row in rows:
        row.team = teams.get(row.team_id, "") if row.team_id else ""
        if row.subject_id:
            row.name = names.get(row.subject_id, "")
        else:
            row.name = row.team
