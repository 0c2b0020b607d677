"""One synthesis request: show, cancel, delete, fetch the sound."""

from __future__ import annotations

import uuid

import pytest

from accounts.models import IdempotentAnswer, Role, UsageCounter
from accounts.services import keys
from synthesis import storage
from synthesis.models import Output, Segment, SynthesisRequest
from synthesis.services import workers
from tests import factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db


def _url(row, what=""):
    return f"/v1/syntheses/{getattr(row, 'id', row)}{what}"


def _error(response):
    return response.status_code, response.json()["error"]["code"]


def _usage(person):
    counter = UsageCounter.objects.get(team=person.actor.team, user=None, api_key=None)
    return counter.used, counter.reserved


#: Every route of one request, with its method.
ROUTES = [("get", ""), ("delete", ""), ("post", "/cancel"), ("get", "/audio"), ("head", "/audio")]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_no_key(self, client, alice, method, what):
        assert getattr(client, method)(_url(factories.submit(alice), what)).status_code == 401

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers_request(self, client, alice, charlie, method, what):
        row = finished.succeed(factories.submit(alice))
        response = getattr(client, method)(_url(row, what), headers=charlie.headers)
        assert response.status_code == 404
        if method != "head":
            assert _error(response) == (404, "synthesis_not_found")
        row.refresh_from_db()
        assert (row.status, row.deleted_at) == ("succeeded", None)

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense", "a%00b", "%ED%A0%80"])
    def test_what_does_not_exist(self, client, alice, method, what, identifier):
        response = getattr(client, method)(_url(identifier, what), headers=alice.headers)
        assert response.status_code == 404

    @pytest.mark.parametrize(
        ("method", "what"), [("post", ""), ("patch", ""), ("get", "/cancel"), ("post", "/audio")]
    )
    def test_wrong_method(self, client, alice, method, what):
        response = getattr(client, method)(_url(factories.submit(alice), what), headers=alice.headers)
        assert _error(response) == (405, "method_not_allowed")

    @pytest.mark.parametrize(("method", "what"), [("delete", ""), ("post", "/cancel")])
    def test_a_viewer_looks_and_does_not_touch(self, client, alice, method, what):
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        row = factories.submit(alice)
        assert client.get(_url(row), headers=bob.headers).status_code == 200
        assert _error(getattr(client, method)(_url(row, what), headers=bob.headers)) == (
            403,
            "permission_denied",
        )

    def test_a_key_that_only_reads(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["syntheses:read"])
        response = client.delete(_url(factories.submit(alice)), headers={"authorization": f"Bearer {secret}"})
        assert _error(response) == (403, "insufficient_scope")


class TestShow:
    def test_a_queued_one_has_a_place(self, client, alice):
        workers.beat(name="w1", engine="hibari", host="h", pid=1, state="idle")
        factories.submit(alice)
        body = client.get(_url(factories.submit(alice)), headers=alice.headers).json()
        assert (body["status"], body["queue_position"], body["ahead"], body["workers"]) == ("queued", 2, 1, 1)
        assert body["eta_seconds"] > 0

    def test_a_finished_one(self, client, alice):
        body = client.get(_url(finished.succeed(factories.submit(alice))), headers=alice.headers).json()
        assert (body["status"], body["queue_position"], body["eta_seconds"]) == ("succeeded", None, None)
        assert body["output"]["seconds"] == 2.5
        assert body["output"]["sample_rate"] == 24000
        assert body["metrics"]["queue_seconds"] >= 0
        assert body["completed_at"] > body["created_at"]
        assert body["error"] is None

    def test_a_failed_one_says_why_in_the_callers_language(self, client, alice):
        row = finished.fail(factories.submit(alice), "engine_error", "It broke.")
        body = client.get(_url(row), headers=alice.headers).json()
        assert (body["status"], body["error"]) == ("failed", {"code": "engine_error", "message": "It broke."})
        assert body["output"] is None

    def test_a_colleague_sees_it(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        assert client.get(_url(factories.submit(alice)), headers=bob.headers).status_code == 200


class TestCancel:
    def test_queued_and_running(self, client, alice):
        for prepare in (lambda row: row, finished.claim):
            row = prepare(factories.submit(alice))
            response = client.post(_url(row, "/cancel"), headers=alice.headers)
            assert (response.status_code, response.json()["status"]) == (200, "canceled")
        assert _usage(alice) == (0, 0)

    def test_a_finished_one_stays_as_it_is(self, client, alice):
        row = finished.succeed(factories.submit(alice, "Ten chars."))
        response = client.post(_url(row, "/cancel"), headers=alice.headers)
        assert (response.status_code, response.json()["status"]) == (200, "succeeded")
        assert _usage(alice) == (10, 0)


class TestDelete:
    def test_words_and_sound_are_gone_and_the_account_stays(self, client, alice):
        row = finished.succeed(factories.submit(alice, "Ten chars.", title="Mine"))
        key = row.output.key
        assert client.delete(_url(row), headers=alice.headers).status_code == 204
        row = SynthesisRequest.objects.get()
        assert (row.text, row.title, row.characters, row.status) == ("", "", 10, "succeeded")
        assert not Segment.objects.exists()
        assert not Output.objects.exists()
        assert storage.delete_prefix(key) == 0
        assert _usage(alice) == (10, 0)
        for method, what in ROUTES:
            assert getattr(client, method)(_url(row, what), headers=alice.headers).status_code == 404

    def test_one_that_waits_is_canceled_first(self, client, alice):
        row = factories.submit(alice)
        assert client.delete(_url(row), headers=alice.headers).status_code == 204
        row.refresh_from_db()
        assert row.status == "canceled"
        assert _usage(alice) == (0, 0)

    def test_saved_answers_about_it_are_gone(self, client, alice):
        factories.preset()
        body = {"voice": "Hibari", "text": "Hello there."}
        headers = alice.headers | {"idempotency-key": "k"}
        made = client.post("/v1/syntheses", body, content_type="application/json", headers=headers).json()
        assert IdempotentAnswer.objects.count() == 1
        client.delete(_url(made["id"]), headers=alice.headers)
        assert not IdempotentAnswer.objects.exists()

    def test_storage_that_is_away_is_swept_later(self, client, alice, monkeypatch):
        row = finished.succeed(factories.submit(alice))

        def away(prefix):
            raise storage.StorageUnavailable

        monkeypatch.setattr(storage, "delete_prefix", away)
        assert client.delete(_url(row), headers=alice.headers).status_code == 204
        assert SynthesisRequest.objects.get().objects_deleted is False


class TestAudio:
    @pytest.fixture
    def row(self, alice):
        return finished.succeed(factories.submit(alice, title="朗读：第一章"))

    def _get(self, client, alice, row, query="", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.get(_url(row, f"/audio{query}"), headers=alice.headers | headers)

    def test_the_whole_file(self, client, alice, row):
        response = self._get(client, alice, row)
        assert (response.status_code, response.getvalue()) == (200, finished.SOUND)
        assert response.headers["Content-Type"] == "audio/mpeg"
        assert response.headers["Content-Length"] == str(len(finished.SOUND))
        assert response.headers["Accept-Ranges"] == "bytes"
        assert response.headers["ETag"] == f'"{row.output.sha256}"'
        assert response.headers["Cache-Control"].startswith("private")

    def test_the_name_survives_any_script(self, client, alice, row):
        responses = [self._get(client, alice, row, query) for query in ("", "?download=1")]
        assert [response.getvalue() for response in responses] == [finished.SOUND] * 2
        inline, saved = (response.headers["Content-Disposition"] for response in responses)
        assert inline == "inline; filename*=utf-8''%E6%9C%97%E8%AF%BB%EF%BC%9A%E7%AC%AC%E4%B8%80%E7%AB%A0.mp3"
        assert saved == inline.replace("inline", "attachment")

    @pytest.mark.parametrize(
        ("value", "kind"),
        [("1", "attachment"), ("true", "attachment"), ("no", "inline"), ("False", "inline"), ("", "inline")],
    )
    def test_as_a_download_or_not(self, client, alice, row, value, kind):
        response = self._get(client, alice, row, f"?download={value}")
        assert response.headers["Content-Disposition"].partition(";")[0] == kind
        assert response.getvalue() == finished.SOUND

    @pytest.mark.parametrize("value", ["x", "2", "truee"])
    def test_neither(self, client, alice, row, value):
        response = self._get(client, alice, row, f"?download={value}")
        assert _error(response) == (400, "invalid_value")
        assert response.json()["error"]["param"] == "download"

    @pytest.mark.parametrize(
        ("wanted", "first", "last"),
        [
            ("bytes=0-99", 0, 99),
            ("bytes=100-", 100, 10239),
            ("bytes=-10", 10230, 10239),
            ("bytes=5-99999", 5, 10239),
        ],
    )
    def test_a_part(self, client, alice, row, wanted, first, last):
        response = self._get(client, alice, row, range=wanted)
        assert (response.status_code, response.getvalue()) == (206, finished.SOUND[first : last + 1])
        assert response.headers["Content-Range"] == f"bytes {first}-{last}/10240"

    @pytest.mark.parametrize("wanted", ["bytes=10240-", "bytes=-0"])
    def test_a_part_outside_of_the_file(self, client, alice, row, wanted):
        response = self._get(client, alice, row, range=wanted)
        assert (response.status_code, response.headers["Content-Range"]) == (416, "bytes */10240")
        assert _error(response) == (416, "range_not_satisfiable")
        assert (response.json()["title"], response.json()["error"]["size"]) == (
            "range_not_satisfiable",
            10240,
        )
        assert "10240 bytes" in response.json()["detail"]

    @pytest.mark.parametrize(
        "wanted", ["bytes=0-1,5-6", "bytes=9-3", "lines=1-2", "bytes=" + "9" * 5000 + "-", "x"]
    )
    def test_ranges_that_are_not_understood_get_the_whole(self, client, alice, row, wanted):
        response = self._get(client, alice, row, range=wanted)
        assert (response.status_code, response.getvalue()) == (200, finished.SOUND)

    def test_a_part_only_of_what_the_caller_has(self, client, alice, row):
        tag = f'"{row.output.sha256}"'
        part = self._get(client, alice, row, range="bytes=0-9", if_range=tag)
        assert (part.status_code, len(part.getvalue())) == (206, 10)
        whole = self._get(client, alice, row, range="bytes=0-9", if_range='"other"')
        assert (whole.status_code, len(whole.getvalue())) == (200, 10240)
        assert self._get(client, alice, row, if_none_match=f'"other", W/{tag}').status_code == 304
        assert self._get(client, alice, row, if_none_match='"other"').getvalue() == finished.SOUND

    def test_head(self, client, alice, row):
        response = client.head(_url(row, "/audio"), headers=alice.headers)
        assert (response.status_code, response.content) == (200, b"")
        assert response.headers["Content-Length"] == "10240"

    def test_before_there_is_any(self, client, alice):
        response = self._get(client, alice, factories.submit(alice))
        assert _error(response) == (409, "not_ready")
        assert response.json()["error"]["status"] == "queued"

    def test_after_its_time(self, client, alice, row):
        row.output.delete()
        assert _error(self._get(client, alice, row)) == (410, "output_expired")

    def test_storage_with_a_public_address(self, client, alice, row, settings):
        settings.S3_PUBLIC_URL = "https://s3.example.org"
        storage._public_client.cache_clear()
        response = self._get(client, alice, row)
        storage._public_client.cache_clear()
        assert response.status_code == 302
        assert response.headers["Location"].startswith(f"https://s3.example.org/chorus/{row.output.key}?")

    def test_storage_that_is_away(self, client, alice, row, monkeypatch):
        def away(*_args):
            raise storage.StorageUnavailable(retry_after=5)

        monkeypatch.setattr(storage, "open_range", away)
        response = self._get(client, alice, row)
        assert _error(response) == (503, "storage_unavailable")
        assert response.headers["Retry-After"] == "5"
