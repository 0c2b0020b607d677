"""Script mode: a dialogue becomes a request for each line, one file, and a retry for what failed."""

from __future__ import annotations

import io
import re
import zipfile

import numpy as np
import pytest
import soundfile

from accounts.models import UsageCounter
from synthesis import storage
from synthesis.models import Script, SynthesisRequest
from synthesis.services import dispatch
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db

TEXT = "Anna: Good morning, dear Ben!\nBen: Is it a good one?\nAnna: It is for me."


@pytest.fixture
def voices(db):
    return factories.preset(), factories.preset("Aki", gender="male")


def sent(voices, **changed):
    first, second = voices
    return {
        "title": "Breakfast",
        "text": TEXT,
        "format": "mp3",
        "pause": "0.5",
        "voice-0": str(first.id),
        "voice-1": str(second.id),
    } | changed


@pytest.fixture
def script(sign_in, alice, voices):
    assert sign_in(alice).post("/scripts/", sent(voices)).status_code == 302
    return Script.objects.get()


def test_what_cannot_be_spoken_is_named_by_the_line_that_its_author_sees(sign_in, alice, voices):
    answer = sign_in(alice).post("/scripts/", sent(voices, text="Anna: Good morning.\n\n\nBen: 😀"))
    assert answer.status_code == 422
    assert "Line 4: " in answer.content.decode()
    assert not SynthesisRequest.objects.exists()


def speak(count: int) -> None:
    """Each line a tone of a second."""
    for _line in range(count):
        (request,) = dispatch.claim(worker="played", engine="hibari")
        for segment in request.segments.all():
            data = io.BytesIO()
            soundfile.write(data, np.full(24_000, 0.3, np.float32), 24_000, format="FLAC")
            key = storage.segment_key(request, segment.index)
            storage.put(key, data.getvalue(), "audio/flac")
            dispatch.save_segment(request, index=segment.index, audio_key=key, seconds=1, engine_seconds=0.1)
        key = storage.output_key(request, "mp3")
        storage.put(key, b"line", "audio/mpeg")
        assert dispatch.complete(request, dispatch.Made(key, "audio/mpeg", 4, "0" * 64, 1.0, 24_000))


def test_each_speaker_has_a_voice(script, voices):
    lines = list(script.lines.select_related("request__voice"))
    assert [line.speaker for line in lines] == ["Anna", "Ben", "Anna"]
    assert [line.request.voice for line in lines] == [voices[0], voices[1], voices[0]]
    assert lines[0].request.title == "Breakfast · 001 · Anna"


def test_a_script_that_is_sent_twice_is_spoken_once(sign_in, alice, voices):
    client = sign_in(alice)
    assert 'name="once"' in client.get("/scripts/").content.decode()
    form = sent(voices, once="word")
    assert client.post("/scripts/", form).url == client.post("/scripts/", form).url
    assert Script.objects.count() == 1
    assert SynthesisRequest.objects.count() == 3
    assert client.post("/scripts/", form | {"title": "Another"}).status_code == 302
    assert Script.objects.count() == 2


def test_the_cast_is_found(sign_in, alice, voices):
    page = sign_in(alice).post("/scripts/cast/", {"text": TEXT}, headers=HTMX).content.decode()
    assert page.count("<select") == 2
    assert "3 lines" in page
    missing = sign_in(alice).post("/scripts/", sent(voices, **{"voice-1": ""}))
    assert missing.status_code == 422
    assert "Choose a voice for each speaker" in missing.content.decode()


def test_proposals_follow_the_text_and_choices_their_speaker(sign_in, alice, voices):
    chinese = factories.preset("Xiaoxiao", preset="xiaoxiao", language="zh")
    first, second = voices
    client = sign_in(alice)

    def rows(**changed):
        page = client.post("/scripts/cast/", changed, headers=HTMX).content.decode()
        return re.findall(r'<option value="([^"]+)"[^>]* selected', page)

    assert rows(text="小安：早上好！\nBen: Good morning.") == [str(chinese.id), str(second.id)]
    # Only proposed: a voice of the language takes its place. Chosen: it stays with its speaker, wherever they stand.
    shown = {"speaker-0": "Ben", "voice-0": str(chinese.id), "proposed-0": str(chinese.id)}
    assert rows(text="Ben: Good morning.", **shown) == [str(second.id)]
    assert rows(text="Anna: Hello.\nBen: Good morning.", **(shown | {"proposed-0": ""})) == [
        str(second.id),
        str(chinese.id),
    ]
    late = sent(voices, **{"speaker-0": "Ben", "speaker-1": "Anna"})
    assert client.post("/scripts/", late).status_code == 302
    assert Script.objects.get().cast == {"Ben": str(first.id), "Anna": str(second.id)}


def test_all_lines_or_none(sign_in, alice, voices):
    wrong = sign_in(alice).post("/scripts/", sent(voices, text=TEXT + "\nBen: Привет, как дела?"))
    assert wrong.status_code == 422
    assert "Line 4:" in wrong.content.decode()
    silent = sign_in(alice).post("/scripts/", sent(voices, text=TEXT + "\n\nBen:"))
    assert silent.status_code == 422
    assert "Line 5: “Ben” says nothing" in silent.content.decode()
    assert not Script.objects.exists()
    assert not SynthesisRequest.objects.exists()
    assert not UsageCounter.objects.filter(reserved__gt=0).exists()
    assert sign_in(alice).post("/scripts/", sent(voices, text=" ")).status_code == 422
    assert sign_in(alice).post("/scripts/", sent(voices, pause="99")).status_code == 422


def test_one_file_with_pauses_and_one_for_each_line(sign_in, alice, script):
    client = sign_in(alice)
    assert client.get(f"/scripts/{script.id}/audio.wav").status_code == 409
    speak(3)
    samples, rate = soundfile.read(io.BytesIO(b"".join(client.get(f"/scripts/{script.id}/audio.wav"))))
    assert len(samples) / rate == pytest.approx(4.0, abs=0.1), (
        "three seconds of sound, two pauses of half a second"
    )
    with zipfile.ZipFile(io.BytesIO(b"".join(client.get(f"/scripts/{script.id}/lines.zip")))) as archive:
        assert [name[:3] for name in archive.namelist()] == ["001", "002", "003"]
    srt = client.get(f"/scripts/{script.id}/subtitles.srt")
    assert srt.headers["Content-Disposition"] == 'attachment; filename="Breakfast.srt"'
    cues = srt.content.decode().split("\n\n")
    assert cues[0].startswith("1\n00:00:00,000 --> 00:00:01,")
    assert cues[0].endswith("Anna: Good morning, dear Ben!")
    assert cues[1].startswith("2\n00:00:01,5")
    assert client.get(f"/scripts/{script.id}/subtitles.doc").status_code == 404
    page = client.get(f"/scripts/{script.id}/").content.decode()
    assert "Download" in page
    assert 'data-duration="4.50"' in page


def test_a_failed_line_is_tried_again_alone(sign_in, alice, script):
    client = sign_in(alice)
    (request,) = dispatch.claim(worker="played", engine="hibari")
    dispatch.fail(request, code="engine_error", message="It broke.", retryable=False)
    assert client.post(f"/scripts/{script.id}/lines/2/retry/").status_code == 409, "that one still waits"
    page = client.post(f"/scripts/{script.id}/lines/1/retry/", headers=HTMX)
    assert page.status_code == 200
    assert SynthesisRequest.objects.count() == 4
    assert script.lines.get(number=1).request.status == "queued"
    speak(3)
    assert b"".join(client.get(f"/scripts/{script.id}/audio.mp3"))
    assert client.post(f"/scripts/{script.id}/lines/9/retry/").status_code == 404


def test_deleted_with_its_recordings(sign_in, alice, script):
    sign_in(alice).post(f"/scripts/{script.id}/delete/")
    assert not Script.objects.exists()
    assert not SynthesisRequest.objects.filter(deleted_at=None).exists()


def test_who_may(sign_in, alice, vera, charlie, script, voices):
    for path in ("", "lines/", "audio.mp3", "lines.zip"):
        assert sign_in(charlie).get(f"/scripts/{script.id}/{path}").status_code == 404
    for path in ("delete/", "lines/1/retry/"):
        assert sign_in(charlie).post(f"/scripts/{script.id}/{path}").status_code == 404
        assert sign_in(vera).post(f"/scripts/{script.id}/{path}").status_code == 403
    assert sign_in(vera).get(f"/scripts/{script.id}/").status_code == 200
    assert "Breakfast" not in sign_in(charlie).get("/scripts/").content.decode()
