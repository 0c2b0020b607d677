"""Submitting a text from the studio."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.models import LedgerEntry, TeamQuota
from synthesis.models import SynthesisRequest
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db


def values(hibari, /, **changed):
    return {
        "text": "Good morning.",
        "voice": str(hibari.id),
        "format": "mp3",
        "speed": "1",
        "language": "",
    } | changed


def test_htmx_gets_the_card_and_the_meters(sign_in, alice, hibari):
    answer = sign_in(alice).post("/requests/", values(hibari), headers=HTMX)
    assert answer.status_code == 201
    made = SynthesisRequest.objects.get()
    page = answer.content.decode()
    assert f'id="request-{made.id}"' in page
    assert "Next in line" in page
    assert 'id="quota-bar"' in page
    assert 'id="count" hx-swap-oob="true"' in page
    assert 'data-remaining="999987"' in page
    assert (made.source, made.user, made.characters) == ("web", alice.user, 13)


def test_without_scripts_back_to_the_studio(sign_in, alice, hibari):
    answer = sign_in(alice).post("/requests/", values(hibari))
    assert answer.url == f"/#request-{SynthesisRequest.objects.get().id}"


def test_several_in_flight(sign_in, alice, hibari):
    client = sign_in(alice)
    for number in range(3):
        assert (
            client.post("/requests/", values(hibari, text=f"Number {number}."), headers=HTMX).status_code
            == 201
        )
    assert SynthesisRequest.objects.filter(status="queued").count() == 3


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "  \n\t "}, "text"),
        ({"text": "…!?。，"}, "text"),
        ({"text": "🎉🎉🎉"}, "text"),
        ({"text": "a" * 20_001}, "text"),
        ({"text": "bell \x07 rings"}, "text"),
        ({"voice": "nobody"}, "voice"),
        ({"voice": ""}, "voice"),
        ({"language": "tlh"}, "language"),
        ({"format": "exe"}, "format"),
        ({"speed": "9"}, "speed"),
        ({"speed": "fast"}, "speed"),
        ({"speed": "nan"}, "speed"),
    ],
)
@pytest.mark.parametrize("headers", [HTMX, {}], ids=["htmx", "plain"])
def test_bad_input_is_told_and_costs_nothing(sign_in, alice, hibari, changed, field, headers):
    answer = sign_in(alice).post("/requests/", values(hibari, **changed), headers=headers)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'class="field-error"' in page
    assert not SynthesisRequest.objects.exists()
    assert not LedgerEntry.objects.exists()
    if headers:
        assert answer.headers["HX-Retarget"] == "#studio-form"
        assert answer.headers["HX-Reswap"].startswith("outerHTML")


def test_the_text_is_not_lost_by_an_error(sign_in, alice, hibari):
    answer = sign_in(alice).post("/requests/", values(hibari, text="Keep me.", language="tlh"), headers=HTMX)
    assert "Keep me.</textarea>" in answer.content.decode()


def test_one_character_short(sign_in, alice, hibari):
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=12)
    answer = sign_in(alice).post("/requests/", values(hibari), headers=HTMX)
    assert answer.status_code == 422
    assert "12 characters remain, 13 are required" in answer.content.decode()
    assert not SynthesisRequest.objects.exists()


def test_another_teams_voice(sign_in, alice, charlie, hibari):
    voice = factories.preset("Aki")
    voice.team, voice.kind = charlie.actor.team, "cloned"
    voice.save()
    answer = sign_in(alice).post("/requests/", values(voice), headers=HTMX)
    assert answer.status_code == 422
    assert "This voice is no longer there" in answer.content.decode()


def test_a_viewer_cannot(sign_in, vera, hibari):
    answer = sign_in(vera).post("/requests/", values(hibari), headers=HTMX)
    assert answer.status_code == 422
    assert "Your role (Viewer) does not allow this" in answer.content.decode()


def test_needs_the_token(alice, hibari):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)
    assert client.post("/requests/", values(hibari)).status_code == 403
    assert sorted(SynthesisRequest.objects.all()) == []


def test_get(sign_in, alice):
    assert sign_in(alice).get("/requests/").status_code == 405


def test_a_form_that_is_sent_twice_is_spoken_once(sign_in, alice, bob, hibari):
    client = sign_in(alice)
    word = re.search(r'name="once" value="([^"]+)"', client.get("/").content.decode()).group(1)
    first = client.post("/requests/", values(hibari, once=word))
    again = client.post("/requests/", values(hibari, once=word))
    assert first.url == again.url
    twice = client.post("/requests/", values(hibari, once=word), headers=HTMX)
    assert twice.headers["HX-Reswap"] == "none", "its card is on the page"
    assert SynthesisRequest.objects.count() == 1
    assert LedgerEntry.objects.filter(kind="reserve").count() == 1
    # After a step back the page has the same word: what was changed is another request.
    answer = client.post("/requests/", values(hibari, once=word, text="Good evening."), headers=HTMX)
    assert answer.status_code == 201
    assert word not in answer.content.decode(), "and the page has a new one now"
    assert sign_in(bob).post("/requests/", values(hibari, once=word)).status_code == 302
    assert SynthesisRequest.objects.count() == 3


def test_a_refused_form_may_be_sent_again(sign_in, alice, hibari):
    client = sign_in(alice)
    team = TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
    assert client.post("/requests/", values(hibari, once="word"), headers=HTMX).status_code == 422
    team.delete()
    assert client.post("/requests/", values(hibari, once="word"), headers=HTMX).status_code == 201


def test_the_studio_says_when_the_month_runs_short_and_out(sign_in, alice, hibari):
    client = sign_in(alice)
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=20)
    assert "run short" not in client.get("/").content.decode()
    answer = client.post("/requests/", values(hibari, text="Good morning!!!!"), headers=HTMX).content.decode()
    assert 'id="quota-notice" role="status" hx-swap-oob="true"' in answer
    for page in (answer, client.get("/").content.decode()):
        assert "4 of 20 are left until the quota renews on" in page
    client.post("/requests/", values(hibari, text="Yes!"), headers=HTMX)
    page = client.get("/").content.decode()
    assert "are used up" in page
    assert "hx-swap-oob" not in page[page.index('id="quota-notice"') :][:80]
