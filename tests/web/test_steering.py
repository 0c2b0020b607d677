"""The studio's palette, outline, saved settings, and the sound in other shapes."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import soundfile

from synthesis import storage
from synthesis.models import Segment, SettingsPreset, SynthesisRequest
from synthesis.services import dispatch
from synthesis.text import pronunciation
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db

TEXT = "The first sentence is about a lighthouse. The second one tells of the sea, and of the boats upon it at night."


def spoken(person, **fields) -> SynthesisRequest:
    """A finished request with a stored tone for each segment."""
    made = factories.submit(person, fields.pop("text", TEXT), **fields)
    (request,) = dispatch.claim(worker="played", engine="hibari")
    assert request.id == made.id
    for segment in request.segments.all():
        tone = np.sin(np.arange(24_000) * 0.05).astype(np.float32) * 0.5
        data = io.BytesIO()
        soundfile.write(data, tone, 24_000, format="FLAC")
        key = storage.segment_key(request, segment.index)
        storage.put(key, data.getvalue(), "audio/flac")
        dispatch.save_segment(request, index=segment.index, audio_key=key, seconds=1.0, engine_seconds=0.1)
    key = storage.output_key(request, request.format)
    storage.put(key, b"sound", "audio/mpeg")
    assert dispatch.complete(request, dispatch.Made(key, "audio/mpeg", 5, "0" * 64, 2.0, 24_000))
    request.refresh_from_db()
    return request


@pytest.fixture
def cosyvoice(settings, db):
    settings.CHORUS_ENGINE = "cosyvoice3"
    return factories.preset("Mei", engine="cosyvoice3", preset="mei", language="zh")


def test_only_what_the_engine_can(sign_in, alice, hibari):
    page = sign_in(alice).get("/").content.decode()
    assert "takes neither instructions nor tags" in page
    assert "data-instruct" not in page


def test_what_cosyvoice_can(sign_in, alice, cosyvoice):
    client = sign_in(alice)
    page = client.get("/").content.decode()
    assert 'data-instruct="Sichuan dialect"' in page
    assert 'data-insert="[breath]"' in page
    assert 'data-wrap="strong"' in page
    page = client.get("/", headers={"accept-language": "zh-hans"}).content.decode()
    assert 'data-instruct="四川话"' in page


@pytest.mark.parametrize("words", ["Sichuan dialect", "四川话", "dialect-sichuan"])
def test_the_field_may_name_an_instruction_as_people_do(sign_in, alice, cosyvoice, words):
    sent = {"text": "你好。", "voice": str(cosyvoice.id), "format": "mp3", "speed": "1", "instruction": words}
    sign_in(alice).post("/requests/", sent | {"seed": "7", "stream": "on"})
    made = SynthesisRequest.objects.get()
    assert (made.instruction, made.seed, made.streamed) == ("dialect-sichuan", 7, True)
    page = sign_in(alice).get(f"/?from={made.id}").content.decode()
    assert 'value="Sichuan dialect"' in page
    assert 'value="7"' in page


def test_readings(sign_in, alice, cosyvoice):
    client = sign_in(alice)
    assert "[h][áng]" in client.get("/studio/readings/", {"text": "行"}).content.decode()
    page = client.get("/studio/readings/", {"text": "record"}).content.decode()
    assert "[R][EH1][K][ER0][D]" in page
    assert "Select one" in client.get("/studio/readings/", {"text": ""}).content.decode()


def test_no_readings_without_tags(sign_in, alice, hibari):
    page = sign_in(alice).get("/studio/readings/", {"text": "record"}).content.decode()
    assert "chooses readings by itself" in page


def test_every_offered_reading_is_a_known_tag():
    for character in "行重了长乐得地还都好为着":
        assert pronunciation.of_character(character)
    from synthesis.instructions import KNOWN_TAGS

    assert all(tag in KNOWN_TAGS for tag, _word in pronunciation.CHART)


def test_outline(sign_in, alice, hibari):
    page = sign_in(alice).post("/studio/outline/", {"text": TEXT, "voice": str(hibari.id)}).content.decode()
    assert "(recognised)" in page
    assert "lighthouse" in page
    assert not SynthesisRequest.objects.exists()
    empty = sign_in(alice).post("/studio/outline/", {"text": " ", "voice": str(hibari.id)})
    assert empty.content == b""
    wrong = sign_in(alice).post("/studio/outline/", {"text": "Привет, как дела?", "voice": str(hibari.id)})
    assert "does not speak" in wrong.content.decode()
    assert "Russian (ru)" in wrong.content.decode()


def test_saved_settings(sign_in, alice, bob, hibari):
    client = sign_in(alice)
    form = {
        "preset_name": "Newsreader",
        "voice": str(hibari.id),
        "speed": "0.9",
        "format": "wav",
        "text": "no",
    }
    page = client.post("/studio/settings/", form, headers=HTMX).content.decode()
    assert "Newsreader" in page
    kept = SettingsPreset.objects.get()
    assert kept.values == {"voice": str(hibari.id), "speed": "0.9", "format": "wav"}
    page = client.get(f"/?preset={kept.id}").content.decode()
    assert 'value="0.9"' in page
    page = sign_in(bob).get(f"/?preset={kept.id}").content.decode()
    assert "These settings are no longer there" in page, "they are Alice's own"
    assert 'value="0.9"' not in page
    assert sign_in(bob).post(f"/studio/settings/{kept.id}/delete/").status_code == 404
    assert client.post("/studio/settings/", form | {"preset_name": " "}, headers=HTMX).status_code == 400
    assert client.post(f"/studio/settings/{kept.id}/delete/").status_code == 302
    assert not SettingsPreset.objects.exists()


def test_other_formats(sign_in, alice, charlie, hibari):
    made = spoken(alice)
    answer = sign_in(alice).get(f"/requests/{made.id}/audio.wav")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    samples, rate = soundfile.read(io.BytesIO(b"".join(answer)))
    assert rate == 24_000
    assert len(samples) > 40_000
    assert sign_in(alice).get(f"/requests/{made.id}/audio.mp3").status_code == 302
    assert sign_in(alice).get(f"/requests/{made.id}/audio.exe").status_code == 404
    assert sign_in(charlie).get(f"/requests/{made.id}/audio.wav").status_code == 404


def test_subtitles(sign_in, alice, charlie, hibari):
    made = spoken(alice)
    page = sign_in(alice).get(f"/requests/{made.id}/subtitles.srt").content.decode()
    assert page.startswith("1\n00:00:00,000 --> 00:00:0")
    assert page.count("-->") == Segment.objects.filter(request=made).count() >= 2
    assert (
        sign_in(alice)
        .get(f"/requests/{made.id}/subtitles.vtt")
        .content.startswith(b"WEBVTT\n\n1\n00:00:00.000")
    )
    assert sign_in(charlie).get(f"/requests/{made.id}/subtitles.srt").status_code == 404


def test_peaks(sign_in, alice, charlie, hibari):
    made = spoken(alice)
    body = json.loads(sign_in(alice).get(f"/requests/{made.id}/peaks/").content)
    assert max(body["peaks"]) == pytest.approx(0.5, abs=0.02)
    assert len(body["spans"]) == made.segments_total
    assert sign_in(charlie).get(f"/requests/{made.id}/peaks/").status_code == 404


def test_nothing_to_hear_yet(sign_in, alice, hibari):
    waiting = factories.submit(alice)
    for path in ("peaks/", "audio.wav", "subtitles.srt"):
        assert sign_in(alice).get(f"/requests/{waiting.id}/{path}").status_code == 409


def test_listening_along_is_for_the_team(sign_in, client, alice, charlie, hibari):
    made = spoken(alice)
    address = f"/events/requests/{made.id}/stream/"
    assert client.get(address).status_code == 204
    assert sign_in(charlie).get(address).status_code == 404
    assert sign_in(alice).get(address).headers["Location"] == f"/requests/{made.id}/audio/"
    waiting = factories.submit(alice)
    dispatch.cancel(waiting.id)
    assert sign_in(alice).get(f"/events/requests/{waiting.id}/stream/").status_code == 204
