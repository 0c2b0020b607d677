"""The voice library: grid, upload, one voice, samples."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from synthesis.models import Voice
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db

SPEECH = Path(__file__).resolve().parents[1] / "fixtures" / "speech"


def recording(name="austen-0870.m4a", sent_as="") -> SimpleUploadedFile:
    return SimpleUploadedFile(sent_as or name, (SPEECH / name).read_bytes())


def values(**changed):
    return {
        "name": "Jane",
        "language": "en-US",
        "transcript": "",
        "consent": "on",
        "shared": "on",
        "audio": recording(),
    } | changed


@pytest.fixture
def jane(sign_in, alice, hibari):
    """A voice of Alice's team, made through the page."""
    answer = sign_in(alice).post("/voices/new/", values())
    assert answer.status_code == 302, answer.content.decode()
    return Voice.objects.get(name="Jane")


def test_grid(sign_in, alice, charlie, hibari, jane):
    factories.preset("Aki", gender="male", style="calm")
    page = sign_in(alice).get("/voices/").content.decode()
    assert "Jane" in page
    assert "Aki" in page
    theirs = sign_in(charlie).get("/voices/").content.decode()
    assert "Jane" not in theirs
    assert "Aki" in theirs


def test_filters(sign_in, alice, hibari):
    factories.preset("Aki", gender="male", style="calm")
    client = sign_in(alice)
    assert "Hibari" not in client.get("/voices/?gender=male").content.decode()
    assert "Aki" in client.get("/voices/?q=CALM+aki").content.decode()
    assert "No voice matches" in client.get("/voices/?q=nobody").content.decode()
    assert "No voice matches" in client.get("/voices/?language=zh").content.decode()


def test_a_viewer_adds_none(sign_in, vera, hibari):
    client = sign_in(vera)
    assert "Add a voice" not in client.get("/voices/").content.decode()
    assert client.get("/voices/new/").status_code == 403
    assert client.post("/voices/new/", values()).status_code == 403


def test_upload_leads_to_the_voice(sign_in, alice, hibari):
    answer = sign_in(alice).post("/voices/new/", values(), headers=HTMX)
    made = Voice.objects.get(name="Jane")
    assert answer.headers["HX-Redirect"] == f"/voices/{made.id}/"
    assert made.team == alice.actor.team
    assert made.current_version.consent_by == alice.user


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"audio": ""}, "Choose a recording."),
        ({"name": " "}, "Give the voice a name."),
        ({"consent": ""}, "Without the consent of the person"),
        ({"language": "tlh"}, "Select a valid choice"),
        ({"audio": "silence-5s.wav"}, "We could not hear anyone speak here"),
        ({"audio": "not-audio.wav"}, "could not be read as audio"),
        ({"audio": "empty"}, "This file is empty"),
    ],
)
def test_bad_uploads_are_told(sign_in, alice, hibari, changed, message):
    sent = values(**changed)
    if changed.get("audio") == "empty":
        sent["audio"] = SimpleUploadedFile("empty.wav", b"")
    elif changed.get("audio"):
        sent["audio"] = recording(changed["audio"])
    answer = sign_in(alice).post("/voices/new/", sent, headers=HTMX)
    assert (answer.status_code, answer.headers["HX-Reswap"]) == (422, "outerHTML")
    assert message in answer.content.decode()
    assert not Voice.objects.filter(team=alice.actor.team).exists()


def test_too_large(sign_in, alice, hibari, settings):
    settings.CHORUS_MAX_UPLOAD_MB = 0
    answer = sign_in(alice).post("/voices/new/", values())
    assert answer.status_code == 422
    assert "larger than 0 MB" in answer.content.decode()


def test_a_name_twice(sign_in, alice, jane):
    answer = sign_in(alice).post("/voices/new/", values(name="jane"))
    assert answer.status_code == 422
    assert "already. Choose another name." in answer.content.decode()


def test_detail(sign_in, alice, bob, charlie, jane):
    page = sign_in(bob).get(f"/voices/{jane.id}/").content.decode()
    assert "austen-0870.m4a" in page
    assert "sounds most like this one" in page
    assert "This is my own voice" in page
    assert sign_in(charlie).get(f"/voices/{jane.id}/").status_code == 404


def test_a_presets_page(sign_in, alice, hibari):
    client = sign_in(alice)
    page = client.get(f"/voices/{hibari.id}/").content.decode()
    assert "<h1>Hibari</h1>" in page
    assert "Change it" not in page
    assert "Consent" not in page
    refused = client.post(f"/voices/{hibari.id}/", {"name": "Mine"})
    assert refused.status_code == 403
    assert "Clone a voice of your own." in refused.content.decode()


def unchanged(page: str) -> dict[str, str]:
    """What the form of the page would send."""
    names = ("name", "start", "end")
    inputs = {name: re.search(rf'name="{name}" value="([^"]*)"', page).group(1) for name in names}
    # Suggested by speech recognition where that is installed.
    transcript = re.search(r'<textarea name="transcript"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL).group(1)
    return inputs | {"language": "en-US", "gender": "", "shared": "on", "transcript": unescape(transcript)}


def test_change_the_name(sign_in, alice, charlie, jane):
    client = sign_in(alice)
    sent = unchanged(client.get(f"/voices/{jane.id}/").content.decode())
    assert sign_in(charlie).post(f"/voices/{jane.id}/", sent).status_code == 404
    assert client.post(f"/voices/{jane.id}/", sent | {"name": "Jane A."}).status_code == 302
    jane.refresh_from_db()
    assert (jane.name, jane.current_version.number) == ("Jane A.", 1)


def test_change_the_window(sign_in, alice, jane):
    client = sign_in(alice)
    sent = unchanged(client.get(f"/voices/{jane.id}/").content.decode()) | {"start": "1.0", "end": "6.5"}
    assert client.post(f"/voices/{jane.id}/", sent).status_code == 302
    jane.refresh_from_db()
    version = jane.current_version
    assert (version.number, round(version.window_start), round(version.window_end)) == (2, 1, 6)


def test_a_window_that_is_none(sign_in, alice, jane):
    client = sign_in(alice)
    sent = unchanged(client.get(f"/voices/{jane.id}/").content.decode())
    answer = client.post(f"/voices/{jane.id}/", sent | {"start": "5", "end": "2"})
    assert answer.status_code == 422
    assert "The end must lie after the beginning." in answer.content.decode()
    answer = client.post(f"/voices/{jane.id}/", sent | {"start": "0", "end": "999"})
    assert answer.status_code == 422


def test_delete(sign_in, alice, charlie, vera, jane):
    path = f"/voices/{jane.id}/delete/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(vera).post(path).status_code == 403
    assert sign_in(alice).get(path).status_code == 200
    assert sign_in(vera).get(path).status_code == 403
    assert sign_in(alice).post(path, headers=HTMX).headers["HX-Redirect"] == "/voices/"
    assert sign_in(alice).get(f"/voices/{jane.id}/").status_code == 404


def test_hear_it(sign_in, alice, charlie, jane):
    client = sign_in(alice)
    prepared = client.get(f"/voices/{jane.id}/sample/")
    assert prepared.headers["Content-Type"] == "audio/wav"
    assert b"".join(prepared.streaming_content).startswith(b"RIFF")
    original = client.get(f"/voices/{jane.id}/original/", headers={"Range": "bytes=0-99"})
    assert original.status_code == 206
    assert b"".join(original.streaming_content) == recording().read()[:100]
    for name in ("sample", "original"):
        assert sign_in(charlie).get(f"/voices/{jane.id}/{name}/").status_code == 404


def test_hear_a_preset(sign_in, charlie, tmp_path, monkeypatch):
    from synthesis import presets

    monkeypatch.setattr(presets, "SAMPLES", tmp_path)
    (tmp_path / "hibari").mkdir()
    known = next(preset for preset in presets.PRESETS if preset.engine == "hibari")
    voice = factories.preset("Heart", preset=known.slug)
    client = sign_in(charlie)
    assert client.get(f"/voices/{voice.id}/sample/").status_code == 404
    known.sample.write_bytes(b"0123456789")
    answer = client.get(f"/voices/{voice.id}/sample/", headers={"Range": "bytes=2-4"})
    assert (answer.status_code, b"".join(answer.streaming_content)) == (206, b"234")
    assert answer.headers["Content-Type"] == "audio/mpeg"
