"""`POST /v1/syntheses?dry_run=true`: what would happen, and nothing does."""

from __future__ import annotations

import json

import pytest

from accounts.models import LedgerEntry, MemberQuota, Role, TeamQuota
from synthesis.models import SynthesisRequest, Voice
from synthesis.services import workers
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

URL = "/v1/syntheses?dry_run=true"
TEXT = "Hello there, this is a test."


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


def _post(client, person, url=URL, headers=None, **fields):
    body = {"voice": "Hibari", "text": TEXT} | fields
    headers = person.headers | (headers or {})
    return client.post(url, json.dumps(body), content_type="application/json", headers=headers)


def test_it_tells_and_does_nothing(client, alice):
    workers.beat(name="w1", engine="hibari", host="h", pid=1, state="idle")
    response = _post(client, alice)
    assert response.status_code == 200
    body = response.json()
    assert (body["dry_run"], body["characters"], body["segments_total"]) == (True, len(TEXT), 1)
    assert 1 < body["audio_seconds"] < 4
    assert body["eta_seconds"] >= 1
    assert (body["ahead"], body["language"], body["cloning"], body["limit"]) == (0, "en-US", None, None)
    assert not SynthesisRequest.objects.exists()
    assert not LedgerEntry.objects.exists()


def test_speed_and_queue_count(client, alice):
    workers.beat(name="w1", engine="hibari", host="h", pid=1, state="idle")
    slow = _post(client, alice, speed=0.5).json()["audio_seconds"]
    assert slow == pytest.approx(2 * _post(client, alice).json()["audio_seconds"], abs=0.2)
    factories.submit(alice)
    assert _post(client, alice).json()["ahead"] == 1


def test_without_a_worker_there_is_no_time(client, alice):
    assert _post(client, alice).json()["eta_seconds"] is None


def test_one_character_short(client, alice):
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=len(TEXT) - 1)
    limit = _post(client, alice).json()["limit"]
    assert (limit["code"], limit["characters_remaining"]) == ("quota_exceeded", len(TEXT) - 1)
    assert limit["message"]


def test_a_full_queue(client, alice):
    MemberQuota.objects.create(membership=alice.actor.membership, queued_requests=1)
    factories.submit(alice)
    assert _post(client, alice).json()["limit"]["code"] == "concurrent_limit_exceeded"


def test_a_key_of_idempotency_is_not_used_up(client, alice):
    assert _post(client, alice, headers={"idempotency-key": "k"}).status_code == 200
    response = _post(client, alice, "/v1/syntheses", headers={"idempotency-key": "k"})
    assert (response.status_code, "Idempotent-Replayed" in response.headers) == (201, False)


def test_false_submits(client, alice):
    assert _post(client, alice, "/v1/syntheses?dry_run=false").status_code == 201


@pytest.mark.parametrize(
    ("url", "fields", "param"),
    [
        (URL, {"text": ""}, "text"),
        (URL, {"voice": "Nobody"}, "voice"),
        ("/v1/syntheses?dry_run=perhaps", {}, "dry_run"),
    ],
)
def test_bad_input(client, alice, url, fields, param):
    response = _post(client, alice, url, **fields)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_who_may(client, alice):
    assert client.post(URL, "{}", content_type="application/json").status_code == 401
    bob = factories.colleague(alice, "Bob")
    bob.actor.membership.role = Role.VIEWER
    bob.actor.membership.save()
    assert _post(client, bob).status_code == 403


def test_a_strangers_voice(client, alice):
    charlie = factories.owner("Charlie")
    Voice.objects.create(team=alice.actor.team, kind="cloned", name="Secret", language="en-US")
    response = _post(client, charlie, voice="Secret")
    assert response.json()["error"]["code"] == "voice_not_found"
