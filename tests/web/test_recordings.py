"""Listening to a recording before it becomes a voice: nothing is kept, and only who may add voices is answered."""

from __future__ import annotations

import pytest

from synthesis.models import Voice
from tests.web.test_voices import recording

pytestmark = pytest.mark.django_db
URL = "/voices/check/"


def send(client, name="austen-0870.webm", **values):
    return client.post(URL, {"language": "en-US", "audio": recording(name)} | values)


def test_clean(sign_in, alice, hibari):
    answer = send(sign_in(alice))
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "notice-good" in page
    assert 'data-whole="' in page
    assert not Voice.objects.filter(team=alice.actor.team).exists()


def test_silence_and_what_is_no_sound(sign_in, alice, hibari):
    assert "notice-bad" in send(sign_in(alice), "silence-5s.wav").content.decode()
    assert "notice-bad" in send(sign_in(alice), "not-audio.wav").content.decode()


def test_flaws_are_told(sign_in, alice, hibari):
    assert "notice-warn" in send(sign_in(alice), "austen-0870-8k.wav").content.decode()


def test_nothing_sent(sign_in, alice, hibari):
    assert sign_in(alice).post(URL, {"language": "en-US"}).status_code == 400
    assert send(sign_in(alice), language="tlh").status_code == 400


def test_who_may(sign_in, client, vera, hibari):
    assert send(sign_in(vera)).status_code == 403
    assert send(client).status_code == 302
    assert sign_in(vera).get(URL).status_code == 405


def test_too_large(sign_in, alice, hibari, settings):
    settings.CHORUS_MAX_UPLOAD_MB = 0
    assert "larger than 0 MB" in send(sign_in(alice)).content.decode()


def test_each_language_has_something_to_read(sign_in, alice, hibari):
    from synthesis.engines import ENGINES
    from synthesis.web.reading import sentences

    for engine in ENGINES.values():
        for tag in engine.languages:
            assert tag.split("-")[0] == "en" or sentences(tag) != sentences("en")
