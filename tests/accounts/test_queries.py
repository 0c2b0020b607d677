"""Statements that are built once, planned once and sent together."""

from __future__ import annotations

import uuid

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry, Membership, Team
from accounts.queries import Compiled, insert, prepared
from accounts.services import audit, keys
from synthesis.services import queue
from tests import factories

pytestmark = pytest.mark.django_db


def _plans(of: str) -> tuple[int, int]:
    """How often this connection used the plan that it keeps for statements with `of`, and how often it made one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(generic_plans), 0), coalesce(sum(custom_plans), 0) FROM pg_prepared_statements"
            " WHERE statement LIKE %s",
            [f"%{of}%"],
        )
        kept, made = cursor.fetchone()
    return int(kept), int(made)


class TestCompiled:
    """Queries of the ORM with other values each time."""

    MEMBER = Compiled(
        lambda team, **who: Membership.objects.select_related("team__plan", "quota").filter(team=team, **who)
    )

    def test_rows_are_those_that_the_orm_finds(self):
        alice, bob = factories.owner("Alice"), factories.owner("Bob")
        for person in (alice, bob):
            found = self.MEMBER.first(team=person.actor.team.id)
            assert found == Membership.objects.get(team=person.actor.team)
            with CaptureQueriesContext(connection) as queries:
                assert found.team.plan == person.actor.team.plan
                assert getattr(found, "quota", None) is None
            assert not queries.captured_queries

    def test_there_may_be_none(self):
        alice, bob = factories.owner("Alice"), factories.owner("Bob")
        assert self.MEMBER.first(team=uuid.uuid4()) is None
        # Names make the query: this one asks for both.
        assert self.MEMBER.first(team=alice.actor.team.id, user=bob.user.id) is None
        assert self.MEMBER.first(team=alice.actor.team.id, user=alice.user.id) is not None

    def test_a_value_that_the_query_does_not_take_as_it_is_is_a_mistake_of_ours(self):
        shouted = Compiled(lambda name: Team.objects.filter(name=f"{name}!"))
        with pytest.raises(LookupError, match="name"):
            shouted.first(name="Alice")


@pytest.mark.django_db(transaction=True)
class TestPrepared:
    """Statements whose plan is kept."""

    def test_a_key_is_planned_once(self):
        alice = factories.owner("Alice")
        connection.close()  # whatever was prepared before
        for _time in range(9):
            keys.authenticate(alice.secret, ip="127.0.0.1")
        # PostgreSQL plans five times before it believes that the plan need not know the values.
        assert _plans('"accounts_apikey"."prefix" =') == (4, 5)

    def test_nothing_else_is_prepared(self):
        connection.close()
        for _time in range(8):
            assert not Team.objects.filter(name="nobody").exists()
        assert _plans("accounts_team") == (0, 0)

    def test_a_migration_that_changes_a_column_stops_nobody(self):
        alice = factories.owner("Alice")
        keys.authenticate(alice.secret, ip="127.0.0.1")
        elsewhere = connection.copy()
        alter = "ALTER TABLE accounts_apikey ALTER COLUMN name TYPE {}"
        try:
            with elsewhere.cursor() as cursor:
                cursor.execute(alter.format("text"))
            assert keys.authenticate(alice.secret, ip="127.0.0.1").user == alice.user
            assert connection.close_at == 0
        finally:
            with elsewhere.cursor() as cursor:
                cursor.execute(alter.format("varchar(100)"))
            elsewhere.close()
            connection.close()

    def test_nor_within_a_transaction_whose_results_are_cast(self):
        alice = factories.owner("Alice")
        request = factories.submit(alice)
        before = queue.outlook(request)
        elsewhere = connection.copy()
        try:
            for kind in ("bigint", "integer"):
                with elsewhere.cursor() as cursor:
                    cursor.execute(
                        f"ALTER TABLE synthesis_synthesisrequest ALTER COLUMN characters TYPE {kind}"
                    )
                with transaction.atomic():
                    assert queue.outlook(request) == before
        finally:
            elsewhere.close()
            connection.close()

    def test_a_database_that_was_restarted_is_noticed(self):
        alice = factories.owner("Alice")
        keys.authenticate(alice.secret, ip="127.0.0.1")
        pid = connection.connection.info.backend_pid
        elsewhere = connection.copy()
        with elsewhere.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        elsewhere.close()
        connection.health_check_enabled, connection.health_check_done = True, False  # as a request begins
        try:
            assert keys.authenticate(alice.secret, ip="127.0.0.1").user == alice.user
        finally:
            connection.health_check_enabled = False

    def test_errors_are_djangos(self):
        with pytest.raises(IntegrityError), prepared() as cursor:
            cursor.execute("INSERT INTO accounts_team (id) VALUES (%s)", [uuid.uuid4()])


class TestInsert:
    """Rows of several models in one round trip."""

    def test_rows_are_as_the_orm_would_have_written_them(self):
        alice = factories.owner("Alice")
        entries = [
            audit.record("tested", save=False, actor=alice.actor, number=number, text="“%s” 你好")
            for number in range(3)
        ]
        team = Team(name="100 %s", plan=alice.actor.team.plan)
        with CaptureQueriesContext(connection) as queries:
            insert(*entries, team)
        assert len(queries) == 1
        for made in (*entries, team):
            found = type(made).objects.get(pk=made.pk)
            for field in made._meta.concrete_fields:
                assert getattr(found, field.attname) == getattr(made, field.attname)
        team.name = "Another"
        team.save()  # an UPDATE: it is there
        assert Team.objects.filter(name="Another").count() == 1

    def test_all_or_nothing(self):
        alice = factories.owner("Alice")
        entry = audit.record("tested", save=False, actor=alice.actor)
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(entry, Team(id=alice.actor.team.id, name="Twice", plan=alice.actor.team.plan))
        assert not AuditEntry.objects.filter(pk=entry.pk).exists()
