"""`/v1/conversions` and `/v1/instructions`: what only an engine like CosyVoice3 can do."""

from __future__ import annotations

import io
import json
import math
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts import outgoing
from accounts.models import TeamQuota, UsageCounter
from synthesis import storage
from synthesis.audio import pieces
from synthesis.audio.decode import Clip
from synthesis.errors import RequestNotFound
from synthesis.instructions import CATALOGUE
from synthesis.models import Callback, Segment, Status, SynthesisRequest
from synthesis.services import conversions, dispatch, housekeeping, operations, requests
from tests import factories
from tests.accounts.test_outgoing import answer, serve

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

URL = "/v1/conversions"
SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"
CLIP = "austen-0870.wav"
SECONDS = soundfile.info(SPEECH / CLIP).duration


@pytest.fixture(autouse=True)
def cosyvoice3(settings):
    settings.CHORUS_ENGINE = "cosyvoice3"


@pytest.fixture
def voice():
    return factories.preset("小美", engine="cosyvoice3", language="zh", preset="xiaomei")


def _file(name=CLIP, data=None):
    return SimpleUploadedFile(name, data or (SPEECH / CLIP).read_bytes())


def _post(client, person, by, headers=(), **fields):
    form = {"voice": str(by.id), "audio": _file()} | fields
    return client.post(URL, form, headers=person.headers | dict(headers))


def _error(response):
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


def _usage(person):
    counter = UsageCounter.objects.filter(team=person.actor.team, user=None, api_key=None).first()
    if counter is None:
        return 0, 0
    return counter.used, counter.reserved


class TestSubmitting:
    def test_it_names_an_address_that_is_told(self, client, alice, voice, settings):
        settings.CHORUS_INTERNAL_WEBHOOKS = True
        address = "http://127.0.0.1:1/"
        wrong = _post(client, alice, voice, webhook=address, webhook_events_filter=["logs"])
        assert _error(wrong) == (400, "event_unknown", "webhook_events_filter")
        answer = _post(client, alice, voice, webhook=address, webhook_events_filter=["start", "completed"])
        assert answer.json()["webhook_events_filter"] == ["start", "completed"]
        requests.cancel(actor=alice.actor, request_id=SynthesisRequest.objects.get().id)
        told = Callback.objects.get()
        assert (told.url, told.event, told.body["status"]) == (address, "completed", "canceled")

    def test_a_recording_becomes_a_request(self, client, alice, voice):
        answer = _post(client, alice, voice, title="译制片", format="flac", seed="7")
        assert answer.status_code == 201
        body = answer.json()
        assert answer.headers["location"] == body["urls"]["get"]
        assert body["status"] == "queued"
        assert body["characters"] == math.ceil(SECONDS * 15)
        assert body["input"] == {
            "text": "",
            "source_seconds": pytest.approx(SECONDS, abs=0.01),
            "voice": str(voice.id),
            "language": "zh",
            "instruction": "",
            "format": "flac",
            "speed": 1.0,
            "seed": 7,
            "title": "译制片",
        }
        row = SynthesisRequest.objects.get()
        assert _usage(alice) == (0, body["characters"])
        sound, rate = soundfile.read(io.BytesIO(storage.get(storage.source_key(row, 0))))
        assert rate == 24_000
        assert len(sound) / rate == pytest.approx(SECONDS, abs=0.01)
        assert dispatch.claim(worker="w", engine="cosyvoice3", limit=1) == [row]
        # Found again where texts are.
        assert client.get(body["urls"]["get"], headers=alice.headers).json()["status"] == "running"

    def test_the_title_is_the_name_of_the_file(self, client, alice, voice):
        assert _post(client, alice, voice, audio=_file("第一课.wav")).json()["title"] == "第一课"

    def test_a_name_that_cannot_be_shown_is_no_reason_to_refuse(self, client, alice, voice):
        assert _post(client, alice, voice, audio=_file("\u202etxet.wav")).json()["title"] == "txet"
        assert _post(client, alice, voice, audio=_file("\u202e.wav")).json()["title"] == "Converted recording"

    def test_a_long_recording_is_cut_in_pauses(self, client, alice, voice):
        clip, rate = soundfile.read(SPEECH / CLIP, dtype="float32")
        times = math.ceil(60 / SECONDS)
        file = io.BytesIO()
        soundfile.write(file, np.tile(np.concatenate([clip, np.zeros(rate // 2)]), times), rate, format="WAV")
        body = _post(client, alice, voice, audio=_file(data=file.getvalue())).json()
        assert body["segments_total"] == Segment.objects.count() >= 3
        row = SynthesisRequest.objects.get()
        stored = [
            soundfile.info(io.BytesIO(storage.get(storage.source_key(row, index)))).duration
            for index in range(body["segments_total"])
        ]
        assert max(stored) <= 25.0
        assert sum(stored) == pytest.approx(body["input"]["source_seconds"], abs=0.01)

    def test_the_same_key_makes_one_request(self, client, alice, voice):
        headers = {"idempotency-key": "once"}
        first = _post(client, alice, voice, headers=headers)
        again = _post(client, alice, voice, headers=headers)
        assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
        assert again.headers["idempotent-replayed"] == "true"
        other = _post(client, alice, voice, headers=headers, title="Another")
        assert _error(other)[:2] == (422, "idempotency_key_reused")
        assert SynthesisRequest.objects.count() == 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"voice": "Nobody"}, (400, "voice_not_found", "voice")),
            ({"format": "ogg"}, (400, "format_unknown", "format")),
            ({"seed": "-1"}, (400, "seed_out_of_range", "seed")),
            ({"audio": _file("notes.txt", b"no sound at all " * 50)}, (400, "audio_unreadable", "audio")),
            ({"audio": ""}, (400, "missing_field", "audio")),
            ({"audio": [_file(), _file()]}, (400, "parameter_repeated", "audio")),
            ({"audio_url": "http://127.0.0.1/a.wav", "audio": ""}, (400, "address_refused", "audio_url")),
        ],
    )
    def test_nothing_is_queued_or_charged(self, client, alice, voice, fields, expected):
        assert _error(_post(client, alice, voice, **fields)) == expected
        assert not SynthesisRequest.objects.exists()
        assert _usage(alice) == (0, 0)

    def test_what_lies_at_an_address_and_is_no_sound(self, client, alice, voice, monkeypatch):
        monkeypatch.setattr(outgoing, "_is_public", lambda address: address == "127.0.0.1")
        with serve(answer(body=b"<html>")) as server:
            refused = _post(client, alice, voice, audio="", audio_url=server.url)
        assert _error(refused) == (400, "audio_unreadable", "audio_url")

    def test_silence(self, client, alice, voice):
        file = io.BytesIO()
        soundfile.write(file, np.zeros(48_000), 16_000, format="WAV")
        answer = _post(client, alice, voice, audio=_file(data=file.getvalue()))
        assert _error(answer) == (400, "audio_no_speech", "audio")

    @pytest.mark.parametrize("engine", ["kokoro", "hibari", "remote"])
    def test_an_engine_that_cannot(self, client, alice, voice, settings, engine):
        settings.CHORUS_ENGINE = engine
        assert _error(_post(client, alice, voice)) == (400, "conversion_not_supported", "audio")

    def test_a_quota_one_character_short(self, client, alice, voice):
        TeamQuota.objects.update_or_create(
            team=alice.actor.team, defaults={"characters_per_month": math.ceil(SECONDS * 15) - 1}
        )
        assert _error(_post(client, alice, voice))[:2] == (429, "quota_exceeded")
        assert not SynthesisRequest.objects.exists()

    def test_another_teams_voice_and_request(self, client, alice, voice):
        stranger = factories.owner("Charlie")
        made = _post(client, alice, voice).json()
        assert client.get(made["urls"]["get"], headers=stranger.headers).status_code == 404
        with pytest.raises(RequestNotFound):
            requests.cancel(actor=stranger.actor, request_id=made["id"])


class TestKilledBetween:
    def test_no_worker_takes_it_before_its_recording_is_there(self, alice, voice):
        planned = conversions.plan(actor=alice.actor, voice=str(voice.id), audio=(SPEECH / CLIP).read_bytes())
        row = conversions.submit(actor=alice.actor, planned=planned)
        assert dispatch.claim(worker="w", engine="cosyvoice3", limit=1) == []
        conversions.upload(actor=alice.actor, request=row, planned=planned)
        assert dispatch.claim(worker="w", engine="cosyvoice3", limit=1) == [row]

    def test_the_storage_is_away(self, client, alice, voice, monkeypatch):
        def away(*_args):
            raise storage.StorageUnavailable

        monkeypatch.setattr(storage, "put", away)
        answer = _post(client, alice, voice, headers={"idempotency-key": "again"})
        assert answer.status_code == 503
        assert SynthesisRequest.objects.get().status == Status.CANCELED
        assert _usage(alice) == (0, 0)
        monkeypatch.undo()
        assert _post(client, alice, voice, headers={"idempotency-key": "again"}).status_code == 201

    def test_the_recording_goes_with_a_canceled_request(self, client, alice, voice):
        made = _post(client, alice, voice).json()
        row = SynthesisRequest.objects.get()
        client.post(made["urls"]["cancel"], headers=alice.headers)
        SynthesisRequest.objects.update(completed_at=timezone.now() - timedelta(days=1))
        housekeeping.delete_orphans()
        with pytest.raises(storage.NotFound):
            storage.get(storage.source_key(row, 0))

    def test_an_operator_cannot_try_again_what_is_gone(self, client, alice, voice):
        made = _post(client, alice, voice).json()
        client.post(made["urls"]["cancel"], headers=alice.headers)
        with pytest.raises(Exception, match="converted a recording") as caught:
            operations.retry(by=_operator(), request_id=made["id"])
        assert caught.value.code == "recording_removed"


def _operator():
    from accounts.operators import Operator

    return Operator.command()


def test_its_card_offers_nothing_that_needs_a_text(client, alice, voice):
    made = _post(client, alice, voice).json()
    client.post(made["urls"]["cancel"], headers=alice.headers)
    client.force_login(alice.user)
    page = client.get("/history/").content.decode()
    assert "austen-0870" in page
    assert "data-again" not in page


class TestCutting:
    def test_pieces_are_all_of_it(self):
        samples = np.random.default_rng(3).normal(0, 0.1, 16_000 * 61).astype("f4")
        cut = pieces.cut(Clip(samples, 16_000, "wav", "pcm", 1), longest=25.0)
        assert np.array_equal(np.concatenate(cut), samples)
        assert max(len(piece) for piece in cut) <= 25 * 16_000

    def test_a_short_one_stays_whole(self):
        samples = np.zeros(16_000 * 25, "f4")
        assert len(pieces.cut(Clip(samples, 16_000, "wav", "pcm", 1), longest=25.0)) == 1


class TestInstructions:
    def test_the_catalogue_has_both_languages(self, client, alice):
        body = client.get("/v1/instructions", headers=alice.headers).json()
        assert [entry["key"] for entry in body["instructions"]] == [entry.key for entry in CATALOGUE]
        assert all(entry["label"]["en"] and entry["label"]["zh"] for entry in body["instructions"])
        assert {"tag": "<strong>", "end": "</strong>", "meaning": "with emphasis"} in body["tags"]
        assert body["conversion_supported"] is True

    def test_every_one_is_accepted(self, client, alice, voice):
        for entry in client.get("/v1/instructions", headers=alice.headers).json()["instructions"]:
            answer = client.post(
                "/v1/syntheses?dry_run=true",
                json.dumps({"voice": str(voice.id), "text": "你好。", "instruction": entry["key"]}),
                content_type="application/json",
                headers=alice.headers,
            )
            assert answer.status_code == 200, answer.json()

    def test_an_engine_without(self, client, alice, settings):
        settings.CHORUS_ENGINE = "hibari"
        body = client.get("/v1/instructions", headers=alice.headers).json()
        assert (body["instructions"], body["tags"]) == ([], [])
        assert not body["instructions_supported"]

    def test_no_key(self, client):
        assert client.get("/v1/instructions").status_code == 401
