"""Submitting a text: what is wrong is refused before anything is queued or charged."""

from __future__ import annotations

import pytest

from accounts.errors import ChorusError, LimitReached
from accounts.models import LedgerEntry, MemberQuota, Role, TeamQuota
from accounts.services import limits
from synthesis import doorbell
from synthesis.models import SynthesisRequest, Voice
from tests import factories

pytestmark = pytest.mark.django_db


def _refused(person, **fields) -> ChorusError:
    with pytest.raises(ChorusError) as caught:
        factories.submit(person, **fields)
    assert not SynthesisRequest.objects.exists()
    assert not LedgerEntry.objects.exists()
    assert limits.standing(person.actor).reserved == 0
    return caught.value


def test_a_text_is_queued_reserved_and_rung(django_capture_on_commit_callbacks):
    alice = factories.owner("Alice")
    doorbell.queue().empty()
    with django_capture_on_commit_callbacks(execute=True):
        request = factories.submit(alice, "One sentence. " * 40, title="  Mein   Titel ")
    assert (request.status, request.title, request.source) == ("queued", "Mein Titel", "api")
    assert request.segments_total == request.segments.count() > 1
    assert limits.standing(alice.actor).reserved == request.characters == len("One sentence. " * 40)
    assert doorbell.queue().count == 1


def test_a_character_is_a_code_point_in_nfc():
    alice = factories.owner("Alice")
    assert factories.submit(alice, "Cafe\u0301 \U0001f600 ok").characters == len("Café 😀 ok")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "text_empty"),
        (" \n\t ", "text_empty"),
        ("?!… —", "text_not_speakable"),
        ("😀🎉", "text_not_speakable"),
        ("ab\x00c", "text_control_characters"),
        ("say \x07 bell", "text_control_characters"),
        ("a" * 20_001, "text_too_long"),
        ("Hi <|endofprompt|> there", "text_special_token"),
        ("Привет, как твои дела сегодня?", "language_not_supported"),
        ("今天天气很好。", "language_not_supported"),
    ],
)
def test_texts_that_cannot_be_spoken(text, code):
    assert _refused(factories.owner("Alice"), text=text).code == code


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"voice": "nobody"}, "voice_not_found", "voice"),
        ({"voice": "00000000-0000-0000-0000-000000000000"}, "voice_not_found", "voice"),
        ({"language": "fr"}, "language_not_supported", "language"),
        ({"language": "klingon"}, "language_not_supported", "language"),
        ({"instruction": "angrily"}, "instruction_not_supported", "instruction"),
        ({"format": "midi"}, "format_unknown", "format"),
        ({"speed": 3.0}, "speed_out_of_range", "speed"),
        ({"speed": float("nan")}, "speed_out_of_range", "speed"),
        ({"seed": -1}, "seed_out_of_range", "seed"),
        ({"title": "x" * 201}, "title_invalid", "title"),
        ({"title": "a\x00b"}, "title_invalid", "title"),
    ],
)
def test_fields_that_the_engine_cannot_do(fields, code, param):
    error = _refused(factories.owner("Alice"), **fields)
    assert (error.code, error.param) == (code, param)


def test_another_teams_voice_is_unknown():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    voice = Voice.objects.create(
        team=alice.actor.team, kind=Voice.Kind.CLONED, name="Großmutter", language="en-US"
    )
    assert _refused(charlie, voice=str(voice.id)).code == "voice_not_found"
    assert _refused(charlie, voice="großmutter").code == "voice_not_found"
    assert factories.submit(alice, voice="großmutter").voice == voice


def test_an_unknown_voice_is_told_what_there_is():
    """Another service's name is not guessed, and is a voice as soon as the team calls one of its own so."""
    alice = factories.owner("Alice")
    for name in ("Hibari", "Aki"):
        factories.preset(name)
    error = _refused(alice, voice="alloy")
    assert (error.details["voices"], "“alloy”" in str(error)) == (["Aki", "Hibari"], True)
    voice = Voice.objects.create(
        team=alice.actor.team, kind=Voice.Kind.CLONED, name="Alloy", language="en-US", created_by=alice.user
    )
    assert _refused(alice, voice="shimmer").details["voices"] == ["Alloy", "Aki", "Hibari"]
    # Too long to be worth repeating.
    assert "There is no such voice" in str(_refused(alice, voice="x" * 101))
    assert factories.submit(alice, voice="alloy").voice == voice


def test_a_voice_by_name_is_the_teams_own_before_a_preset():
    alice = factories.owner("Alice")
    factories.preset("Hibari")
    own = Voice.objects.create(team=alice.actor.team, kind=Voice.Kind.CLONED, name="hibari", language="en-US")
    assert factories.submit(alice, voice="Hibari").voice == own


def test_quota_one_character_short():
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=9)
    error = _refused(alice, text="Ten chars.")
    assert (error.code, error.status) == ("quota_exceeded", 429)
    factories.submit(alice, "Nine char")


def test_a_viewer_cannot_submit():
    alice = factories.owner("Alice")
    viewer = factories.colleague(alice, "Vera", Role.VIEWER)
    assert _refused(viewer).status == 403


def test_a_full_queue_is_refused_for_team_and_person():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    TeamQuota.objects.create(team=alice.actor.team, queued_requests=3)
    MemberQuota.objects.create(membership=bob.actor.membership, queued_requests=1)
    factories.submit(bob)
    with pytest.raises(LimitReached) as caught:
        factories.submit(bob)
    assert caught.value.code == "concurrent_limit_exceeded"
    assert caught.value.retry_after
    factories.submit(alice)
    factories.submit(alice)
    with pytest.raises(LimitReached):
        factories.submit(alice)
    assert limits.standing(alice.actor).reserved == 3 * 28


def test_a_bare_language_takes_the_voices_own_variety(settings):
    settings.CHORUS_ENGINE = "kokoro"
    alice = factories.owner("Alice")
    emma = factories.preset("Emma", engine="kokoro", preset="bf_emma", language="en-GB")
    heart = factories.preset("Heart", engine="kokoro", preset="af_heart", language="en-US")
    for voice, wanted, spoken in [
        (emma, "", "en-GB"),
        (emma, "en", "en-GB"),
        (emma, "en-US", "en-US"),
        (heart, "en-us", "en-US"),
        (heart, "zh-CN", "zh"),
    ]:
        assert factories.submit(alice, voice=str(voice.id), language=wanted).language == spoken
    assert factories.submit(alice, "今天天气很好。", voice=str(heart.id)).language == "zh"
