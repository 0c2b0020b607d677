"""For the statements of each request of the API: SQL that is built once, planned once, and sent in few round trips.

Django's ORM builds a statement anew at each call, which takes it longer than PostgreSQL takes to answer; and a
statement with its values written into it is planned anew. Neither matters on a page; both are most of a submission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from itertools import groupby
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, Model, QuerySet
from django.db.models.query import ModelIterable

M = TypeVar("M", bound=Model)


class _Prepared(psycopg.Cursor[Any]):
    """Has the server keep each statement, with its plan, for as long as the connection lasts."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> _Prepared:
        try:
            return super().execute(query, params, **options | {"prepare": True})
        except psycopg.errors.FeatureNotSupported:
            # “cached plan must not change result type”: a migration has changed the type of a column since.
            if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                raise
            connection.close_at = 0  # Django closes it when this request is done
            return super().execute(query, params, **options | {"prepare": False})


@contextmanager
def prepared() -> Iterator[CursorWrapper]:
    """A cursor as Django's (errors, logs and counts of queries), whose statements are prepared.

    For statements whose best plan does not depend on their values: after a few times PostgreSQL keeps it for as long
    as the connection lasts. Within a transaction only for those whose results are cast to their types: after a
    migration has changed that of a column, others fail once, which is mended by itself only outside of one.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with connection._prepare_cursor(_Prepared(connection.connection)) as cursor:  # type: ignore[attr-defined]
        yield cursor


class Compiled(Generic[M]):
    """A query of the ORM that is built once in a process, by `build`, and then only given other values.

    `build` is called once for each choice of names, with a stand-in for each value, a UUID or a text, and must put it
    into the query as it is. Queries with `prefetch_related` are not for this.
    """

    def __init__(self, build: Callable[..., QuerySet[M]]) -> None:
        self._build = build
        self._made: dict[tuple[str, ...], tuple[Any, str, tuple[Any, ...]]] = {}

    def first(self, **values: UUID | str) -> M | None:
        """The first row, or None."""
        compiler, sql, places = self._made.get(tuple(values)) or self._make(values)
        with connection.cursor() if connection.in_atomic_block else prepared() as cursor:
            cursor.execute(
                sql, [values[place.name] if isinstance(place, _Place) else place for place in places]
            )
            rows = cursor.fetchall()
        compiler = copy(compiler)
        compiler.connection = connections[DEFAULT_DB_ALIAS]  # this thread's
        compiler.execute_sql = lambda **_options: [rows]
        return next(iter(ModelIterable(_Rows(compiler))), None)  # type: ignore[arg-type]

    def _make(self, values: dict[str, UUID | str]) -> tuple[Any, str, tuple[Any, ...]]:
        stand_ins = {
            name: uuid4() if isinstance(value, UUID) else f"stand-in {uuid4()}"
            for name, value in values.items()
        }
        compiler = self._build(**stand_ins)[:1].query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        names = {stand_in: name for name, stand_in in stand_ins.items()}
        places = tuple(
            _Place(names[param]) if isinstance(param, UUID | str) and param in names else param
            for param in params
        )
        if missing := set(values) - {place.name for place in places if isinstance(place, _Place)}:
            raise LookupError(f"not in the query as given: {', '.join(sorted(missing))}")
        self._made[tuple(values)] = made = compiler, sql, places
        return made


class _Place:
    """Where a value goes."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Rows:
    """What Django's iterator asks of a queryset."""

    db = DEFAULT_DB_ALIAS
    _known_related_objects: dict[Any, Any] = {}

    def __init__(self, compiler: Any) -> None:
        self.query = self
        self._compiler = compiler

    def get_compiler(self, using: str) -> Any:
        return self._compiler


def insert(*rows: Model) -> None:
    """Write new rows of any models in one round trip, in this order.

    As `save(force_insert=True)` of each would, without signals. What their tables refuse is an IntegrityError.
    """
    statement, values = insertion(*rows)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def insertion(*rows: Model) -> tuple[str, dict[str, Any]]:
    """The statements of `insert` in one text, and their values, for who has others to send with them."""
    statements = []
    values: dict[str, Any] = {}
    for model, group in groupby(rows, key=type):
        head, fields = _head(model)
        tuples = []
        for row in group:
            names = []
            for field in fields:
                name = f"value{len(values)}"
                names.append(f"%({name})s")
                values[name] = field.get_db_prep_save(field.pre_save(row, True), connection)
            tuples.append(f"({', '.join(names)})")
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
        statements.append(f"{head} VALUES {', '.join(tuples)}")
    return ";".join(statements), values


@cache
def _head(model: type[Model]) -> tuple[str, tuple[Field[Any, Any], ...]]:
    fields = tuple(model._meta.local_concrete_fields)
    columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    return f"INSERT INTO {connection.ops.quote_name(model._meta.db_table)} ({columns})", fields
