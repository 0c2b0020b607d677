"""`/v1/audio/voices` and `/v1/audio/voice_consents`."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import Role
from synthesis import storage
from synthesis.models import Voice, VoiceConsent
from synthesis.services import housekeeping
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

VOICES = "/v1/audio/voices"
CONSENTS = "/v1/audio/voice_consents"
SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"


def _clip(name="austen-0870.wav"):
    return SimpleUploadedFile(name, (SPEECH / name).read_bytes())


def _consent(person, name="Yes", **fields):
    """A recorded consent without the work of checking one."""
    return VoiceConsent.objects.create(
        team=person.actor.team, name=name, language="en-US", recording_key="k", **fields
    )


def _record(client, person, **fields):
    form = {"name": "I agree", "language": "en-US", "recording": _clip()} | fields
    form = {name: value for name, value in form.items() if value is not None}
    return client.post(CONSENTS, form, headers=person.headers)


def _create(client, person, **fields):
    form = {"name": "Mine", "audio_sample": _clip("austen-0880.wav")} | fields
    return client.post(VOICES, form, headers=person.headers)


def _error(response):
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


class TestConsents:
    def test_record(self, client, alice):
        response = _record(client, alice)
        assert response.status_code == 200, response.content
        row = VoiceConsent.objects.get()
        assert response.json() == {
            "object": "audio.voice_consent",
            "id": str(row.id),
            "name": "I agree",
            "language": "en-US",
            "created_at": int(row.created_at.timestamp()),
        }
        assert storage.get(row.recording_key) == (SPEECH / "austen-0870.wav").read_bytes()
        assert "RateLimit" in response.headers

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ({"name": ""}, "name"),
            ({"name": None}, "name"),
            ({"name": "\x07"}, "name"),
            ({"language": "english please"}, "language"),
            ({"language": "e"}, "language"),
            ({"language": None}, "language"),
            ({"recording": None}, "recording"),
            ({"recording": "text"}, "recording"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, param):
        response = _record(client, alice, **fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)
        assert not VoiceConsent.objects.exists()

    @pytest.mark.parametrize("clip", ["silence-5s.wav", "not-audio.wav", "truncated.m4a"])
    def test_what_is_no_speech(self, client, alice, clip):
        response = _record(client, alice, recording=_clip(clip))
        assert (response.status_code, response.json()["error"]["param"]) == (400, "recording")
        assert not VoiceConsent.objects.exists()

    def test_list(self, client, alice, charlie):
        rows = [_consent(alice, f"Number {n}") for n in range(3)]
        _consent(charlie)
        _consent(alice, deleted_at=timezone.now())
        first = client.get(CONSENTS, {"limit": 2}, headers=alice.headers).json()
        assert (first["object"], first["has_more"]) == ("list", True)
        assert [item["id"] for item in first["data"]] == [str(rows[2].id), str(rows[1].id)]
        assert (first["first_id"], first["last_id"]) == (str(rows[2].id), str(rows[1].id))
        query = {"limit": 2, "after": first["last_id"]}
        second = client.get(CONSENTS, query, headers=alice.headers).json()
        assert ([item["id"] for item in second["data"]], second["has_more"]) == ([str(rows[0].id)], False)
        query = {"after": second["last_id"]}
        third = client.get(CONSENTS, query, headers=alice.headers).json()
        assert (third["data"], third["first_id"], third["last_id"]) == ([], None, None)

    @pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "x"}, {"after": "x"}, {"after": "\x00"}])
    def test_a_wrong_query(self, client, alice, query):
        response = client.get(CONSENTS, query, headers=alice.headers)
        assert (response.status_code, response.json()["error"]["param"]) == (400, next(iter(query)))

    def test_show_and_rename(self, client, alice):
        url = f"{CONSENTS}/{_consent(alice).id}"
        assert client.get(url, headers=alice.headers).json()["name"] == "Yes"
        response = client.post(url, {"name": "No"}, content_type="application/json", headers=alice.headers)
        assert response.json()["name"] == "No"
        response = client.post(url, {"name": ""}, content_type="application/json", headers=alice.headers)
        assert _error(response)[2] == "name"

    def test_delete(self, client, alice):
        _record(client, alice)
        row = VoiceConsent.objects.get()
        response = client.delete(f"{CONSENTS}/{row.id}", headers=alice.headers)
        assert response.json() == {"object": "audio.voice_consent", "id": str(row.id), "deleted": True}
        assert client.get(f"{CONSENTS}/{row.id}", headers=alice.headers).status_code == 404
        VoiceConsent.objects.update(deleted_at=timezone.now() - timedelta(hours=1))
        housekeeping.delete_orphans()
        assert not VoiceConsent.objects.exists()
        assert storage.delete_prefix(row.recording_key) == 0


class TestVoices:
    def test_create_use_and_delete(self, client, alice):
        consent = _consent(alice)
        response = _create(client, alice, consent=str(consent.id), ref_text="Some words.")
        assert response.status_code == 200, response.content
        row = Voice.objects.get()
        assert response.json() == {
            "object": "audio.voice",
            "id": str(row.id),
            "name": "Mine",
            "type": "audio_sample",
            "created_at": int(row.created_at.timestamp()),
        }
        assert row.language == "en-US"
        assert row.current_version.transcript == "Some words."
        assert row.current_version.consent_recording == consent
        assert client.get(f"{VOICES}/{row.id}", headers=alice.headers).json() == response.json()
        # The evidence stays as long as the voice.
        in_use = client.delete(f"{CONSENTS}/{consent.id}", headers=alice.headers)
        assert _error(in_use)[:2] == (409, "consent_in_use")
        response = client.delete(f"{VOICES}/{row.id}", headers=alice.headers)
        assert response.json() == {"object": "audio.voice.deleted", "id": str(row.id), "deleted": True}
        assert client.delete(f"{CONSENTS}/{consent.id}", headers=alice.headers).status_code == 200

    def test_list(self, client, alice, charlie):
        factories.preset()
        Voice.objects.create(team=alice.actor.team, kind="cloned", name="Mine", language="en-US")
        Voice.objects.create(team=charlie.actor.team, kind="cloned", name="Hers", language="en-US")
        body = client.get(VOICES, headers=alice.headers).json()
        assert [(voice["name"], voice["type"]) for voice in body["data"]] == [
            ("Mine", "audio_sample"),
            ("Hibari", "preset"),
        ]

    def test_a_preset_stays(self, client, alice):
        url = f"{VOICES}/{factories.preset().id}"
        assert _error(client.delete(url, headers=alice.headers))[:2] == (403, "voice_is_preset")
        assert client.get(url, headers=alice.headers).json()["type"] == "preset"

    def test_what_is_said_twice(self, client, alice):
        consents = [str(_consent(alice, name).id) for name in ("One", "Two")]
        assert _error(_create(client, alice, consent=consents)) == (400, "parameter_repeated", "consent")
        assert not Voice.objects.exists()

    def test_without_a_consent(self, client, alice, charlie):
        hers = _consent(charlie)
        for given in ("", "true", str(uuid.uuid4()), str(hers.id), "\x00"):
            response = _create(client, alice, consent=given)
            assert (response.status_code, response.json()["error"]["param"]) == (400, "consent")
        assert _create(client, alice).json()["error"]["param"] == "consent"
        assert not Voice.objects.exists()

    def test_what_is_no_speech(self, client, alice):
        response = _create(client, alice, consent=_consent(alice).id, audio_sample=_clip("silence-5s.wav"))
        assert (response.status_code, response.json()["error"]["param"]) == (400, "audio_sample")

    def test_a_transcript_that_cannot_be(self, client, alice):
        response = _create(client, alice, consent=_consent(alice).id, ref_text="x" * 3000)
        assert _error(response) == (400, "transcript_invalid", "ref_text")

    def test_a_language_that_the_engine_has_not(self, client, alice):
        response = _create(client, alice, consent=_consent(alice).id, language="zh")
        assert _error(response) == (400, "language_not_supported", "language")

    @pytest.mark.parametrize("content_type", ["application/json", None])
    def test_a_voice_from_words(self, client, alice, content_type):
        body = {"type": "prompt", "name": "x", "prompt": "A deep voice"}
        options = {"content_type": content_type} if content_type else {}
        response = client.post(VOICES, body, headers=alice.headers, **options)
        assert _error(response) == (400, "voice_type_not_supported", "type")

    def test_json_without_a_sample(self, client, alice):
        response = client.post(VOICES, {"name": "x"}, content_type="application/json", headers=alice.headers)
        assert _error(response)[:2] == (400, "missing_field")


#: Every route of one object, with its method.
ROUTES = [
    ("get", VOICES),
    ("delete", VOICES),
    ("get", CONSENTS),
    ("post", CONSENTS),
    ("delete", CONSENTS),
]


class TestWhoMay:
    def _one(self, person, url):
        if url == CONSENTS:
            return f"{url}/{_consent(person).id}"
        return f"{url}/{Voice.objects.create(team=person.actor.team, kind='cloned', name='A', language='en-US').id}"

    @pytest.mark.parametrize(("method", "url"), ROUTES)
    def test_a_strangers(self, client, alice, charlie, method, url):
        one = self._one(alice, url)
        response = getattr(client, method)(
            one, {"name": "x"}, content_type="application/json", headers=charlie.headers
        )
        assert response.status_code == 404
        assert response.json()["error"]["code"] in {"voice_not_found", "consent_not_found"}

    @pytest.mark.parametrize(("method", "url"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense"])
    def test_what_does_not_exist(self, client, alice, method, url, identifier):
        response = getattr(client, method)(
            f"{url}/{identifier}", {"name": "x"}, content_type="application/json", headers=alice.headers
        )
        assert response.status_code == 404

    @pytest.mark.parametrize("url", [VOICES, CONSENTS])
    def test_no_key_wrong_method_viewer(self, client, alice, url):
        one = self._one(alice, url)
        assert client.get(url).status_code == 401
        assert client.post(url).status_code == 401
        assert client.get(one).status_code == 401
        assert client.patch(url, headers=alice.headers).status_code == 405
        assert client.patch(one, headers=alice.headers).status_code == 405
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(one, headers=bob.headers).status_code == 200
        assert client.delete(one, headers=bob.headers).status_code == 403
        assert client.post(url, headers=bob.headers).status_code == 403

    @pytest.mark.parametrize("url", [VOICES, CONSENTS])
    def test_a_body_that_is_too_large(self, client, alice, url):
        response = client.generic(
            "POST",
            url,
            b"",
            content_type="multipart/form-data; boundary=x",
            headers=alice.headers,
            CONTENT_LENGTH=str(11 * 2**20),
        )
        assert _error(response)[:2] == (413, "payload_too_large")
