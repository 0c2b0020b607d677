"""`POST /v1/voices`: from a recording that is sent, or that lies elsewhere."""

from __future__ import annotations

import io

import pytest
import soundfile
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts import outgoing
from accounts.models import TeamQuota
from synthesis import storage
from synthesis.models import Voice
from tests.accounts.test_outgoing import answer, serve
from tests.synthesis.voicing import SPEECH, URL, create, error, own

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


class TestCreate:
    @pytest.mark.parametrize(
        "clip", ["austen-0870.wav", "austen-0870.m4a", "austen-0870.webm", "austen-0870-stereo.mp3"]
    )
    def test_from_a_recording(self, client, alice, clip):
        response = create(client, alice, clip, transcript="Some words.", gender="female")
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
        response = create(client, alice, tags=["news, calm", "Customer A"])
        assert response.status_code == 201, response.content
        assert response.json()["tags"] == ["calm", "Customer A", "news"]
        consent = response.json()["consent"]
        assert (consent["language"], consent["version"]) == ("en", 1)
        assert "permission" in consent["statement"]

    def test_a_chosen_part(self, client, alice):
        response = create(client, alice, window_start="0.5", window_end="5")
        assert response.status_code == 201, response.content
        assert response.json()["quality"]["window_end"] <= 5.1

    @pytest.mark.parametrize("clip", ["not-audio.wav", "silence-5s.wav", "truncated.m4a"])
    def test_what_is_no_speech(self, client, alice, clip):
        response = create(client, alice, clip)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")
        assert not Voice.objects.exists()

    def test_a_clip_that_is_too_short(self, client, alice):
        samples, rate = soundfile.read(SPEECH / "austen-0870.wav", frames=int(0.4 * 16000))
        short = io.BytesIO()
        soundfile.write(short, samples, rate, format="WAV")
        response = create(client, alice, SimpleUploadedFile("short.wav", short.getvalue()))
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
            ({"window_start": "3", "window_end": "100"}, "audio_window", "window_start"),
            ({"name": ["Mine", "Hers"]}, "parameter_repeated", "name"),
            ({"consent": ["true", "false"]}, "parameter_repeated", "consent"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, code, param):
        assert error(create(client, alice, **fields)) == (400, code, param)
        assert not Voice.objects.exists()

    def test_an_empty_file(self, client, alice):
        response = create(client, alice, SimpleUploadedFile("empty.wav", b""))
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio")

    def test_a_name_that_is_taken(self, client, alice):
        own(alice, "mine")
        assert error(create(client, alice))[:2] == (409, "voice_name_taken")

    def test_no_place_left(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, stored_voices=1)
        own(alice, "Other")
        response = create(client, alice)
        assert error(response)[:2] == (409, "voice_limit_reached")
        assert response.headers["x-should-retry"] == "false"

    def test_too_many_in_a_minute(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
        create(client, alice, consent="false")
        assert error(create(client, alice, consent="false"))[:2] == (429, "rate_limit_exceeded")

    def test_another_content_type(self, client, alice):
        response = client.post(URL, "name=x", content_type="text/plain", headers=alice.headers)
        assert error(response)[:2] == (415, "unsupported_media_type")

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
        assert error(response)[:2] == (413, "payload_too_large")

    def test_a_recording_that_is_too_large(self, client, alice, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 0
        assert error(create(client, alice)) == (400, "audio_too_large", "audio")


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
            response = create(client, alice, audio=None, audio_url=server.url)
        assert response.status_code == 201, response.content

    def test_what_is_no_speech(self, client, alice):
        with serve(answer(body=b"<html>")) as server:
            response = self._post(client, alice, server.url)
            again = client.post(
                f"{URL}/{own(alice).id}/versions",
                {"audio_url": server.url, "consent": True},
                content_type="application/json",
                headers=alice.headers,
            )
        for one in (response, again):
            assert (one.status_code, one.json()["error"]["param"]) == (400, "audio_url")

    def test_nothing_there(self, client, alice):
        with serve(answer(404)) as server:
            response = self._post(client, alice, server.url)
        assert error(response) == (400, "audio_unreachable", "audio_url")

    def test_too_much(self, client, alice, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 1
        with serve(answer(body=b"x" * (2**20 + 1))) as server:
            response = self._post(client, alice, server.url)
        assert error(response) == (400, "audio_too_large", "audio_url")

    @pytest.mark.parametrize(
        "url", ["http://[::1]:9/", "http://10.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd", "x"]
    )
    def test_an_internal_address_or_none(self, client, alice, url):
        assert error(self._post(client, alice, url)) == (400, "address_refused", "audio_url")
        assert not Voice.objects.exists()

    def test_a_redirect_inwards(self, client, alice):
        with serve(answer(302, Location="http://10.0.0.1/")) as server:
            response = self._post(client, alice, server.url)
        assert error(response) == (400, "address_refused", "audio_url")

    @pytest.mark.parametrize("consent", [False, "no"])
    def test_nothing_is_fetched_without_consent(self, client, alice, consent):
        with serve(answer(body=b"x")) as server:
            response = self._post(client, alice, server.url, consent=consent)
        assert error(response) == (400, "consent_required", "consent")
        assert server.seen == []

    def test_both_or_neither(self, client, alice):
        assert error(create(client, alice, audio_url="http://example.org/")) == (
            400,
            "audio_and_audio_url",
            "audio_url",
        )
        assert error(create(client, alice, audio=None)) == (400, "missing_field", "audio")


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
    assert error(send(name="Other")) == (422, "idempotency_key_reused", "Idempotency-Key")
    # Another recording is another request too, whatever it is called.
    other = SimpleUploadedFile("a.wav", (SPEECH / "austen-0870.wav").read_bytes() + b"\0\0")
    assert error(send(audio=other))[1] == "idempotency_key_reused"
    client.delete(f"{URL}/{first.json()['id']}", headers=alice.headers)
    assert send().headers.get("Idempotent-Replayed") is None
