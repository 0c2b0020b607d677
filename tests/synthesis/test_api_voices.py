"""`/v1/voices`: list, create, show, change, delete, hear."""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
import soundfile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts import outgoing
from accounts.models import Role, TeamQuota
from accounts.redis import client as redis_client
from accounts.services import keys, limits
from synthesis import storage
from synthesis.models import Voice, VoiceVersion
from tests import factories
from tests.accounts.test_outgoing import answer, serve
from tests.synthesis import finished

pytestmark = pytest.mark.django_db

URL = "/v1/voices"
SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"


@pytest.fixture(autouse=True)
def _no_rates():
    redis_client().flushdb()


@pytest.fixture
def alice():
    return factories.owner("Alice")


@pytest.fixture
def charlie():
    return factories.owner("Charlie")


def _error(response):
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


def _create(client, person, clip="austen-0870.wav", **fields):
    form = {
        "name": "Mine",
        "language": "en-US",
        "transcript": "",
        "consent": "true",
        "audio": SimpleUploadedFile(clip, (SPEECH / clip).read_bytes()) if isinstance(clip, str) else clip,
    } | fields
    form = {name: value for name, value in form.items() if value is not None}
    return client.post(URL, form, headers=person.headers)


def _own(person, name="Mine", sound=b"RIFF sound", **fields):
    """A cloned voice without the work of making one."""
    voice = Voice.objects.create(
        team=person.actor.team, created_by=person.user, kind="cloned", name=name, language="en-US", **fields
    )
    version = VoiceVersion(
        voice=voice,
        number=1,
        sample_rate=24000,
        seconds=8.0,
        window_start=1.0,
        window_end=9.0,
        original_seconds=20.0,
        transcript="What was said.",
        quality={"problems": []},
        nearest={"hibari": "heart"},
        consent_statement="I agree.",
        consent_by=person.user,
        consent_at=timezone.now(),
    )
    version.original_key = storage.version_key(person.actor.team.id, version, "original")
    version.processed_key = storage.version_key(person.actor.team.id, version, "prompt.wav")
    storage.put(version.processed_key, sound, "audio/wav")
    version.save()
    voice.current_version = version
    voice.save()
    return voice


class TestList:
    def _names(self, response):
        assert response.status_code == 200, response.content
        return [voice["name"] for voice in response.json()["results"]]

    def test_presets_and_the_teams_own(self, client, alice):
        preset, own = factories.preset(), _own(alice)
        response = client.get(URL, headers=alice.headers)
        assert self._names(response) == ["Mine", "Hibari"]
        mine, hers = response.json()["results"]
        assert hers == {
            "id": str(preset.id),
            "name": "Hibari",
            "kind": "preset",
            "language": "en-US",
            "gender": "",
            "style": "",
            "engine": "hibari",
            "cloning": None,
            "nearest_preset": None,
            "version": None,
            "transcript": None,
            "quality": None,
            "recordings": [],
            "consent": None,
            "shared": True,
            "owner": None,
            "tags": [],
            "sample_url": f"http://testserver{URL}/{preset.id}/sample",
            "created_at": hers["created_at"],
            "voice_id": str(preset.id),
            "category": "premade",
            "description": "",
            "labels": {"language": "en-US"},
            "preview_url": f"http://testserver{URL}/{preset.id}/sample",
        }
        assert (mine["id"], mine["kind"], mine["cloning"]) == (str(own.id), "cloned", "nearest_preset")
        assert (mine["nearest_preset"], mine["version"], mine["transcript"]) == ("Heart", 1, "What was said.")
        assert (mine["quality"]["window_start"], mine["quality"]["window_end"]) == (1.0, 9.0)
        assert (mine["consent"]["statement"], mine["consent"]["by"]) == ("I agree.", "alice@example.org")

    def test_a_strangers_voices_are_not_there(self, client, alice, charlie):
        _own(alice)
        assert self._names(client.get(URL, headers=charlie.headers)) == []

    def test_nor_another_engines_nor_deleted_ones(self, client, alice):
        factories.preset("Xiaoxiao", engine="kokoro", language="zh")
        _own(alice, deleted_at=timezone.now())
        assert self._names(client.get(URL, headers=alice.headers)) == []

    def test_filters(self, client, alice):
        factories.preset("Hibari", style="warm and calm", gender="female")
        factories.preset("Robin", language="en-GB", gender="male")
        _own(alice)

        def found(**query):
            return self._names(client.get(URL, query, headers=alice.headers))

        assert found(search="ROB") == ["Robin"]
        assert found(search="calm") == ["Hibari"]
        assert found(language="en-gb") == ["Robin"]
        assert found(language="en") == ["Mine", "Robin", "Hibari"]
        assert found(language="e") == []
        assert found(kind="cloned") == ["Mine"]
        assert found(gender="male") == ["Robin"]
        assert found(search="english (us") == ["Mine", "Hibari"], "as the language is called"

    def test_by_tag(self, client, alice, charlie):
        hibari, mine = factories.preset(), _own(alice)
        for voice, tags in ((hibari, ["news"]), (mine, ["News", "calm"])):
            response = client.patch(
                f"{URL}/{voice.id}", {"tags": tags}, content_type="application/json", headers=alice.headers
            )
            assert response.status_code == 200, response.content
        assert response.json()["tags"] == ["calm", "news"], "as the team writes it elsewhere"
        assert self._names(client.get(URL, {"tag": "NEWS"}, headers=alice.headers)) == ["Mine", "Hibari"]
        assert self._names(client.get(URL, {"tag": "calm"}, headers=alice.headers)) == ["Mine"]
        assert self._names(client.get(URL, {"search": "cal"}, headers=alice.headers)) == ["Mine"]
        assert self._names(client.get(URL, {"tag": "ne"}, headers=alice.headers)) == []
        assert self._names(client.get(URL, {"tag": "news"}, headers=charlie.headers)) == []
        assert client.get(f"{URL}/{hibari.id}", headers=charlie.headers).json()["tags"] == []

    def test_pages(self, client, alice):
        for name in "ABC":
            _own(alice, name)
        first = client.get(URL, {"limit": 2}, headers=alice.headers)
        second = client.get(first.json()["next"], headers=alice.headers)
        assert self._names(first) + self._names(second) == ["C", "B", "A"]

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            ({"kind": "x"}, "kind"),
            ({"gender": "x"}, "gender"),
            ({"search": "\x00"}, "search"),
            ({"limit": "x"}, "limit"),
        ],
    )
    def test_a_wrong_query_is_named(self, client, alice, query, param):
        response = client.get(URL, query, headers=alice.headers)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

    def test_a_page_costs_the_same_for_any_number(self, client, alice, django_assert_max_num_queries):
        for number in range(5):
            _own(alice, f"V{number}")
        with django_assert_max_num_queries(5):
            client.get(URL, headers=alice.headers)


class TestCreate:
    @pytest.mark.parametrize(
        "clip", ["austen-0870.wav", "austen-0870.m4a", "austen-0870.webm", "austen-0870-stereo.mp3"]
    )
    def test_from_a_recording(self, client, alice, clip):
        response = _create(client, alice, clip, transcript="Some words.", gender="female")
        assert response.status_code == 201, response.content
        body = response.json()
        voice = Voice.objects.get()
        assert response.headers["Location"] == f"http://testserver{URL}/{voice.id}"
        assert (body["id"], body["kind"], body["cloning"]) == (str(voice.id), "cloned", "nearest_preset")
        assert (body["transcript"], body["gender"], body["version"]) == ("Some words.", "female", 1)
        assert 2.5 < body["quality"]["seconds"] <= 15.5
        assert body["consent"]["by"] == "alice@example.org"
        assert voice.current_version.original_name == clip
        assert "RateLimit" in response.headers

    def test_with_tags_and_what_was_agreed_to(self, client, alice):
        response = _create(client, alice, tags=["news, calm", "Customer A"])
        assert response.status_code == 201, response.content
        assert response.json()["tags"] == ["calm", "Customer A", "news"]
        consent = response.json()["consent"]
        assert (consent["language"], consent["version"]) == ("en", 1)
        assert "permission" in consent["statement"]

    def test_a_chosen_part(self, client, alice):
        response = _create(client, alice, window_start="0.5", window_end="5")
        assert response.status_code == 201, response.content
        assert response.json()["quality"]["window_end"] <= 5.1

    @pytest.mark.parametrize("clip", ["not-audio.wav", "silence-5s.wav", "truncated.m4a"])
    def test_what_is_no_speech(self, client, alice, clip):
        response = _create(client, alice, clip)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")
        assert not Voice.objects.exists()

    def test_a_clip_that_is_too_short(self, client, alice):
        samples, rate = soundfile.read(SPEECH / "austen-0870.wav", frames=int(0.4 * 16000))
        short = io.BytesIO()
        soundfile.write(short, samples, rate, format="WAV")
        response = _create(client, alice, SimpleUploadedFile("short.wav", short.getvalue()))
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")
        assert not Voice.objects.exists()

    @pytest.mark.parametrize(
        ("fields", "code", "param"),
        [
            ({"name": None}, "missing_field", "name"),
            ({"name": ""}, "invalid_value", "name"),
            ({"name": "x" * 101}, "invalid_value", "name"),
            ({"name": "a\x00"}, "invalid_value", "name"),
            ({"name": "a\x07"}, "name_invalid", "name"),
            ({"language": None}, "missing_field", "language"),
            ({"language": "zh"}, "language_not_supported", "language"),
            ({"audio": None}, "missing_field", "audio"),
            ({"audio": "text"}, "invalid_value", "audio"),
            ({"consent": None}, "missing_field", "consent"),
            ({"consent": "false"}, "consent_required", "consent"),
            ({"consent": "maybe"}, "consent_required", "consent"),
            ({"gender": "robot"}, "gender_unknown", "gender"),
            ({"tags": "x" * 41}, "tag_invalid", "tags"),
            ({"transcript": "x" * 2001}, "transcript_invalid", "transcript"),
            ({"transcript": "<|endofprompt|>"}, "transcript_invalid", "transcript"),
            ({"window_start": "1"}, "window_invalid", "window_start"),
            ({"window_start": "3", "window_end": "1"}, "window_invalid", "window_start"),
            ({"window_start": "nan", "window_end": "nan"}, "invalid_value", "window_start"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, code, param):
        assert _error(_create(client, alice, **fields)) == (400, code, param)
        assert not Voice.objects.exists()

    def test_an_empty_file(self, client, alice):
        response = _create(client, alice, SimpleUploadedFile("empty.wav", b""))
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")

    def test_a_name_that_is_taken(self, client, alice):
        _own(alice, "mine")
        assert _error(_create(client, alice))[:2] == (409, "voice_name_taken")

    def test_no_place_left(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, stored_voices=1)
        _own(alice, "Other")
        response = _create(client, alice)
        assert _error(response)[:2] == (409, "voice_limit_reached")
        assert response.headers["x-should-retry"] == "false"

    def test_too_many_in_a_minute(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
        _create(client, alice, consent="false")
        assert _error(_create(client, alice, consent="false"))[:2] == (429, "rate_limit_exceeded")

    def test_another_content_type(self, client, alice):
        response = client.post(URL, "name=x", content_type="text/plain", headers=alice.headers)
        assert _error(response)[:2] == (415, "unsupported_media_type")

    def test_a_broken_form(self, client, alice):
        for content_type in ("multipart/form-data", "multipart/form-data; boundary=x"):
            response = client.post(URL, b"nonsense", content_type=content_type, headers=alice.headers)
            assert response.status_code == 400

    def test_a_body_that_is_too_large_is_not_read(self, client, alice):
        response = client.generic(
            "POST",
            URL,
            b"",
            content_type="multipart/form-data; boundary=x",
            headers=alice.headers,
            CONTENT_LENGTH=str(60 * 1024 * 1024),
            **{"wsgi.input": io.BytesIO()},
        )
        assert _error(response)[:2] == (413, "payload_too_large")

    def test_a_recording_that_is_too_large(self, client, alice, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 0
        assert _error(_create(client, alice)) == (400, "audio_too_large", "audio")


class TestAudioUrl:
    @pytest.fixture(autouse=True)
    def _counts_as_public(self, monkeypatch):
        monkeypatch.setattr(outgoing, "_is_public", lambda address: address == "127.0.0.1")

    def _post(self, client, person, url, **fields):
        body = {"name": "Mine", "language": "en", "consent": True, "audio_url": url} | fields
        return client.post(URL, body, content_type="application/json", headers=person.headers)

    def test_a_recording_that_lies_elsewhere(self, client, alice):
        sound = (SPEECH / "austen-0870.wav").read_bytes()
        with serve(answer(body=sound)) as server:
            response = self._post(client, alice, f"{server.url}/clip.wav")
        assert response.status_code == 201, response.content
        version = Voice.objects.get().current_version
        assert version.original_name == "clip.wav"
        assert storage.get(version.original_key) == sound

    def test_in_a_form(self, client, alice):
        sound = (SPEECH / "austen-0870.wav").read_bytes()
        with serve(answer(body=sound)) as server:
            response = _create(client, alice, audio=None, audio_url=server.url)
        assert response.status_code == 201, response.content

    def test_what_is_no_speech(self, client, alice):
        with serve(answer(body=b"<html>")) as server:
            response = self._post(client, alice, server.url)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")

    def test_nothing_there(self, client, alice):
        with serve(answer(404)) as server:
            response = self._post(client, alice, server.url)
        assert _error(response) == (400, "audio_unreachable", "audio_url")

    def test_too_much(self, client, alice, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 1
        with serve(answer(body=b"x" * (2**20 + 1))) as server:
            response = self._post(client, alice, server.url)
        assert _error(response) == (400, "audio_too_large", "audio_url")

    @pytest.mark.parametrize(
        "url", ["http://[::1]:9/", "http://10.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd", "x"]
    )
    def test_an_internal_address_or_none(self, client, alice, url):
        assert _error(self._post(client, alice, url)) == (400, "address_refused", "audio_url")
        assert not Voice.objects.exists()

    def test_a_redirect_inwards(self, client, alice):
        with serve(answer(302, Location="http://10.0.0.1/")) as server:
            response = self._post(client, alice, server.url)
        assert _error(response) == (400, "address_refused", "audio_url")

    @pytest.mark.parametrize("consent", [False, "no"])
    def test_nothing_is_fetched_without_consent(self, client, alice, consent):
        with serve(answer(body=b"x")) as server:
            response = self._post(client, alice, server.url, consent=consent)
        assert _error(response) == (400, "consent_required", "consent")
        assert server.seen == []

    def test_both_or_neither(self, client, alice):
        assert _error(_create(client, alice, audio_url="http://example.org/")) == (
            400,
            "audio_and_audio_url",
            "audio_url",
        )
        assert _error(_create(client, alice, audio=None)) == (400, "missing_field", "audio")


class TestOne:
    def test_show(self, client, alice):
        voice = _own(alice)
        assert client.get(f"{URL}/{voice.id}", headers=alice.headers).json()["name"] == "Mine"
        preset = factories.preset()
        assert client.get(f"{URL}/{preset.id}", headers=alice.headers).json()["kind"] == "preset"

    def _patch(self, client, person, voice, **fields):
        return client.patch(
            f"{URL}/{voice.id}", fields, content_type="application/json", headers=person.headers
        )

    def test_change(self, client, alice):
        voice = _own(alice)
        body = self._patch(client, alice, voice, name="Yours", gender="male").json()
        assert (body["name"], body["gender"], body["version"]) == ("Yours", "male", 1)
        body = self._patch(client, alice, voice, transcript="Other words.").json()
        assert (body["transcript"], body["version"]) == ("Other words.", 2)

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"name": ""}, "name"),
            ({"name": 5}, "name"),
            ({"name": "a\x00"}, "name"),
            ({"language": "xx"}, "language"),
            ({"gender": "robot"}, "gender"),
            ({"window_start": 2}, "window_start"),
            ({"window_start": 2, "window_end": "x"}, "window_end"),
        ],
    )
    def test_a_wrong_change_is_named(self, client, alice, fields, param):
        response = self._patch(client, alice, _own(alice), **fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

    def test_a_name_that_is_taken(self, client, alice):
        _own(alice, "Other")
        assert _error(self._patch(client, alice, _own(alice), name="other"))[:2] == (409, "voice_name_taken")

    def test_delete(self, client, alice):
        voice = _own(alice)
        assert client.delete(f"{URL}/{voice.id}", headers=alice.headers).status_code == 204
        assert client.get(f"{URL}/{voice.id}", headers=alice.headers).status_code == 404
        assert client.delete(f"{URL}/{voice.id}", headers=alice.headers).status_code == 404

    def test_deleting_ends_what_waits_for_it_and_what_is_being_spoken(self, client, alice):
        voice = _own(alice)
        spoken, waiting, other = (
            factories.submit(alice, voice=str(voice.id)),
            factories.submit(alice, voice=str(voice.id)),
            factories.submit(alice),
        )
        finished.claim(spoken)
        assert client.delete(f"{URL}/{voice.id}", headers=alice.headers).status_code == 204
        for request in (spoken, waiting):
            request.refresh_from_db()
            assert (request.status, request.error_code) == ("failed", "voice_deleted")
        other.refresh_from_db()
        assert other.status == "queued"
        assert limits.standing(alice.by_key).reserved == other.characters

    def test_a_preset_is_nobodys_to_change(self, client, alice):
        preset = factories.preset()
        assert self._patch(client, alice, preset, name="Mine").status_code == 404
        assert client.delete(f"{URL}/{preset.id}", headers=alice.headers).status_code == 404

    def test_hear(self, client, alice):
        response = client.get(f"{URL}/{_own(alice).id}/sample", headers=alice.headers)
        assert (response.status_code, response.getvalue()) == (200, b"RIFF sound")
        assert response.headers["Content-Type"] == "audio/wav"
        assert response.headers["Content-Disposition"] == 'inline; filename="Mine.wav"'


#: Every route, with its method.
ROUTES = [("get", ""), ("patch", ""), ("delete", ""), ("get", "/sample")]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers_voice(self, client, alice, charlie, method, what):
        url = f"{URL}/{_own(alice).id}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=charlie.headers)
        assert _error(response)[:2] == (404, "voice_not_found")
        assert Voice.objects.get().deleted_at is None

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "Mine", "a%00b"])
    def test_what_does_not_exist(self, client, alice, method, what, identifier):
        _own(alice)
        url = f"{URL}/{identifier}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=alice.headers)
        assert _error(response)[:2] == (404, "voice_not_found")

    @pytest.mark.parametrize(("method", "what"), [*ROUTES, ("post", None)])
    def test_no_key(self, client, alice, method, what):
        url = URL if what is None else f"{URL}/{_own(alice).id}{what}"
        assert getattr(client, method)(url).status_code == 401

    def test_an_expired_key(self, client, alice):
        alice.by_key.api_key.expires_at = timezone.now() - timedelta(seconds=1)
        alice.by_key.api_key.save()
        assert _error(_create(client, alice))[:2] == (401, "api_key_expired")

    @pytest.mark.parametrize(("method", "what"), [("put", ""), ("post", ""), ("delete", "/sample")])
    def test_wrong_method(self, client, alice, method, what):
        response = getattr(client, method)(f"{URL}/{_own(alice).id}{what}", headers=alice.headers)
        assert _error(response)[:2] == (405, "method_not_allowed")

    def test_a_viewer_looks_and_does_not_touch(self, client, alice):
        voice = _own(alice)
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(f"{URL}/{voice.id}", headers=bob.headers).status_code == 200
        assert _error(_create(client, bob))[:2] == (403, "permission_denied")
        assert _error(client.delete(f"{URL}/{voice.id}", headers=bob.headers))[:2] == (
            403,
            "permission_denied",
        )

    def test_a_key_that_only_reads(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        response = client.delete(f"{URL}/{_own(alice).id}", headers={"authorization": f"Bearer {secret}"})
        assert _error(response)[:2] == (403, "insufficient_scope")


def test_with_an_idempotency_key_one_voice_is_made(client, alice):
    keyed = {"idempotency-key": "again"}

    def send(**fields):
        sound = SimpleUploadedFile("a.wav", (SPEECH / "austen-0870.wav").read_bytes())
        form = {"name": "Mine", "language": "en-US", "consent": "true", "audio": sound} | fields
        return client.post(URL, form, headers=alice.headers | keyed)

    first, second = send(), send()
    assert (first.status_code, second.status_code) == (201, 201), second.content
    assert second.json() == first.json()
    assert second.headers["Location"] == first.headers["Location"]
    assert (first.headers.get("Idempotent-Replayed"), second.headers["Idempotent-Replayed"]) == (None, "true")
    assert Voice.objects.filter(team=alice.actor.team).count() == 1
    assert _error(send(name="Other")) == (422, "idempotency_key_reused", "Idempotency-Key")
    # Another recording is another request too, whatever it is called.
    other = SimpleUploadedFile("a.wav", (SPEECH / "austen-0870.wav").read_bytes() + b"\0\0")
    assert _error(send(audio=other))[1] == "idempotency_key_reused"
    client.delete(f"{URL}/{first.json()['id']}", headers=alice.headers)
    assert send().headers.get("Idempotent-Replayed") is None


def test_a_misspelt_field_is_refused_and_elevenlabs_clients_may_ask_for_what_they_like(client, alice):
    assert _error(_create(client, alice, consents="true")) == (400, "unknown_field", "consents")
    assert _error(client.get(f"{URL}?order=x", headers=alice.headers)) == (400, "unknown_field", "order")
    theirs = {"xi-api-key": alice.headers["authorization"].removeprefix("Bearer ")}
    assert client.get(f"{URL}?show_legacy=true", headers=theirs).status_code == 200
