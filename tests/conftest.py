"""Fixtures that every folder of tests can use. The servers behind them are started by `tests.embedded`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.db import connection, transaction
from django.test import TransactionTestCase
from django.utils import translation

from accounts.redis import client
from tests import factories

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

#: What takes longest is begun first, so that no process waits for another's last file.
_LONGEST_FIRST = ("tests/live/", "tests/launcher/", "tests/ops/", "tests/gpu_worker/")

# Cheap on purpose: the tests make hundreds of accounts, and argon2's own strength is not theirs to test.
Argon2PasswordHasher.time_cost = 1
Argon2PasswordHasher.memory_cost = 8
Argon2PasswordHasher.parallelism = 1
#: Made by `migrate` from the models, and changed by no test.
_KEPT = ("django_migrations", "django_content_type", "auth_permission")
#: Each table, and whether a trigger of ours forbids to delete from it (BEFORE is 2, DELETE is 8).
_TABLES = """
SELECT quote_ident(relname),
       EXISTS (SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal AND tgtype & 10 = 10)
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL (%s)
"""


@cache
def _tables() -> dict[str, str]:
    """How each table is emptied: `TRUNCATE` makes files anew, so that deleting a few rows is cheaper."""
    with connection.cursor() as cursor:
        cursor.execute(_TABLES, [list(_KEPT)])
        return {
            name: f"{'TRUNCATE' if guarded else 'DELETE FROM'} {name}" for name, guarded in cursor.fetchall()
        }


def _empty_tables(_case: TransactionTestCase) -> None:
    """What `flush` does after a test whose transactions were real, for a tenth of its price: only what has rows is
    emptied, and what follows from the models is not made anew."""
    tables = _tables()
    with transaction.atomic(), connection.cursor() as cursor:
        has_rows = "SELECT '{0}' WHERE EXISTS (SELECT FROM {0})"
        cursor.execute(" UNION ALL ".join(map(has_rows.format, tables)))
        if filled := [tables[name] for (name,) in cursor.fetchall()]:
            # TRUNCATE first: it refuses where rows were deleted in the same transaction.
            cursor.execute("; ".join(sorted(filled, reverse=True)))


TransactionTestCase._fixture_teardown = _empty_tables  # type: ignore[attr-defined]


@pytest.fixture
def alice() -> factories.Person:
    """The owner of a team."""
    return factories.owner("Alice")


@pytest.fixture
def charlie() -> factories.Person:
    """The owner of another team: a stranger to Alice's."""
    return factories.owner("Charlie")


@pytest.fixture
def no_rates() -> None:
    """Nobody has asked for anything in this minute."""
    client().flushdb()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A request that a test makes in another language leaves it behind; every test begins in English."""
    with translation.override("en"):
        yield


@pytest.hookimpl(trylast=True)  # pytest-django sorts too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which pytest-xdist hands out the files."""
    items.sort(key=lambda item: [not item.nodeid.startswith(folder) for folder in _LONGEST_FIRST])


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Files go to whichever process is free; those of tests/live to one, since they share a running service."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "tests/live" if nodeid.startswith("tests/live/") else super()._split_scope(nodeid)

    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """What is there by now stays: looking through all of it for rubbish, again and again, finds none."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
