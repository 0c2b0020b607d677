"""`/v1/voices/{id}/versions` and `/preview`."""

from __future__ import annotations

import uuid

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.ids import new_id
from accounts.models import TeamQuota
from accounts.services import keys
from synthesis.models import SynthesisRequest, Voice, VoiceVersion
from tests import factories
from tests.synthesis import finished
from tests.synthesis.voicing import SPEECH, URL, create, error, own

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


def _clip(name="austen-0870.wav"):
    return SimpleUploadedFile(name, (SPEECH / name).read_bytes())


class TestSeveralRecordings:
    def test_the_best_is_used_and_each_is_judged_in_words(self, client, alice):
        response = create(
            client,
            alice,
            [_clip("silence-5s.wav"), _clip("austen-0870-8k.wav"), _clip()],
            transcript=["", "Narrow.", "Good."],
        )
        assert response.status_code == 201, response.content
        body = response.json()
        assert body["transcript"] == "Good."
        assert [(one["name"], one["used"]) for one in body["recordings"]] == [
            ("silence-5s.wav", False),
            ("austen-0870-8k.wav", False),
            ("austen-0870.wav", True),
        ]
        silence, narrow, good = (one["warnings"] for one in body["recordings"])
        assert (silence[0]["code"], narrow[0]["code"], good) == ("no_speech", "narrow_band", [])
        assert "telephone" in narrow[0]["message"]
        assert body["quality"]["warnings"] == []
        url = f"{URL}/{body['id']}"
        body = client.patch(
            url, {"recording": 2}, content_type="application/json", headers=alice.headers
        ).json()
        assert (body["version"], body["transcript"]) == (2, "Narrow.")
        assert body["quality"]["warnings"][0]["code"] == "narrow_band"
        chinese = client.get(url, headers=alice.headers | {"accept-language": "zh-hans"}).json()
        assert chinese["quality"]["warnings"][0]["message"] != narrow[0]["message"]

    def test_as_many_words_as_recordings(self, client, alice):
        response = create(client, alice, [_clip(), _clip()], transcript=["One."])
        assert error(response) == (400, "transcript_invalid", "transcript")

    def test_six_are_too_many(self, client, alice):
        assert error(create(client, alice, [_clip()] * 6)) == (400, "too_many_recordings", "audio")

    def test_together_they_are_too_large(self, client, alice, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 0
        clips = [SimpleUploadedFile("a.wav", b"x" * 1000), SimpleUploadedFile("b.wav", b"x" * 1000)]
        assert error(create(client, alice, clips)) == (400, "audio_too_large", "audio")


class TestVersions:
    def _post(self, client, person, voice, **fields):
        form = {"audio": _clip("austen-0890.wav"), "consent": "true"} | fields
        form = {name: value for name, value in form.items() if value is not None}
        return client.post(f"{URL}/{voice.id}/versions", form, headers=person.headers)

    def test_record_again_list_hear_and_go_back(self, client, alice):
        voice = own(alice)
        response = self._post(client, alice, voice, transcript="New words.")
        assert response.status_code == 201, response.content
        assert (response.json()["version"], response.json()["transcript"]) == (2, "New words.")
        assert "RateLimit" in response.headers
        url = f"{URL}/{voice.id}"
        listed = client.get(f"{url}/versions", headers=alice.headers).json()["results"]
        assert [(one["version"], one["current"]) for one in listed] == [(2, True), (1, False)]
        assert listed[1]["transcript"] == "What was said."
        assert listed[1]["consent"]["by"] == "alice@example.org"
        old = client.get(listed[1]["sample_url"], headers=alice.headers)
        assert old.getvalue() == b"RIFF sound"
        new = client.get(f"{url}/sample", headers=alice.headers)
        assert new.getvalue()[:4] == b"RIFF"
        assert len(new.getvalue()) > 1000 or new.getvalue() != b"RIFF sound"
        body = client.patch(
            url, {"version": 1}, content_type="application/json", headers=alice.headers
        ).json()
        assert (body["version"], body["transcript"]) == (1, "What was said.")

    def test_pages(self, client, alice):
        voice = own(alice)
        for number in (2, 3):
            version = VoiceVersion.objects.get(voice=voice, number=number - 1)
            version.pk, version.number, version._state.adding = new_id(), number, True
            version.save()
        first = client.get(f"{URL}/{voice.id}/versions", {"limit": 2}, headers=alice.headers).json()
        second = client.get(first["next"], headers=alice.headers).json()
        assert [one["version"] for one in first["results"] + second["results"]] == [3, 2, 1]

    @pytest.mark.parametrize(
        ("fields", "code", "param"),
        [
            ({"consent": None}, "missing_field", "consent"),
            ({"consent": "no"}, "consent_required", "consent"),
            ({"audio": None}, "missing_field", "audio"),
            ({"audio": SimpleUploadedFile("a.wav", b"text")}, "audio_unreadable", "audio"),
            ({"transcript": "<|x|>"}, "transcript_invalid", "transcript"),
            ({"window_start": "1"}, "window_invalid", "window_start"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, code, param):
        voice = own(alice)
        assert error(self._post(client, alice, voice, **fields)) == (400, code, param)
        assert voice.versions.count() == 1

    @pytest.mark.parametrize("number", [0, 9, "x"])
    def test_a_version_that_is_not_there(self, client, alice, number):
        voice = own(alice)
        response = client.get(f"{URL}/{voice.id}/sample", {"version": number}, headers=alice.headers)
        assert response.status_code in (400, 404)
        body = client.patch(
            f"{URL}/{voice.id}", {"version": number}, content_type="application/json", headers=alice.headers
        )
        assert body.status_code in (400, 404)

    def test_too_many_in_a_minute(self, client, alice):
        voice = own(alice)
        TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
        self._post(client, alice, voice, consent="no")
        assert error(self._post(client, alice, voice))[:2] == (429, "rate_limit_exceeded")


class TestPreview:
    def _post(self, client, person, voice, **fields):
        return client.post(
            f"{URL}/{voice.id}/preview", fields, content_type="application/json", headers=person.headers
        )

    def test_a_sentence_in_its_language(self, client, alice):
        voice = own(alice)
        response = self._post(client, alice, voice)
        assert response.status_code == 201, response.content
        body = response.json()
        assert response.headers["Location"] == body["urls"]["get"]
        assert (body["status"], body["title"]) == ("queued", "Test of “Mine”")
        assert body["input"]["text"].startswith("Hello!")
        row = SynthesisRequest.objects.get()
        assert (row.voice_version.number, row.characters) == (1, len(row.text))

    def test_ones_own_sentence_and_a_preset(self, client, alice):
        body = self._post(client, alice, factories.preset(), text="Good evening.").json()
        assert body["input"]["text"] == "Good evening."

    def test_it_is_waited_for_and_sent_twice_it_is_spoken_once(self, client, alice, monkeypatch):
        voice = own(alice)
        waited = []

        def speak(request_id, seconds):
            waited.append(seconds)
            finished.succeed(SynthesisRequest.objects.get(id=request_id))

        monkeypatch.setattr("synthesis.api.held._wait", speak)
        headers = alice.headers | {"prefer": "wait=5", "idempotency-key": "try"}
        response = client.post(
            f"{URL}/{voice.id}/preview", {}, content_type="application/json", headers=headers
        )
        assert (response.status_code, response.headers["Preference-Applied"]) == (201, "wait=5")
        assert response.json()["status"] == "succeeded"
        again = client.post(
            f"{URL}/{voice.id}/preview",
            {},
            content_type="application/json",
            headers=alice.headers | {"idempotency-key": "try"},
        )
        assert (again.headers["Idempotent-Replayed"], again.json()["id"]) == ("true", response.json()["id"])
        assert waited == [5]

    @pytest.mark.parametrize(
        ("text", "code"), [("x" * 301, "text_too_long"), ("  ", "text_empty"), (5, "invalid_value")]
    )
    def test_what_cannot_be_said(self, client, alice, text, code):
        response = self._post(client, alice, own(alice), text=text)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "text")
        assert response.json()["error"]["code"] in {code, "nothing_to_speak"}

    def test_what_is_used_up(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        response = self._post(client, alice, own(alice))
        assert error(response)[:2] == (429, "quota_exceeded")
        assert int(response.headers["Retry-After"]) > 0


#: Every route of this file, with its method.
ROUTES = [("get", "/versions"), ("post", "/versions"), ("post", "/preview")]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers_voice(self, client, alice, charlie, method, what):
        url = f"{URL}/{own(alice).id}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=charlie.headers)
        assert error(response)[:2] == (404, "voice_not_found")
        assert VoiceVersion.objects.count() == 1
        assert not SynthesisRequest.objects.exists()

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_colleagues_private_one(self, client, alice, method, what):
        bob = factories.colleague(alice, "Bob")
        url = f"{URL}/{own(alice, shared=False).id}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=bob.headers)
        assert error(response)[:2] == (404, "voice_not_found")

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "Mine"])
    def test_what_does_not_exist(self, client, alice, method, what, identifier):
        url = f"{URL}/{identifier}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=alice.headers)
        assert error(response)[:2] == (404, "voice_not_found")

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_no_key_and_one_that_only_reads(self, client, alice, method, what):
        url = f"{URL}/{own(alice).id}{what}"
        assert getattr(client, method)(url).status_code == 401
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        response = getattr(client, method)(url, headers={"authorization": f"Bearer {secret}"})
        expected = 200 if method == "get" else 403
        assert response.status_code == expected

    @pytest.mark.parametrize(
        ("method", "what"), [("delete", "/versions"), ("get", "/preview"), ("put", "/versions")]
    )
    def test_wrong_method(self, client, alice, method, what):
        response = getattr(client, method)(f"{URL}/{own(alice).id}{what}", headers=alice.headers)
        assert error(response)[:2] == (405, "method_not_allowed")


class TestSharing:
    def _patch(self, client, person, voice, **fields):
        return client.patch(
            f"{URL}/{voice.id}", fields, content_type="application/json", headers=person.headers
        )

    def test_a_private_one_is_seen_by_its_maker_and_who_manages_the_team(self, client, alice):
        bob, carla = factories.colleague(alice, "Bob"), factories.colleague(alice, "Carla")
        response = create(client, bob, shared="false")
        assert response.status_code == 201, response.content
        assert (response.json()["shared"], response.json()["owner"]) == (False, "bob@example.org")
        voice = Voice.objects.get()

        def seen(person):
            listed = client.get(URL, headers=person.headers).json()["results"]
            shown = client.get(f"{URL}/{voice.id}", headers=person.headers)
            assert bool(listed) == (shown.status_code == 200)
            return bool(listed)

        assert [seen(person) for person in (alice, bob, carla)] == [True, True, False]
        assert self._patch(client, bob, voice, shared=True).json()["shared"] is True
        assert seen(carla)
        assert error(self._patch(client, carla, voice, shared=False)) == (403, "permission_denied", "shared")
