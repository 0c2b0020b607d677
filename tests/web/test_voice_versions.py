"""Other recordings of a voice: record it again, go back, hear each, try it."""

from __future__ import annotations

import pytest

from synthesis.models import SynthesisRequest, Voice
from tests.synthesis.voicing import own as own_voice
from tests.web.conftest import HTMX
from tests.web.test_voices import recording, values

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(alice, hibari):
    return own_voice(alice, "Mine")


def test_again_and_back(sign_in, alice, charlie, mine):
    client = sign_in(alice)
    path = f"/voices/{mine.id}/again/"
    assert "Record “Mine” again" in client.get(path).content.decode()
    sent = {"audio": recording(), "transcript": "Other words.", "consent": "on"}
    assert sign_in(charlie).post(path, sent).status_code == 404
    answer = client.post(path, sent | {"audio": recording()}, headers=HTMX)
    assert answer.headers["HX-Redirect"] == f"/voices/{mine.id}/"
    mine.refresh_from_db()
    assert (mine.current_version.number, mine.current_version.transcript) == (2, "Other words.")
    assert mine.current_version.consent_language == "en"
    page = client.get(f"/voices/{mine.id}/").content.decode()
    assert f"/voices/{mine.id}/sample/?version=1" in page
    assert client.get(f"/voices/{mine.id}/sample/?version=1").status_code == 200
    assert client.get(f"/voices/{mine.id}/sample/?version=9").status_code == 404
    assert client.post(f"/voices/{mine.id}/version/", {"number": "1"}).url == f"/voices/{mine.id}/"
    mine.refresh_from_db()
    assert mine.current_version.number == 1
    for number in ("9", "x"):
        assert client.post(f"/voices/{mine.id}/version/", {"number": number}).status_code == 404


def test_again_without_consent(sign_in, alice, vera, mine):
    path = f"/voices/{mine.id}/again/"
    answer = sign_in(alice).post(path, {"audio": recording()}, headers=HTMX)
    assert (answer.status_code, answer.headers["HX-Reswap"]) == (422, "outerHTML")
    assert sign_in(vera).get(path).status_code == 403


def test_try_it(sign_in, alice, vera, charlie, mine):
    path = f"/voices/{mine.id}/preview/"
    answer = sign_in(alice).post(path, {"text": "Good evening."}, headers=HTMX)
    assert (answer.status_code, "<article" in answer.content.decode()) == (201, True)
    assert SynthesisRequest.objects.get().text == "Good evening."
    refused = sign_in(alice).post(path, {"text": "x" * 301}, headers=HTMX)
    assert (refused.status_code, refused.headers["HX-Retarget"]) == (400, "#preview-error")
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(vera).post(path).status_code == 403
    assert "Try it" not in sign_in(vera).get(f"/voices/{mine.id}/").content.decode()


def test_kept_to_oneself(sign_in, alice, bob, hibari):
    client = sign_in(alice)
    client.post("/voices/new/", values(shared=""))
    made = Voice.objects.get(name="Jane")
    assert not made.shared
    assert sign_in(bob).get(f"/voices/{made.id}/").status_code == 404
    assert 'name="shared"' in client.get(f"/voices/{made.id}/").content.decode()


def test_only_who_made_it_decides(sign_in, alice, bob, mine):
    assert 'name="shared"' not in sign_in(bob).get(f"/voices/{mine.id}/").content.decode()
