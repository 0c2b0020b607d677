"""Migrations that the version before survives: they run first, and its processes work on meanwhile."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django_migration_linter import MigrationLinter

from tests.ops import tools

OURS = ("accounts", "synthesis")
#: Up to here nothing was in use: whatever these do, no version before them runs.
FIRST = {"accounts": "0001_initial", "synthesis": "0001_initial"}
#: What the linter warns about and why it is meant, by migration.
MEANT: dict[tuple[str, str], str] = {}


def names():
    loader = MigrationLoader(None)
    return sorted((app, name) for app, name in loader.disk_migrations if app in OURS and name > FIRST[app])


# Not in a transaction: indexes that are made concurrently cannot even be shown in one.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("app", "name"), names(), ids=lambda value: value)
def test_the_version_before_works_on(app, name):
    linter = MigrationLinter(
        str(tools.ROOT),
        database="default",
        no_cache=True,
        ignore_name_contains=None,
        quiet=["ok", "ignore", "warning"],
    )
    migration = linter.migration_loader.disk_migrations[app, name]
    linter.lint_migration(migration)
    assert (app, name) in MEANT or linter.nb_erroneous == 0


@pytest.mark.django_db
def test_the_linter_would_notice(monkeypatch):
    """A column that may not be null and has no database default: the version before cannot insert any more."""
    from django.db import migrations, models

    class Unsafe(migrations.Migration):
        dependencies = [names()[-1]]
        operations = [
            migrations.AddField("synthesisrequest", "surprise", models.BooleanField(default=False)),
        ]

    linter = MigrationLinter(
        str(tools.ROOT), database="default", no_cache=True, quiet=["ok", "ignore", "warning", "error"]
    )
    unsafe = Unsafe("9999_unsafe", "synthesis")
    monkeypatch.setitem(linter.migration_loader.disk_migrations, ("synthesis", "9999_unsafe"), unsafe)
    monkeypatch.setattr(linter, "get_migration_hash", lambda app, name: "")
    monkeypatch.setattr(
        linter,
        "get_sql",
        lambda app, name: [
            "ALTER TABLE synthesis_synthesisrequest ADD COLUMN surprise boolean DEFAULT false NOT NULL;",
            "ALTER TABLE synthesis_synthesisrequest ALTER COLUMN surprise DROP DEFAULT;",
        ],
    )
    linter.lint_migration(unsafe)
    assert linter.nb_erroneous == 1


@pytest.mark.django_db
def test_the_newest_tables_are_there():
    """Models and database agree: nothing waits for a migration that nobody has written."""
    existing = set(connection.introspection.table_names())
    for app in OURS:
        for model in apps.get_app_config(app).get_models():
            assert model._meta.db_table in existing
