"""The studio page."""

from __future__ import annotations

import uuid

import pytest

from synthesis.models import SynthesisRequest, Voice
from tests import factories

pytestmark = pytest.mark.django_db


def test_shows_editor_voices_and_limits(sign_in, alice, hibari):
    page = sign_in(alice).get("/").content.decode()
    assert "Hibari" in page
    assert 'data-limit="20000"' in page
    assert 'data-remaining="1000000"' in page
    assert 'name="instruction"' not in page, "hibari cannot follow instructions"
    assert "No worker is speaking right now" in page


def test_lists_own_requests_only(sign_in, alice, bob, charlie, hibari):
    factories.submit(alice, "A text of Alice.")
    factories.submit(bob, "A text of Bob.")
    factories.submit(charlie, "A text of Charlie.")
    page = sign_in(alice).get("/").content.decode()
    assert "A text of Alice." in page
    assert "A text of Bob." not in page
    assert "A text of Charlie." not in page


def test_use_again(sign_in, alice, bob, charlie, hibari):
    before = factories.submit(alice, "Once more, please.", speed=1.25, format="flac")
    page = sign_in(bob).get(f"/?from={before.id}").content.decode()
    assert "Once more, please.</textarea>" in page
    assert 'value="1.25"' in page
    assert "checked" in page.split('value="flac"')[1].split(">")[0]
    strangers = sign_in(charlie).get(f"/?from={before.id}").content.decode()
    assert "This request is no longer there" in strangers
    assert before.text not in strangers
    assert sign_in(alice).get("/?from=nonsense").status_code == 200


def test_use_a_voice(sign_in, alice, hibari):
    other = factories.preset("Aki")
    page = sign_in(alice).get(f"/?voice={other.id}").content.decode()
    assert page.count("checked") >= 1
    assert f'value="{other.id}" checked' in page


def test_without_any_voice(sign_in, alice):
    Voice.objects.all().delete()
    assert sign_in(alice).get("/").status_code == 200


def test_a_viewer_may_look(sign_in, vera, hibari):
    assert sign_in(vera).get("/").status_code == 200


def test_users_words_are_escaped(sign_in, alice, hibari):
    factories.submit(alice, "<script>alert(1)</script> and more words", title="<b>bold</b>")
    page = sign_in(alice).get("/").content.decode()
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert SynthesisRequest.objects.count() == 1


def test_post_is_not_for_the_page(sign_in, alice):
    assert sign_in(alice).post("/").status_code == 405


def test_unknown_ids(sign_in, alice, hibari):
    assert sign_in(alice).get(f"/?voice={uuid.uuid4()}").status_code == 200
    for name in ("from", "preset"):
        page = sign_in(alice).get(f"/?{name}={uuid.uuid4()}")
        assert page.status_code == 200
        assert "no longer there" in page.content.decode()
