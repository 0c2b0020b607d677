"""`POST /v1/audio/speech`: OpenAI's shape, the whole file."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import LedgerEntry, Role, TeamQuota, UsageCounter
from synthesis.api import sound, speech
from synthesis.models import Output, SynthesisRequest, Voice
from synthesis.services import dispatch
from tests import factories
from tests.synthesis import finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

URL = "/v1/audio/speech"
TEXT = "Hello there, this is a test."


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


@pytest.fixture
def ended(monkeypatch):
    """Each submitted request ends at once, by the function that is put here."""
    ways = [finished.succeed]
    submit = speech.submission.submit

    def submit_and_end(**kwargs):
        row = submit(**kwargs)
        ways[-1](row)
        return row

    monkeypatch.setattr(speech.submission, "submit", submit_and_end)
    return ways


def _post(client, person, headers=None, **fields):
    body = {"model": "tts-1", "input": TEXT, "voice": "Hibari"} | fields
    return client.post(
        URL, json.dumps(body), content_type="application/json", headers=person.headers | (headers or {})
    )


def _error(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def _nothing_happened():
    return not SynthesisRequest.objects.exists() and not LedgerEntry.objects.exists()


def test_it_answers_with_the_sound(client, alice, ended):
    response = _post(client, alice)
    assert response.status_code == 200
    assert response.getvalue() == finished.SOUND
    assert response.headers["Content-Type"] == "audio/mpeg"
    assert response.headers["Content-Length"] == str(len(finished.SOUND))
    assert response.headers["Content-Disposition"] == 'attachment; filename="speech.mp3"'
    row = SynthesisRequest.objects.get()
    assert response.headers["x-synthesis-id"] == str(row.id)
    assert (row.format, row.speed, row.text) == ("mp3", 1.0, TEXT)


def test_all_that_can_be_said(client, alice, ended):
    voice = Voice.objects.get()
    response = _post(
        client,
        alice,
        model="hibari",
        voice={"id": str(voice.id)},
        response_format="flac",
        speed=0.5,
        instructions="",
        language="en-US",
        seed=9,
        stream_format="audio",
        user="somebody",
    )
    assert response.getvalue() == finished.SOUND
    row = SynthesisRequest.objects.get()
    assert (row.voice, row.format, row.speed, row.seed) == (voice, "flac", 0.5, 9)


def test_the_model_may_be_left_out(client, alice, ended):
    body = {"input": TEXT, "voice": "Hibari"}
    response = client.post(URL, body, content_type="application/json", headers=alice.headers)
    assert response.getvalue() == finished.SOUND


@pytest.mark.parametrize("accept", ["application/octet-stream", "audio/mpeg", "*/*", "text/html"])
def test_whatever_the_client_accepts(client, alice, ended, accept):
    assert _post(client, alice, headers={"accept": accept}).getvalue() == finished.SOUND
    assert _post(client, alice, headers={"accept": accept}, input="").json()["error"]["code"] == "text_empty"


@pytest.mark.django_db(transaction=True)
def test_it_waits_for_the_worker(client, alice):
    def speak():
        try:
            while not SynthesisRequest.objects.exists():
                time.sleep(0.02)
            time.sleep(0.3)
            finished.succeed(SynthesisRequest.objects.get())
        finally:
            connection.close()

    worker = threading.Thread(target=speak)
    worker.start()
    response = _post(client, alice)
    worker.join()
    assert response.getvalue() == finished.SOUND


@pytest.mark.django_db(transaction=True)
def test_it_waits_while_redis_is_away(client, alice, monkeypatch, settings):
    from redis import Redis

    nowhere = Redis(port=1, socket_connect_timeout=0.2)
    monkeypatch.setattr("synthesis.api.held.client", lambda: nowhere)
    settings.CHORUS_ASGI = False

    def speak():
        try:
            while not SynthesisRequest.objects.exists():
                time.sleep(0.02)
            finished.succeed(SynthesisRequest.objects.get())
        finally:
            connection.close()

    worker = threading.Thread(target=speak)
    worker.start()
    response = _post(client, alice)
    worker.join()
    assert response.getvalue() == finished.SOUND


@pytest.mark.parametrize(
    ("code", "status"),
    [("engine_error", 500), ("worker_lost", 500), ("segment_implausible", 422), ("storage_unavailable", 503)],
)
def test_a_failure_has_openais_shape_and_is_not_repeated(client, alice, ended, code, status):
    ended.append(lambda row: finished.fail(row, code, "It broke."))
    response = _post(client, alice)
    assert _error(response) == (status, code, None)
    assert response.json()["error"]["message"] == "It broke."
    assert response.json()["error"]["synthesis_id"] == str(SynthesisRequest.objects.get().id)
    assert response.headers["x-should-retry"] == "false"
    counter = UsageCounter.objects.get(user=None, api_key=None)
    assert (counter.used, counter.reserved) == (0, 0)


def test_one_that_somebody_canceled(client, alice, ended):
    ended.append(lambda row: dispatch.cancel(row.id))
    assert _error(_post(client, alice))[:2] == (409, "canceled")


def test_a_recording_whose_time_is_over(client, alice, ended):
    def succeed_and_expire(row):
        finished.succeed(row)
        Output.objects.all().delete()

    ended.append(succeed_and_expire)
    assert _error(_post(client, alice))[:2] == (410, "output_expired")


def test_one_that_takes_too_long_goes_on(client, alice, monkeypatch):
    monkeypatch.setattr(sound, "WAIT_SECONDS", 0.1)
    response = _post(client, alice)
    row = SynthesisRequest.objects.get()
    assert _error(response)[:2] == (504, "timeout")
    assert str(row.id) in response.json()["error"]["message"]
    assert row.status == "queued"


class TestIdempotency:
    def test_a_repeated_request_gets_the_same_sound(self, client, alice, ended):
        first = _post(client, alice, headers={"idempotency-key": "k"})
        again = _post(client, alice, headers={"idempotency-key": "k"})
        assert again.getvalue() == first.getvalue()
        assert SynthesisRequest.objects.count() == 1

    def test_another_body(self, client, alice, ended):
        _post(client, alice, headers={"idempotency-key": "k"}).getvalue()
        response = _post(client, alice, input="Other words.", headers={"idempotency-key": "k"})
        assert _error(response)[:2] == (422, "idempotency_key_reused")

    def test_another_route(self, client, alice, ended):
        _post(client, alice, headers={"idempotency-key": "k"}).getvalue()
        headers = alice.headers | {"idempotency-key": "k"}
        body = {"text": TEXT, "voice": "Hibari"}
        response = client.post("/v1/syntheses", body, content_type="application/json", headers=headers)
        assert response.status_code == 422


class TestWhoMay:
    @pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
    def test_wrong_method(self, client, alice, method):
        response = getattr(client, method)(URL, headers=alice.headers)
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")

    @pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer sk-1234"}])
    def test_no_key_or_a_wrong_one(self, client, alice, headers):
        response = client.post(URL, {}, content_type="application/json", headers=headers)
        assert _error(response)[:2] == (401, "invalid_api_key")

    def test_an_expired_key(self, client, alice):
        alice.by_key.api_key.expires_at = timezone.now() - timedelta(seconds=1)
        alice.by_key.api_key.save()
        assert _error(_post(client, alice))[:2] == (401, "api_key_expired")

    def test_a_viewer(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert _error(_post(client, bob))[:2] == (403, "permission_denied")
        assert _nothing_happened()

    def test_a_strangers_voice(self, client, alice):
        charlie = factories.owner("Charlie")
        hers = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Secret", language="en-US")
        assert _error(_post(client, charlie, voice=str(hers.id))) == (400, "voice_not_found", "voice")
        assert _nothing_happened()

    def test_another_teams_key_does_not_replay(self, client, alice, ended):
        charlie = factories.owner("Charlie")
        _post(client, alice, headers={"idempotency-key": "k"}).getvalue()
        _post(client, charlie, headers={"idempotency-key": "k"}).getvalue()
        assert SynthesisRequest.objects.count() == 2


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"input": ""}, "text_empty", "input"),
        ({"input": "…"}, "text_not_speakable", "input"),
        ({"input": "a\x00b"}, "text_control_characters", "input"),
        ({"input": "x" * 20_001}, "text_too_long", "input"),
        ({"input": None}, "missing_field", "input"),
        ({"input": {"a": 1}}, "invalid_value", "input"),
        ({"voice": "alloy"}, "voice_not_found", "voice"),
        ({"voice": {"id": "alloy"}}, "voice_not_found", "voice"),
        ({"voice": {"id": 5}}, "invalid_value", "voice"),
        ({"voice": None}, "missing_field", "voice"),
        ({"model": "gpt-5"}, "model_not_found", "model"),
        ({"model": 1}, "invalid_value", "model"),
        ({"response_format": "ogg"}, "format_unknown", "response_format"),
        ({"speed": 0.2}, "invalid_value", "speed"),
        ({"speed": 4.5}, "invalid_value", "speed"),
        ({"speed": 3.0}, "speed_out_of_range", "speed"),
        ({"instructions": "Whisper."}, "instruction_not_supported", "instructions"),
        ({"input": "你好，世界。这是一段中文。"}, "language_not_supported", "input"),
        ({"language": "xx"}, "language_not_supported", "language"),
    ],
)
def test_a_wrong_field_is_named(client, alice, fields, code, param):
    response = _post(client, alice, **fields)
    assert _error(response) == (400, code, param)
    assert response.json()["error"]["type"] == "invalid_request_error"
    assert _nothing_happened()


def test_one_character_short(client, alice):
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=len(TEXT) - 1)
    response = _post(client, alice)
    assert _error(response)[:2] == (429, "quota_exceeded")
    assert response.headers["x-should-retry"] == "false"
    assert _nothing_happened()


def test_too_many_in_a_minute(client, alice, ended):
    TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
    assert _post(client, alice).getvalue() == finished.SOUND
    response = _post(client, alice)
    assert _error(response)[:2] == (429, "rate_limit_exceeded")
    assert int(response.headers["Retry-After"]) > 0


class TestModels:
    def test_list(self, client, alice):
        response = client.get("/v1/models", headers=alice.headers)
        assert response.json()["object"] == "list"
        names = [model["id"] for model in response.json()["data"]]
        assert names == ["hibari", "tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"]

    def test_one(self, client, alice):
        assert client.get("/v1/models/tts-1", headers=alice.headers).json()["id"] == "tts-1"

    def test_none(self, client, alice):
        response = client.get("/v1/models/gpt-5", headers=alice.headers)
        assert _error(response)[:2] == (404, "model_not_found")

    @pytest.mark.parametrize("url", ["/v1/models", "/v1/models/tts-1"])
    def test_no_key_and_wrong_method(self, client, alice, url):
        assert client.get(url).status_code == 401
        assert client.post(url, headers=alice.headers).status_code == 405
