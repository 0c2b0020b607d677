"""`/v1/usage`: what was used, by day, month, person, key, voice or model."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.services import keys
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch, rollup, submission
from tests import factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db

URL = "/v1/usage"


@pytest.fixture
def bob(alice):
    return factories.colleague(alice, "Bob")


@pytest.fixture
def used(alice, bob, charlie):
    finished.succeed(factories.submit(alice, "Ten chars."))
    finished.succeed(factories.submit(bob, "Twenty characters ok"))
    finished.fail(factories.submit(bob, "Not charged."))
    dispatch.cancel(factories.submit(bob, "Nor this.").id)
    finished.succeed(factories.submit(charlie, "Somebody else's text."))
    factories.submit(alice, "Not ended.")
    rollup.roll_up()


def _rows(client, person, **query):
    response = client.get(URL, query, headers=person.headers)
    assert response.status_code == 200, response.content
    return response.json()["results"]


def test_by_day(client, alice, used):
    today = timezone.now().date()
    body = client.get(URL, headers=alice.headers).json()
    assert (body["by"], body["first"], body["last"]) == ("day", f"{today:%Y-%m}-01", str(today))
    (row,) = body["results"]
    assert row == {
        "group": "day",
        "id": str(today),
        "name": str(today),
        "requests": 4,
        "succeeded": 2,
        "failed": 1,
        "canceled": 1,
        "characters": 30,
        "audio_seconds": row["audio_seconds"],
        "engine_seconds": row["engine_seconds"],
    }


def test_by_month(client, alice, used):
    today = timezone.now().date()
    (row,) = _rows(client, alice, by="month", first=f"{today.year}-01-01", last=f"{today.year}-12-31")
    assert (row["id"], row["characters"]) == (f"{today:%Y-%m}-01", 30)


def test_by_voice_and_model(client, alice, used):
    (row,) = _rows(client, alice, by="voice")
    assert (row["id"], row["name"], row["characters"]) == (str(factories.preset().id), "Hibari", 30)
    (row,) = _rows(client, alice, by="model")
    assert (row["id"], row["requests"], row["characters"], row["failed"]) == ("hibari", 4, 30, 1)


def test_by_person_and_key(client, alice, bob, used):
    rows = _rows(client, alice, by="user")
    assert [(row["name"], row["characters"]) for row in rows] == [
        ("bob@example.org", 20),
        ("alice@example.org", 10),
    ]
    rows = _rows(client, alice, by="key")
    assert {row["id"]: row["characters"] for row in rows} == {
        str(alice.by_key.api_key.id): 10,
        str(bob.by_key.api_key.id): 20,
    }


def test_what_was_spoken_without_a_key_and_seconds_to_the_millisecond(client, alice, bob, used):
    finished.succeed(SynthesisRequest.objects.get(text="Not ended."))
    planned = submission.plan(actor=alice.actor, voice=str(factories.preset().id), text="By page.")
    finished.succeed(submission.submit(actor=alice.actor, planned=planned))
    rollup.roll_up()
    rows = _rows(client, alice, by="key")
    assert [(row["id"], row["requests"], row["characters"]) for row in rows[-1:]] == [(None, 1, 8)]
    assert sum(row["characters"] for row in rows) == _rows(client, alice)[0]["characters"]
    assert all(row["audio_seconds"] == round(row["audio_seconds"], 3) for row in rows)
    assert None not in [row["id"] for row in _rows(client, bob, by="key")]


def test_who_does_not_manage_people_sees_their_own(client, bob, used):
    assert [row["name"] for row in _rows(client, bob, by="user")] == ["bob@example.org"]
    assert [row["id"] for row in _rows(client, bob, by="key")] == [str(bob.by_key.api_key.id)]
    assert _rows(client, bob)[0]["characters"] == 30


def test_csv(client, alice, used):
    response = client.get(URL, {"by": "user", "format": "csv"}, headers=alice.headers)
    assert response.headers["Content-Type"].startswith("text/csv")
    assert response.headers["Content-Disposition"].startswith('attachment; filename="usage-user-')
    rows = list(csv.DictReader(io.StringIO(response.getvalue().decode("utf-8-sig"))))
    assert [(row["name"], row["characters"]) for row in rows] == [
        ("bob@example.org", "20"),
        ("alice@example.org", "10"),
    ]


def test_a_day_without_use(client, alice, used):
    tomorrow = timezone.now().date() + timedelta(days=1)
    for by in ("day", "user", "model"):
        assert _rows(client, alice, by=by, first=tomorrow, last=tomorrow) == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"by": "team"}, "by"),
        ({"format": "xlsx"}, "format"),
        ({"first": "yesterday"}, "first"),
        ({"first": "2026-02-30"}, "first"),
        ({"first": "2026-02-02", "last": "2026-02-01"}, "first"),
        ({"first": "0001-01-01", "last": "9999-12-31"}, "first"),
        ({"first": "9999-12-01", "last": "9999-12-31"}, "last"),
    ],
)
@pytest.mark.parametrize("by", [{}, {"by": "model"}, {"by": "month"}])
def test_a_wrong_query(client, alice, query, param, by):
    response = client.get(URL, by | query, headers=alice.headers)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_who_may(client, alice, charlie, used):
    (row,) = _rows(client, charlie)
    assert row["characters"] == len("Somebody else's text.")
    assert [row["name"] for row in _rows(client, charlie, by="user")] == ["charlie@example.org"]
    assert client.get(URL).status_code == 401
    assert client.post(URL, headers=alice.headers).status_code == 405
    _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
    response = client.get(URL, headers={"authorization": f"Bearer {secret}"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "insufficient_scope")
