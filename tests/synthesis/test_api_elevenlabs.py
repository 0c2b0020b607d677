"""ElevenLabs' routes: text-to-speech, subscription, history, and the shapes of voices and models."""

from __future__ import annotations

import base64
import io
import json
import uuid

import numpy as np
import pytest
import soundfile
from django.utils import timezone

from accounts.models import LedgerEntry, Role, TeamQuota
from gpu_worker import jobs, resident
from gpu_worker.engines import load_engine
from synthesis.api import elevenlabs, elevenlabs_formats
from synthesis.audio import decode
from synthesis.models import SynthesisRequest, Voice
from tests import factories
from tests.synthesis import finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

TEXT = "Hello there, this is a test. And this is another sentence, a little longer than the first one."


@pytest.fixture
def voice():
    return factories.preset()


@pytest.fixture
def alice(voice):
    return factories.owner("Alice")


@pytest.fixture(scope="module")
def engine():
    return load_engine("hibari")


@pytest.fixture
def spoken(engine, monkeypatch):
    """Each submitted request is spoken at once."""
    resident.install(engine=engine, worker_name="w1")
    submit = elevenlabs.submission.submit

    def submit_and_speak(**kwargs):
        row = submit(**kwargs)
        jobs.run_next()
        return row

    monkeypatch.setattr(elevenlabs.submission, "submit", submit_and_speak)
    yield
    resident.remove()


def _xi(person):
    return {"xi-api-key": person.secret}


def _post(client, person, voice, what="", query="", **fields):
    url = f"/v1/text-to-speech/{voice}{what}{query}"
    body = json.dumps({"text": TEXT} | fields)
    return client.post(url, body, content_type="application/json", headers=_xi(person))


def _nothing_happened():
    return not SynthesisRequest.objects.exists() and not LedgerEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestSpeak:
    @pytest.mark.parametrize("what", ["", "/stream"])
    def test_the_sound(self, client, alice, voice, spoken, what):
        response = _post(client, alice, voice.id, what)
        assert response.status_code == 200
        assert response.headers["Content-Type"] == "audio/mpeg"
        row = SynthesisRequest.objects.get()
        assert response.headers["request-id"] == str(row.id)
        assert response.headers["character-cost"] == str(len(TEXT))
        clip = decode.decode(response.getvalue())
        assert clip.rate == 44100
        assert abs(len(clip.samples) / 44100 - row.output.seconds) < 0.2

    @pytest.mark.parametrize("name", elevenlabs_formats.NAMES)
    def test_each_output_format(self, client, alice, voice, spoken, name):
        response = _post(client, alice, voice.id, query=f"?output_format={name}", text="Hello there.")
        assert response.status_code == 200
        data = response.getvalue()
        seconds = SynthesisRequest.objects.get().output.seconds
        codec, rate, *bits = name.split("_")
        match codec:
            case "pcm":
                assert len(data) / 2 / int(rate) == pytest.approx(seconds, abs=0.02)
            case "ulaw" | "alaw":
                assert len(data) / 8000 == pytest.approx(seconds, abs=0.02)
                samples, _rate = soundfile.read(
                    io.BytesIO(data), samplerate=8000, channels=1, format="RAW", subtype=codec.upper()
                )
                assert 0.05 < np.abs(samples).max() < 1
            case _:
                clip = decode.decode(data)
                assert clip.rate == int(rate)
                assert len(clip.samples) / clip.rate == pytest.approx(seconds, abs=0.15)
        if codec == "mp3":
            assert len(data) * 8 / seconds == pytest.approx(int(bits[0]) * 1000, rel=0.2)

    def test_all_that_can_be_said(self, client, alice, voice, spoken):
        response = _post(
            client,
            alice,
            "Hibari",
            query="?optimize_streaming_latency=2&enable_logging=true",
            model_id="eleven_multilingual_v2",
            language_code="en",
            voice_settings={"stability": 0.5, "similarity_boost": 0.7, "speed": 1.2},
            seed=2**32 - 1,
            previous_text="Before.",
            pronunciation_dictionary_locators=[],
            apply_text_normalization="auto",
        )
        assert response.getvalue()
        row = SynthesisRequest.objects.get()
        assert (row.speed, row.language, row.seed, row.streamed) == (1.2, "en-US", 2**31 - 1, True)

    def test_with_timestamps(self, client, alice, voice, spoken):
        response = _post(client, alice, voice.id, "/with-timestamps", "?output_format=pcm_16000")
        body = response.json()
        seconds = len(base64.b64decode(body["audio_base64"])) / 32000
        aligned = body["alignment"]
        assert "".join(aligned["characters"]) == TEXT
        starts, ends = (aligned[f"character_{edge}_times_seconds"] for edge in ("start", "end"))
        assert len(starts) == len(ends) == len(TEXT)
        assert starts == sorted(starts)
        assert ends == sorted(ends)
        assert all(start <= end for start, end in zip(starts, ends, strict=True))
        assert 0 <= starts[0] < 0.1
        assert ends[-1] == pytest.approx(seconds, abs=0.05)
        assert body["normalized_alignment"] == aligned

    def test_times_of_several_segments(self, client, alice, voice, spoken):
        text = " ".join(["This is a sentence that is neither short nor very long at all."] * 6)
        body = _post(client, alice, voice.id, "/with-timestamps", text=text).json()
        assert SynthesisRequest.objects.get().segments_total > 1
        assert "".join(body["alignment"]["characters"]) == text
        starts = body["alignment"]["character_start_times_seconds"]
        assert starts == sorted(starts)

    def test_a_failure(self, client, alice, voice, monkeypatch):
        submit = elevenlabs.submission.submit

        def submit_and_fail(**kwargs):
            return finished.fail(submit(**kwargs))

        monkeypatch.setattr(elevenlabs.submission, "submit", submit_and_fail)
        for what in ("", "/with-timestamps"):
            response = _post(client, alice, voice.id, what)
            assert response.status_code == 500
            detail = response.json()["detail"]
            assert detail == {"status": "engine_error", "message": "It broke.", "param": None}


class TestErrors:
    @pytest.mark.parametrize("what", ["", "/stream", "/with-timestamps"])
    @pytest.mark.parametrize(
        ("status", "code", "fields", "query"),
        [
            (400, "text_empty", {"text": ""}, ""),
            (400, "text_not_speakable", {"text": "?!"}, ""),
            (400, "text_too_long", {"text": "x" * 20_001}, ""),
            (400, "invalid_output_format", {}, "?output_format=mp3_1_2"),
            (400, "invalid_output_format", {}, "?output_format=%00"),
            (400, "invalid_output_format", {}, "?output_format="),
            (400, "zero_retention_not_supported", {}, "?enable_logging=false"),
            (400, "model_not_found", {"model_id": "gpt-5"}, ""),
            (400, "language_not_supported", {"language_code": "zh"}, ""),
            (400, "speed_out_of_range", {"voice_settings": {"speed": 9}}, ""),
            (
                400,
                "pronunciation_dictionary_locators_not_supported",
                {"pronunciation_dictionary_locators": [{}]},
                "",
            ),
            (400, "audio_effects_not_supported", {"audio_effects": {"environment_id": "hall"}}, ""),
        ],
    )
    def test_an_object_with_a_status(self, client, alice, voice, what, status, code, fields, query):
        response = _post(client, alice, voice.id, what, query, **fields)
        assert (response.status_code, response.json()["detail"]["status"]) == (status, code)
        assert response.json()["detail"]["message"]
        theirs = {"language_code": "language_code", "voice_settings": "voice_settings.speed"}
        if name := next(iter(fields.keys() & theirs), None):
            assert response.json()["detail"]["param"] == theirs[name]
        assert _nothing_happened()

    @pytest.mark.parametrize(
        ("fields", "location", "kind"),
        [
            ({"text": None}, ["body", "text"], "value_error.missing"),
            ({"text": 5}, ["body", "text"], "value_error"),
            ({"voice_settings": "x"}, ["body", "voice_settings"], "value_error"),
            ({"voice_settings": {"speed": "x"}}, ["body", "voice_settings", "speed"], "value_error"),
            ({"seed": -1}, ["body", "seed"], "value_error"),
            ({"seed": 2**32}, ["body", "seed"], "value_error"),
        ],
    )
    def test_a_list_for_a_body_of_the_wrong_shape(self, client, alice, voice, fields, location, kind):
        response = _post(client, alice, voice.id, **fields)
        assert response.status_code == 422
        (detail,) = response.json()["detail"]
        assert (detail["loc"], detail["type"]) == (location, kind)
        assert _nothing_happened()

    @pytest.mark.parametrize("value", ["x", "", "2"])
    def test_a_list_for_an_address_of_the_wrong_shape(self, client, alice, voice, value):
        response = _post(client, alice, voice.id, query=f"?enable_logging={value}")
        assert response.status_code == 422
        (detail,) = response.json()["detail"]
        assert (detail["loc"], detail["type"]) == (["query", "enable_logging"], "value_error")
        assert _nothing_happened()
        # After the address comes the body, whose errors are the body's.
        response = _post(client, alice, voice.id, query="?enable_logging=true", text=5)
        assert response.json()["detail"][0]["loc"] == ["body", "text"]

    @pytest.mark.parametrize("what", ["", "/stream", "/with-timestamps"])
    def test_an_idempotency_key_would_not_be_kept(self, client, alice, voice, what):
        response = client.post(
            f"/v1/text-to-speech/{voice.id}{what}",
            {"text": "Hello."},
            content_type="application/json",
            headers=alice.headers | {"idempotency-key": "k"},
        )
        assert response.status_code == 400
        detail = response.json()["detail"]
        assert (detail["status"], detail["param"]) == ("idempotency_not_supported", "Idempotency-Key")
        assert not SynthesisRequest.objects.exists()

    def test_a_voice_that_an_operator_has_blocked(self, client, alice, voice):
        Voice.objects.filter(id=voice.id).update(taken_down_at=timezone.now(), taken_down_reason="complaint")
        response = _post(client, alice, voice.id)
        assert (response.status_code, response.json()["detail"]["status"]) == (404, "voice_blocked")
        assert _nothing_happened()

    def test_malformed_json(self, client, alice, voice):
        url = f"/v1/text-to-speech/{voice.id}"
        response = client.post(url, "{", content_type="application/json", headers=_xi(alice))
        assert (response.status_code, response.json()["detail"]["status"]) == (400, "malformed_json")

    def test_a_quota_is_not_a_bad_key(self, client, alice, voice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        response = _post(client, alice, voice.id)
        assert (response.status_code, response.json()["detail"]["status"]) == (429, "quota_exceeded")
        assert response.headers["Retry-After"]
        assert _nothing_happened()


#: Every route with its method.
ROUTES = [
    ("post", "/v1/text-to-speech/{voice}"),
    ("post", "/v1/text-to-speech/{voice}/stream"),
    ("post", "/v1/text-to-speech/{voice}/with-timestamps"),
    ("get", "/v1/user/subscription"),
    ("get", "/v1/history"),
    ("get", "/v1/history/{request}"),
    ("get", "/v1/history/{request}/audio"),
    ("delete", "/v1/history/{request}"),
]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "url"), ROUTES)
    @pytest.mark.parametrize("headers", [{}, {"xi-api-key": "wrong"}])
    def test_no_key_or_a_wrong_one(self, client, alice, voice, method, url, headers):
        url = url.format(voice=voice.id, request=uuid.uuid4())
        response = getattr(client, method)(url, {}, content_type="application/json", headers=headers)
        assert (response.status_code, response.json()["detail"]["status"]) == (401, "invalid_api_key")

    @pytest.mark.parametrize(("method", "url"), [route for route in ROUTES if "{" in route[1]])
    def test_a_strangers(self, client, alice, charlie, method, url):
        row = finished.succeed(factories.submit(alice))
        hers = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Hers", language="en-US")
        response = getattr(client, method)(
            url.format(voice=hers.id, request=row.id),
            {"text": TEXT},
            content_type="application/json",
            headers=_xi(charlie),
        )
        assert response.status_code == 404
        assert response.json()["detail"]["status"] in {"voice_not_found", "synthesis_not_found"}
        assert SynthesisRequest.objects.get().deleted_at is None

    @pytest.mark.parametrize(("method", "url"), [route for route in ROUTES if "{" in route[1]])
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense", "%00"])
    def test_what_does_not_exist(self, client, alice, method, url, identifier):
        response = getattr(client, method)(
            url.format(voice=identifier, request=identifier),
            {"text": TEXT},
            content_type="application/json",
            headers=_xi(alice),
        )
        assert response.status_code == 404

    @pytest.mark.parametrize(("_method", "url"), ROUTES)
    def test_wrong_method(self, client, alice, voice, _method, url):
        response = client.patch(url.format(voice=voice.id, request=uuid.uuid4()), headers=_xi(alice))
        assert (response.status_code, response.json()["detail"]["status"]) == (405, "method_not_allowed")

    def test_a_viewer(self, client, alice, voice):
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get("/v1/history", headers=_xi(bob)).status_code == 200
        assert _post(client, bob, voice.id).status_code == 403
        row = finished.succeed(factories.submit(alice))
        assert client.delete(f"/v1/history/{row.id}", headers=_xi(bob)).status_code == 403


class TestLibrary:
    def test_subscription(self, client, alice, charlie):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=1000, stored_voices=7)
        factories.submit(alice, "Ten chars.")
        body = client.get("/v1/user/subscription", headers=_xi(alice)).json()
        assert (body["tier"], body["character_count"], body["character_limit"]) == ("Test", 10, 1000)
        assert (body["voice_slots_used"], body["voice_limit"], body["status"]) == (0, 7, "active")
        assert client.get("/v1/user/subscription", headers=_xi(charlie)).json()["character_count"] == 0

    def test_history(self, client, alice, charlie, voice):
        rows = [finished.succeed(factories.submit(alice, f"Number {n}.")) for n in range(3)]
        factories.submit(alice, "Not spoken yet.")
        body = client.get("/v1/history?page_size=2", headers=_xi(alice)).json()
        assert [item["text"] for item in body["history"]] == ["Number 2.", "Number 1."]
        assert (body["last_history_item_id"], body["has_more"]) == (str(rows[1].id), True)
        url = f"/v1/history?start_after_history_item_id={rows[1].id}"
        body = client.get(url, headers=_xi(alice)).json()
        assert ([item["text"] for item in body["history"]], body["has_more"]) == (["Number 0."], False)
        assert client.get("/v1/history?search=number+1", headers=_xi(alice)).json()["history"][0][
            "history_item_id"
        ] == str(rows[1].id)
        assert client.get(f"/v1/history?voice_id={voice.id}", headers=_xi(alice)).json()["history"]
        assert client.get(f"/v1/history?voice_id={uuid.uuid4()}", headers=_xi(alice)).json()["history"] == []
        assert client.get("/v1/history", headers=_xi(charlie)).json()["history"] == []

    @pytest.mark.parametrize(
        "query", ["page_size=0", "page_size=1001", "page_size=x", "voice_id=x", "search=%00"]
    )
    def test_a_wrong_query(self, client, alice, query):
        response = client.get(f"/v1/history?{query}", headers=_xi(alice))
        assert response.status_code == 422
        assert response.json()["detail"][0]["loc"] == ["query", query.split("=")[0]]

    def test_one_item(self, client, alice, voice):
        row = finished.succeed(factories.submit(alice, "Ten chars."))
        item = client.get(f"/v1/history/{row.id}", headers=_xi(alice)).json()
        assert item == {
            "history_item_id": str(row.id),
            "request_id": str(row.id),
            "voice_id": str(voice.id),
            "voice_name": "Hibari",
            "voice_category": "premade",
            "model_id": "hibari",
            "text": "Ten chars.",
            "date_unix": int(row.created_at.timestamp()),
            "character_count_change_from": 0,
            "character_count_change_to": 10,
            "content_type": "audio/mpeg",
            "state": "created",
            "source": "TTS",
            "settings": {"speed": 1.0},
        }
        audio = client.get(f"/v1/history/{row.id}/audio", headers=_xi(alice))
        assert audio.getvalue() == finished.SOUND
        assert client.delete(f"/v1/history/{row.id}", headers=_xi(alice)).json() == {"status": "ok"}
        assert client.get(f"/v1/history/{row.id}", headers=_xi(alice)).status_code == 404

    def test_what_is_not_spoken_has_no_item(self, client, alice):
        row = factories.submit(alice)
        for what in ("", "/audio"):
            assert client.get(f"/v1/history/{row.id}{what}", headers=_xi(alice)).status_code == 404

    def test_what_lies_behind_the_end_of_its_sound(self, client, alice):
        row = finished.succeed(factories.submit(alice))
        headers = _xi(alice) | {"range": "bytes=10240-"}
        response = client.get(f"/v1/history/{row.id}/audio", headers=headers)
        assert (response.status_code, response.headers["Content-Range"]) == (416, "bytes */10240")
        assert response.json()["detail"]["status"] == "range_not_satisfiable"

    def test_an_item_whose_sound_is_gone(self, client, alice):
        row = finished.succeed(factories.submit(alice))
        row.output.delete()
        response = client.get(f"/v1/history/{row.id}/audio", headers=_xi(alice))
        assert (response.status_code, response.json()["detail"]["status"]) == (410, "output_expired")

    def test_voices_have_both_shapes(self, client, alice, voice):
        body = client.get("/v1/voices", headers=_xi(alice)).json()
        (theirs,) = body["voices"]
        assert theirs == body["results"][0]
        assert (theirs["voice_id"], theirs["category"]) == (str(voice.id), "premade")
        assert theirs["labels"] == {"language": "en-US"}
        assert theirs["preview_url"] == theirs["sample_url"]
        assert "voices" not in client.get("/v1/voices", headers=alice.headers).json()

    def test_models(self, client, alice):
        (model,) = client.get("/v1/models", headers=_xi(alice)).json()
        assert (model["model_id"], model["can_do_text_to_speech"]) == ("hibari", True)
        assert model["maximum_text_length_per_request"] == 20_000


class TestVoices:
    def test_page_by_page_and_no_strangers(self, client, alice, voice):
        other = factories.owner("Charlie")
        own = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Mine", language="en-US")
        theirs = Voice.objects.create(team=other.actor.team, kind="cloned", name="Theirs", language="en-US")
        first = client.get("/v2/voices?page_size=1&include_total_count=true", headers=_xi(alice)).json()
        assert (first["has_more"], first["total_count"]) == (True, 2)
        second = client.get(
            f"/v2/voices?page_size=1&next_page_token={first['next_page_token']}", headers=_xi(alice)
        ).json()
        assert (second["has_more"], second["next_page_token"]) == (False, None)
        found = [row["voice_id"] for row in first["voices"] + second["voices"]]
        assert found == sorted([str(own.id), str(voice.id)], reverse=True)
        assert str(theirs.id) not in found
        named = client.get("/v2/voices?search=min&category=cloned", headers=_xi(alice)).json()
        assert [row["name"] for row in named["voices"]] == ["Mine"]
        for wrong in ("page_size=x", "category=cloend"):
            response = client.get(f"/v2/voices?{wrong}", headers=_xi(alice))
            assert response.status_code == 422
            assert response.json()["detail"][0]["loc"] == ["query", wrong.partition("=")[0]]
        professional = client.get("/v2/voices?category=professional", headers=_xi(alice)).json()
        assert professional["voices"] == []
        assert client.get("/v2/voices").status_code == 401

    @pytest.mark.parametrize("url", ["/v1", "/v1/nothing", "/v2", "/v2/nothing"])
    def test_unknown_addresses_answer_as_json(self, client, db, url):
        response = client.get(url)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")
