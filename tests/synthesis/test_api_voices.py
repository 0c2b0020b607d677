"""`/v1/voices`: list, show, change, delete, hear."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import Role
from accounts.services import keys, limits
from synthesis.models import Voice
from tests import factories
from tests.synthesis import finished
from tests.synthesis.voicing import URL, create, error, own

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


class TestList:
    def _names(self, response):
        assert response.status_code == 200, response.content
        return [voice["name"] for voice in response.json()["results"]]

    def test_presets_and_the_teams_own(self, client, alice):
        preset, made = factories.preset(), own(alice)
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
        assert (mine["id"], mine["kind"], mine["cloning"]) == (str(made.id), "cloned", "nearest_preset")
        assert (mine["nearest_preset"], mine["version"], mine["transcript"]) == ("Heart", 1, "What was said.")
        assert (mine["quality"]["window_start"], mine["quality"]["window_end"]) == (1.0, 9.0)
        assert (mine["consent"]["statement"], mine["consent"]["by"]) == ("I agree.", "alice@example.org")

    def test_a_strangers_voices_are_not_there(self, client, alice, charlie):
        own(alice)
        assert self._names(client.get(URL, headers=charlie.headers)) == []

    def test_nor_another_engines_nor_deleted_ones(self, client, alice):
        factories.preset("Xiaoxiao", engine="kokoro", language="zh")
        own(alice, deleted_at=timezone.now())
        assert self._names(client.get(URL, headers=alice.headers)) == []

    def test_filters(self, client, alice):
        factories.preset("Hibari", style="warm and calm", gender="female")
        factories.preset("Robin", language="en-GB", gender="male")
        own(alice)

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
        hibari, mine = factories.preset(), own(alice)
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
            own(alice, name)
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
            own(alice, f"V{number}")
        with django_assert_max_num_queries(5):
            client.get(URL, headers=alice.headers)


class TestOne:
    def test_show(self, client, alice):
        voice = own(alice)
        assert client.get(f"{URL}/{voice.id}", headers=alice.headers).json()["name"] == "Mine"
        preset = factories.preset()
        assert client.get(f"{URL}/{preset.id}", headers=alice.headers).json()["kind"] == "preset"

    def _patch(self, client, person, voice, **fields):
        return client.patch(
            f"{URL}/{voice.id}", fields, content_type="application/json", headers=person.headers
        )

    def test_change(self, client, alice):
        voice = own(alice)
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
            ({"recording": 2}, "recording"),
        ],
    )
    def test_a_wrong_change_is_named(self, client, alice, fields, param):
        response = self._patch(client, alice, own(alice), **fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)

    def test_a_name_that_is_taken(self, client, alice):
        own(alice, "Other")
        assert error(self._patch(client, alice, own(alice), name="other"))[:2] == (409, "voice_name_taken")

    def test_delete(self, client, alice):
        voice = own(alice)
        assert client.delete(f"{URL}/{voice.id}", headers=alice.headers).status_code == 204
        assert client.get(f"{URL}/{voice.id}", headers=alice.headers).status_code == 404
        assert client.delete(f"{URL}/{voice.id}", headers=alice.headers).status_code == 404

    def test_deleting_ends_what_waits_for_it_and_what_is_being_spoken(self, client, alice):
        voice = own(alice)
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
        url = f"{URL}/{preset.id}"
        clip = SimpleUploadedFile("a.wav", b"x")
        for response in (
            self._patch(client, alice, preset, name="Mine"),
            self._patch(client, alice, preset, name="Mine", tags=["news"]),
            self._patch(client, alice, preset),
            client.delete(url, headers=alice.headers),
            client.get(f"{url}/versions", headers=alice.headers),
            client.post(f"{url}/versions", {"audio": clip, "consent": "true"}, headers=alice.headers),
            client.get(f"{url}/export", headers=alice.headers),
        ):
            assert error(response)[:2] == (403, "voice_is_preset")
            assert "Clone a voice of your own." in response.json()["error"]["message"]
        shown = client.get(url, headers=alice.headers).json()
        assert (shown["name"], shown["tags"]) == ("Hibari", [])

    def test_another_engines_preset_is_none(self, client, alice):
        url = f"{URL}/{factories.preset('Xiaoxiao', engine='kokoro', language='zh').id}"
        assert error(client.delete(url, headers=alice.headers))[:2] == (404, "voice_not_found")

    def test_hear(self, client, alice):
        response = client.get(f"{URL}/{own(alice).id}/sample", headers=alice.headers)
        assert (response.status_code, response.getvalue()) == (200, b"RIFF sound")
        assert response.headers["Content-Type"] == "audio/wav"
        assert response.headers["Content-Disposition"] == 'inline; filename="Mine.wav"'

    def test_hear_what_lies_behind_the_end(self, client, alice):
        headers = alice.headers | {"range": "bytes=10-"}
        response = client.get(f"{URL}/{own(alice).id}/sample", headers=headers)
        assert error(response) == (416, "range_not_satisfiable", "Range")
        assert response.headers["Content-Range"] == "bytes */10"


#: Every route, with its method.
ROUTES = [("get", ""), ("patch", ""), ("delete", ""), ("get", "/sample")]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers_voice(self, client, alice, charlie, method, what):
        url = f"{URL}/{own(alice).id}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=charlie.headers)
        assert error(response)[:2] == (404, "voice_not_found")
        assert Voice.objects.get().deleted_at is None

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "Mine", "a%00b"])
    def test_what_does_not_exist(self, client, alice, method, what, identifier):
        own(alice)
        url = f"{URL}/{identifier}{what}"
        response = getattr(client, method)(url, {}, content_type="application/json", headers=alice.headers)
        assert error(response)[:2] == (404, "voice_not_found")

    @pytest.mark.parametrize(("method", "what"), [*ROUTES, ("post", None)])
    def test_no_key(self, client, alice, method, what):
        url = URL if what is None else f"{URL}/{own(alice).id}{what}"
        assert getattr(client, method)(url).status_code == 401

    def test_an_expired_key(self, client, alice):
        alice.by_key.api_key.expires_at = timezone.now() - timedelta(seconds=1)
        alice.by_key.api_key.save()
        assert error(create(client, alice))[:2] == (401, "api_key_expired")

    @pytest.mark.parametrize(("method", "what"), [("put", ""), ("post", ""), ("delete", "/sample")])
    def test_wrong_method(self, client, alice, method, what):
        response = getattr(client, method)(f"{URL}/{own(alice).id}{what}", headers=alice.headers)
        assert error(response)[:2] == (405, "method_not_allowed")

    def test_a_viewer_looks_and_does_not_touch(self, client, alice):
        voice = own(alice)
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(f"{URL}/{voice.id}", headers=bob.headers).status_code == 200
        assert error(create(client, bob))[:2] == (403, "permission_denied")
        assert error(client.delete(f"{URL}/{voice.id}", headers=bob.headers))[:2] == (
            403,
            "permission_denied",
        )

    def test_a_key_that_only_reads(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        response = client.delete(f"{URL}/{own(alice).id}", headers={"authorization": f"Bearer {secret}"})
        assert error(response)[:2] == (403, "insufficient_scope")


def test_a_misspelt_field_is_refused_and_elevenlabs_clients_may_ask_for_what_they_like(client, alice):
    assert error(create(client, alice, consents="true")) == (400, "unknown_field", "consents")
    assert error(client.get(f"{URL}?order=x", headers=alice.headers)) == (400, "unknown_field", "order")
    theirs = {"xi-api-key": alice.headers["authorization"].removeprefix("Bearer ")}
    assert client.get(f"{URL}?show_legacy=true", headers=theirs).status_code == 200
