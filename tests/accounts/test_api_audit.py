"""`/v1/audit`: who did what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.services import audit, keys
from tests import factories

pytestmark = pytest.mark.django_db

URL = "/v1/audit"


def _actions(client, person, **query):
    response = client.get(URL, query, headers=person.headers)
    assert response.status_code == 200, response.content
    return [entry["action"] for entry in response.json()["results"]]


def test_the_newest_first(client, alice):
    audit.record("voice.created", actor=alice.by_key, target=alice.user, name="Mine")
    response = client.get(URL, headers=alice.headers)
    entry = response.json()["results"][0]
    row = AuditEntry.objects.get(action="voice.created")
    assert entry == {
        "id": str(row.id),
        "action": "voice.created",
        "actor": "alice@example.org",
        "actor_id": str(alice.user.id),
        "api_key_id": str(alice.by_key.api_key.id),
        "target_type": "user",
        "target_id": str(alice.user.id),
        "data": {"name": "Mine"},
        "created_at": entry["created_at"],
    }
    assert _actions(client, alice) == ["voice.created", "key.created", "team.created"]


def test_filters(client, alice):
    bob = factories.colleague(alice, "Bob")
    audit.record("voice.created", actor=bob.actor, target=bob.user)
    assert _actions(client, alice, action="voice.created") == ["voice.created"]
    assert _actions(client, alice, actor="BOB@example.org") == ["voice.created", "key.created"]
    assert _actions(client, alice, target_id=str(bob.user.id)) == ["voice.created"]
    tomorrow = (timezone.now() + timedelta(days=1)).isoformat()
    assert _actions(client, alice, since=tomorrow) == []
    assert len(_actions(client, alice, until=tomorrow)) == 4


def test_pages_stay_right_while_entries_are_added(client, alice):
    for number in range(4):
        audit.record(f"test.{number}", actor=alice.actor)
    first = client.get(URL, {"limit": 3}, headers=alice.headers).json()
    audit.record("test.late", actor=alice.actor)
    second = client.get(first["next"], headers=alice.headers).json()
    actions = [entry["action"] for entry in first["results"] + second["results"]]
    assert actions == ["test.3", "test.2", "test.1", "test.0", "key.created", "team.created"]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"since": "yesterday"}, "since"),
        ({"action": "x" * 65}, "action"),
        ({"actor": "\x00"}, "actor"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "cD1ub25zZW5zZQ=="}, "cursor"),
    ],
)
def test_a_wrong_query(client, alice, query, param):
    response = client.get(URL, query, headers=alice.headers)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_who_may(client, alice):
    charlie, bob = factories.owner("Charlie"), factories.colleague(alice, "Bob")
    audit.record("voice.created", actor=alice.actor)
    assert "voice.created" not in _actions(client, charlie)
    assert client.get(URL).status_code == 401
    assert client.post(URL, headers=alice.headers).status_code == 405
    # A member is no admin.
    assert client.get(URL, headers=bob.headers).json()["error"]["code"] == "permission_denied"
    _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
    response = client.get(URL, headers={"authorization": f"Bearer {secret}"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "insufficient_scope")
