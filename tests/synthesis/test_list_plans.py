"""Lists read the rows of their page, however many there are: the plans of the database say so."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks import rows
from tests import factories

pytestmark = pytest.mark.django_db


def _plans(client, path, headers):
    """The plans of what the page reads of synthesis requests."""
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.content
    table = 'FROM "synthesis_synthesisrequest"'
    found = [one["sql"] for one in captured.captured_queries if table in one["sql"] and "LIMIT" in one["sql"]]
    assert found, path
    with connection.cursor() as cursor:
        for sql in found:
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS) {sql}")
            yield "\n".join(row[0] for row in cursor.fetchall())


def _pages(client, path, headers, number):
    """The address of a later page, from one cursor to the next."""
    for _page in range(number - 1):
        path = client.get(path, headers=headers).json()["next"]
    return path


_OUTPUTS = """
INSERT INTO synthesis_output
    (request_id, key, content_type, bytes, sha256, seconds, sample_rate, attempt, created_at, expires_at)
SELECT id, id::text, 'audio/mpeg', 1, '', 1, 24000, 1, now(), now() + interval '1 day' FROM synthesis_synthesisrequest
"""


@pytest.fixture
def alice():
    """Somebody whose team has four thousand finished requests, beside another team's four thousand."""
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    factories.preset()
    with connection.cursor() as cursor:
        for person in (alice, charlie):
            team = [str(person.actor.team.pk)]
            rows.requests(cursor, 4_000, teams=team, engine="hibari", status="succeeded")
        cursor.execute(_OUTPUTS)
        cursor.execute("ANALYZE synthesis_synthesisrequest, synthesis_output")
    return alice


@pytest.mark.parametrize("page", [1, 30])
@pytest.mark.parametrize("path", ["/v1/syntheses?limit=50", "/v1/syntheses?limit=50&status=succeeded"])
def test_a_page_of_syntheses(client, alice, path, page):
    for plan in _plans(client, _pages(client, path, alice.headers, page), alice.headers):
        assert "Seq Scan on synthesis_synthesisrequest" not in plan, plan
        assert "Sort" not in plan, plan
        assert "request_history" in plan, plan
        assert "rows=4000.00" not in plan, plan  # what was read, not what was guessed


def test_elevenlabs_history(client, alice):
    for plan in _plans(client, "/v1/history?page_size=50", {"xi-api-key": alice.secret}):
        assert "Seq Scan on synthesis_synthesisrequest" not in plan, plan
        assert "Sort" not in plan, plan


def test_the_page_of_the_history(client, alice):
    client.force_login(alice.user)
    for plan in _plans(client, "/history/", {}):
        assert "Seq Scan on synthesis_synthesisrequest" not in plan, plan
        assert "Sort" not in plan, plan
