"""`/v1/syntheses`: submit, list."""

from __future__ import annotations

import json
import threading
import time
import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import LedgerEntry, MemberQuota, Role, TeamQuota
from accounts.services import keys
from synthesis.models import SynthesisRequest, Voice
from synthesis.services import dispatch
from tests import factories
from tests.synthesis import finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

URL = "/v1/syntheses"
TEXT = "Hello there, this is a test."


@pytest.fixture
def voice():
    return factories.preset()


@pytest.fixture
def alice(voice):
    return factories.owner("Alice")


def _post(client, person, body=None, headers=None, **fields):
    if body is None:
        body = {"voice": "Hibari", "text": TEXT} | fields
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(URL, data, content_type="application/json", headers=person.headers | (headers or {}))


def _error(response):
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


def _nothing_happened():
    return not SynthesisRequest.objects.exists() and not LedgerEntry.objects.exists()


class TestSubmit:
    def test_it_queues_the_text(self, client, alice, voice):
        response = _post(
            client, alice, format="wav", speed=1.25, language="en", seed=7, title="A title", instruction=""
        )
        assert response.status_code == 201
        row = SynthesisRequest.objects.get()
        body = response.json()
        assert response.headers["Location"] == f"http://testserver{URL}/{row.id}"
        assert body["id"] == str(row.id)
        assert body["status"] == "queued"
        assert body["input"] == {
            "text": TEXT,
            "source_seconds": None,
            "voice": str(voice.id),
            "language": "en-US",
            "instruction": "",
            "format": "wav",
            "speed": 1.25,
            "seed": 7,
            "title": "A title",
        }
        assert body["voice"] == {"id": str(voice.id), "name": "Hibari", "kind": "preset"}
        assert (body["engine"], body["cloning"]) == ("hibari", None)
        assert (body["characters"], body["segments_total"], body["segments_done"]) == (len(TEXT), 1, 0)
        assert (body["queue_position"], body["ahead"], body["workers"]) == (1, 0, 0)
        assert (body["output"], body["error"], body["source"]) == (None, None, "api")
        assert body["metrics"] == {
            "queue_seconds": None,
            "engine_seconds": 0,
            "audio_seconds": None,
            "real_time_factor": None,
            "characters": len(TEXT),
        }
        assert body["urls"] == {
            "get": f"http://testserver{URL}/{row.id}",
            "cancel": f"http://testserver{URL}/{row.id}/cancel",
            "audio": f"http://testserver{URL}/{row.id}/audio",
            "events": f"http://testserver{URL}/{row.id}/events",
            "stream": f"http://testserver{URL}/{row.id}/events",
            "web": f"http://testserver/requests/{row.id}/",
        }
        assert row.api_key == alice.by_key.api_key

    @pytest.mark.parametrize("kind", ["id", "name", "object", "slug"])
    def test_the_voice_by_id_or_name(self, client, alice, voice, kind):
        named = {"id": str(voice.id), "name": "hIbArI", "object": {"id": str(voice.id)}, "slug": "heart"}[
            kind
        ]
        assert _post(client, alice, voice=named).json()["voice"]["id"] == str(voice.id)

    def test_nulls_are_left_alone(self, client, alice):
        assert _post(client, alice, seed=None, title=None, format=None).status_code == 201

    def test_what_would_be_ignored_is_not_charged(self, client, alice):
        response = _post(client, alice, dry_run=True)
        assert _error(response) == (400, "unknown_field", "dry_run")
        assert "?dry_run=" in response.json()["error"]["message"]
        assert not SynthesisRequest.objects.exists()

    def test_what_it_says_of_limits(self, client, alice):
        response = _post(client, alice)
        assert (
            response.headers["RateLimit-Policy"] == '"burst";q=600;w=60, "slots";q=4;qu="concurrent-requests"'
        )
        assert response.headers["RateLimit"].startswith('"burst";r=599;t=')
        assert response.headers["x-ratelimit-limit-requests"] == "600"
        assert response.headers["x-ratelimit-remaining-requests"] == "599"
        assert response.headers["x-ratelimit-reset-requests"].endswith("s")

    def test_a_cloned_voice_says_how_it_is_spoken(self, client, alice):
        Voice.objects.create(team=alice.actor.team, kind="cloned", name="Mine", language="en-US")
        assert _post(client, alice, voice="Mine").json()["cloning"] == "nearest_preset"

    def test_its_place_in_the_queue(self, client, alice):
        _post(client, alice)
        body = _post(client, alice).json()
        assert (body["queue_position"], body["ahead"]) == (2, 1)


class TestWhoMay:
    @pytest.mark.parametrize("method", ["patch", "delete", "put"])
    def test_wrong_method(self, client, alice, method):
        response = getattr(client, method)(URL, headers=alice.headers)
        assert response.status_code == 405
        assert response.headers["Allow"] == "GET, HEAD, POST"

    @pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer chorus_a_b"}])
    @pytest.mark.parametrize("method", ["get", "post"])
    def test_no_key_or_a_wrong_one(self, client, alice, headers, method):
        response = getattr(client, method)(URL, {}, content_type="application/json", headers=headers)
        assert response.status_code == 401
        assert _nothing_happened()

    def test_an_expired_key(self, client, alice):
        alice.by_key.api_key.expires_at = timezone.now() - timedelta(seconds=1)
        alice.by_key.api_key.save()
        assert _error(_post(client, alice))[:2] == (401, "api_key_expired")
        assert _nothing_happened()

    def test_a_viewer_lists_but_does_not_submit(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(URL, headers=bob.headers).status_code == 200
        assert _error(_post(client, bob))[:2] == (403, "permission_denied")
        assert _nothing_happened()

    def test_a_key_without_the_scope(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["syntheses:read"])
        headers = {"authorization": f"Bearer {secret}"}
        response = client.post(URL, "{}", content_type="application/json", headers=headers)
        assert _error(response)[:2] == (403, "insufficient_scope")

    def test_a_strangers_voice(self, client, alice):
        charlie = factories.owner("Charlie")
        hers = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Secret", language="en-US")
        for named in (str(hers.id), "Secret"):
            assert _error(_post(client, charlie, voice=named)) == (400, "voice_not_found", "voice")
        assert _nothing_happened()


class TestBadInput:
    @pytest.mark.parametrize(
        ("fields", "code", "param"),
        [
            ({"text": ""}, "text_empty", "text"),
            ({"text": " \n\t "}, "text_empty", "text"),
            ({"text": "?!… —"}, "text_not_speakable", "text"),
            ({"text": "😀😀"}, "text_not_speakable", "text"),
            ({"text": "a\x00b"}, "text_control_characters", "text"),
            ({"text": "a\x07b"}, "text_control_characters", "text"),
            ({"text": "lone \ud800"}, "text_control_characters", "text"),
            ({"text": "<|endofprompt|> hello"}, "text_special_token", "text"),
            ({"text": "x" * 20_001}, "text_too_long", "text"),
            ({"text": None}, "missing_field", "text"),
            ({"text": 5}, "invalid_value", "text"),
            ({"text": ["a"]}, "invalid_value", "text"),
            ({"voice": "Nobody"}, "voice_not_found", "voice"),
            ({"voice": str(uuid.uuid4())}, "voice_not_found", "voice"),
            ({"voice": ""}, "invalid_value", "voice"),
            ({"voice": "a\x00"}, "invalid_value", "voice"),
            ({"voice": "\ud800"}, "invalid_value", "voice"),
            ({"voice": {"name": "Hibari"}}, "invalid_value", "voice"),
            ({"voice": None}, "missing_field", "voice"),
            ({"format": "mp4"}, "format_unknown", "format"),
            ({"format": 3}, "invalid_value", "format"),
            ({"speed": 0.4}, "speed_out_of_range", "speed"),
            ({"speed": 1e300}, "speed_out_of_range", "speed"),
            ({"speed": "1.0"}, "invalid_value", "speed"),
            ({"speed": True}, "invalid_value", "speed"),
            ({"speed": 10**400}, "invalid_value", "speed"),
            ({"language": "zh"}, "language_not_supported", "language"),
            ({"text": "你好，世界。这是一段中文。"}, "language_not_supported", "text"),
            ({"instruction": "Whisper."}, "instruction_not_supported", "instruction"),
            ({"seed": -1}, "seed_out_of_range", "seed"),
            ({"seed": 2**31}, "seed_out_of_range", "seed"),
            ({"seed": 1.5}, "invalid_value", "seed"),
            ({"seed": "1"}, "invalid_value", "seed"),
            ({"title": "x" * 201}, "title_invalid", "title"),
            ({"title": "a\x00"}, "invalid_value", "title"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, code, param):
        response = _post(client, alice, **fields)
        assert _error(response) == (400, code, param)
        assert response.json()["error"]["message"]
        assert _nothing_happened()

    @pytest.mark.parametrize(
        "body",
        [
            "",
            "{",
            "nonsense",
            "[]",
            '"text"',
            "null",
            '{"text": NaN}',
            '{"speed": Infinity}',
            b'{"text": "\xff"}',
            "[" * 100_000,
            '{"seed": ' + "9" * 5000 + "}",
        ],
    )
    def test_a_body_that_is_no_json_object(self, client, alice, body):
        assert _error(_post(client, alice, body))[:2] == (400, "malformed_json" if body else "missing_field")
        assert _nothing_happened()

    def test_another_content_type(self, client, alice):
        response = client.post(URL, {"text": TEXT, "voice": "Hibari"}, headers=alice.headers)
        assert _error(response)[:2] == (415, "unsupported_media_type")

    def test_a_body_that_is_too_large_is_not_read(self, client, alice):
        class Unread:
            def read(self, *_args):
                raise AssertionError("the body was read")

            readline = read

        response = client.generic(
            "POST",
            URL,
            "{}",
            content_type="application/json",
            headers=alice.headers,
            CONTENT_LENGTH=str(2**21),
            **{"wsgi.input": Unread()},
        )
        assert _error(response)[:2] == (413, "payload_too_large")

    def test_a_body_without_a_length(self, client, alice):
        headers = alice.headers | {"transfer-encoding": "chunked"}
        response = client.generic("POST", URL, "", content_type="application/json", headers=headers)
        assert _error(response)[:2] == (411, "length_required")


class TestLimits:
    def test_one_character_short(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=len(TEXT) - 1)
        response = _post(client, alice)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["type"]) == (
            429,
            "quota_exceeded",
            "insufficient_quota",
        )
        assert (error["characters_remaining"], error["characters_required"]) == (len(TEXT) - 1, len(TEXT))
        assert error["resets_at"] > timezone.now().isoformat()
        assert int(response.headers["Retry-After"]) > 0
        assert response.headers["x-should-retry"] == "false"
        assert _nothing_happened()

    def test_a_full_queue(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=1)
        assert _post(client, alice).status_code == 201
        response = _post(client, alice)
        assert _error(response)[:2] == (429, "concurrent_limit_exceeded")
        assert response.headers["Retry-After"] == "10"
        assert SynthesisRequest.objects.count() == 1

    def test_too_many_in_a_minute(self, client, alice):
        MemberQuota.objects.create(membership=alice.actor.membership, requests_per_minute=2)
        assert [_post(client, alice).status_code for _i in range(3)] == [201, 201, 429]
        response = _post(client, alice)
        assert _error(response)[:2] == (429, "rate_limit_exceeded")
        assert 0 < int(response.headers["Retry-After"]) <= 61
        assert response.headers["x-ratelimit-remaining-requests"] == "0"
        assert '"burst";r=0;t=' in response.headers["RateLimit"]


class TestIdempotency:
    def test_the_same_key_and_body_do_the_work_once(self, client, alice):
        first = _post(client, alice, headers={"idempotency-key": "k"})
        again = _post(client, alice, headers={"idempotency-key": "k"})
        assert (again.status_code, again.json()) == (201, first.json())
        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true"
        assert SynthesisRequest.objects.count() == 1

    def test_another_body_is_refused(self, client, alice):
        _post(client, alice, headers={"idempotency-key": "k"})
        response = _post(client, alice, text="Other words.", headers={"idempotency-key": "k"})
        assert _error(response)[:2] == (422, "idempotency_key_reused")

    def test_a_refusal_is_not_kept(self, client, alice):
        assert _post(client, alice, text="", headers={"idempotency-key": "k"}).status_code == 400
        assert _post(client, alice, headers={"idempotency-key": "k"}).status_code == 201

    def test_keys_of_teams_are_apart(self, client, alice):
        charlie = factories.owner("Charlie")
        first = _post(client, alice, headers={"idempotency-key": "k"}).json()
        assert _post(client, charlie, headers={"idempotency-key": "k"}).json()["id"] != first["id"]

    @pytest.mark.parametrize("key", ["x" * 256, "k\x00", "ü"])
    def test_a_key_that_is_none(self, client, alice, key):
        response = _post(client, alice, headers={"idempotency-key": key})
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "Idempotency-Key"


class TestPreferWait:
    @pytest.mark.parametrize("prefer", ["wait", "wait=5", "respond-async, wait=5", 'Wait="5"'])
    def test_a_finished_request_is_answered_at_once(self, client, alice, prefer, monkeypatch):
        _post(client, alice, headers={"idempotency-key": "k"})
        finished.succeed(SynthesisRequest.objects.get())
        begun = time.monotonic()
        response = _post(client, alice, headers={"prefer": prefer, "idempotency-key": "k"})
        assert time.monotonic() - begun < 4
        body = response.json()
        assert (response.status_code, body["status"]) == (201, "succeeded")
        assert body["output"]["url"] == body["urls"]["audio"]
        assert body["output"]["bytes"] == len(finished.SOUND)
        assert body["metrics"]["audio_seconds"] == 2.5
        assert response.headers["Preference-Applied"].startswith("wait=")

    def test_the_unfinished_one_when_the_time_is_over(self, client, alice):
        begun = time.monotonic()
        response = _post(client, alice, headers={"prefer": "wait=1"})
        assert 0.9 < time.monotonic() - begun < 15
        assert (response.status_code, response.json()["status"]) == (201, "queued")
        assert response.json()["queue_position"] == 1

    @pytest.mark.parametrize(
        ("prefer", "seconds"),
        [
            ("wait", 60),
            ("wait=", 60),
            ('wait=""; x=1', 60),
            ("wait=1", 1),
            ("wait=007", 7),
            ("handling=lenient,wait = 30 ; x", 30),
            ("wait=5, wait=9", 5),
            ("wait=60", 60),
            ("wait=61", 60),
            ("wait=99999999999", 60),
            ("wait=" + "9" * 5000, 60),
        ],
    )
    def test_so_long_and_no_longer(self, client, alice, prefer, seconds, monkeypatch):
        waited = []
        monkeypatch.setattr("synthesis.api.held._wait", lambda _id, seconds: waited.append(seconds))
        response = _post(client, alice, headers={"prefer": prefer})
        assert (response.status_code, waited) == (201, [seconds])
        assert response.headers["Preference-Applied"] == f"wait={seconds}"

    @pytest.mark.parametrize(
        "prefer",
        [
            *("respond-async", "await", "x-wait=5", "wait-for=5", 'x="wait=5"'),
            *("wait=0", 'wait="000"', "wait=soon", "wait=-1", "wait=1.5", "wait=5s", "wait=soon, wait=5"),
        ],
    )
    def test_nothing_to_wait_for_and_other_preferences(self, client, alice, prefer, monkeypatch):
        def wait(*_args):
            raise AssertionError("it waited")

        monkeypatch.setattr("synthesis.api.held._wait", wait)
        response = _post(client, alice, headers={"prefer": prefer})
        assert (response.status_code, response.json()["status"]) == (201, "queued")
        assert "Preference-Applied" not in response.headers

    @pytest.mark.django_db(transaction=True)
    def test_it_ends_with_the_request(self, client, alice):
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
        begun = time.monotonic()
        response = _post(client, alice, headers={"prefer": "wait=10"})
        worker.join()
        assert time.monotonic() - begun < 8
        assert response.json()["status"] == "succeeded"


class TestList:
    def _ids(self, response):
        assert response.status_code == 200, response.content
        return [item["id"] for item in response.json()["results"]]

    def test_the_newest_first(self, client, alice):
        rows = [factories.submit(alice) for _i in range(3)]
        response = client.get(URL, headers=alice.headers)
        assert self._ids(response) == [str(row.id) for row in reversed(rows)]
        assert (response.json()["next"], response.json()["previous"]) == (None, None)

    def test_cursors_stay_right_while_rows_are_added(self, client, alice):
        rows = [factories.submit(alice) for _i in range(5)]
        expected = [str(row.id) for row in reversed(rows)]
        first = client.get(URL, {"limit": 2}, headers=alice.headers)
        factories.submit(alice)
        second = client.get(first.json()["next"], headers=alice.headers)
        third = client.get(second.json()["next"], headers=alice.headers)
        assert self._ids(first) + self._ids(second) + self._ids(third) == expected
        assert third.json()["next"] is None
        assert self._ids(client.get(third.json()["previous"], headers=alice.headers)) == expected[2:4]

    def test_filters(self, client, alice):
        other = factories.preset("Kestrel")
        done = finished.succeed(factories.submit(alice, "About apples."))
        waiting = factories.submit(alice, "About pears.", title="Fruit salad", voice=str(other.id))

        def found(**query):
            return self._ids(client.get(URL, query, headers=alice.headers))

        assert found(status="succeeded") == [str(done.id)]
        assert found(status="queued") == [str(waiting.id)]
        assert found(voice=str(other.id)) == [str(waiting.id)]
        assert found(search="APPLES") == [str(done.id)]
        assert found(search="fruit") == [str(waiting.id)]
        assert found(search="apples", status="queued") == []
        assert found(search="") == [str(waiting.id), str(done.id)]

    def test_a_strangers_requests_are_not_there(self, client, alice):
        charlie = factories.owner("Charlie")
        factories.submit(alice)
        assert self._ids(client.get(URL, headers=charlie.headers)) == []

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            ({"status": "done"}, "status"),
            ({"voice": "Hibari"}, "voice"),
            ({"search": "a\x00"}, "search"),
            ({"limit": "0"}, "limit"),
            ({"limit": "101"}, "limit"),
            ({"limit": "-1"}, "limit"),
            ({"limit": "all"}, "limit"),
            ({"limit": "²"}, "limit"),
            ({"cursor": "nonsense"}, "cursor"),
            ({"cursor": "cD1ub25zZW5zZQ=="}, "cursor"),
            ({"cursor": "ü"}, "cursor"),
        ],
    )
    def test_a_wrong_query_is_named(self, client, alice, query, param):
        response = client.get(URL, query, headers=alice.headers)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

    def test_a_page_costs_the_same_for_any_number_of_rows(self, client, alice, django_assert_max_num_queries):
        for _i in range(10):
            factories.submit(alice)
        with django_assert_max_num_queries(4):
            client.get(URL, headers=alice.headers)

    def test_a_deleted_one_is_gone(self, client, alice):
        row = factories.submit(alice)
        dispatch.cancel(row.id)
        SynthesisRequest.objects.update(deleted_at=timezone.now())
        assert self._ids(client.get(URL, headers=alice.headers)) == []
