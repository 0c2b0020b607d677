"""Several recordings of one voice: the best is used, the others are kept and can be used later."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from accounts.errors import InvalidInput, NotAllowed, NotFound
from accounts.models import Role
from synthesis import storage
from synthesis.models import Voice
from synthesis.services import clips, submission, voices
from synthesis.services.clips import Recording
from tests import factories

pytestmark = pytest.mark.django_db

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "speech"


def _read(name):
    return (FIXTURES / name).read_bytes()


GOOD, CLIPPED, NARROW = (
    _read("austen-0870.wav"),
    _read("austen-0870-clipped.wav"),
    _read("austen-0870-8k.wav"),
)


def noisy(decibels_below=8.0):
    samples, rate = soundfile.read(io.BytesIO(GOOD), dtype="float32")
    noise = np.random.default_rng(1).normal(0, samples.std() * 10 ** (-decibels_below / 20), len(samples))
    file = io.BytesIO()
    soundfile.write(file, samples + noise, rate, format="WAV")
    return file.getvalue()


def _create(person, audio=GOOD, **fields):
    defaults = {"name": "Mine", "language": "en-US", "consent": True}
    return voices.create(actor=person.actor, audio=audio, **(defaults | fields))


@pytest.mark.parametrize("worse", [CLIPPED, NARROW, noisy()], ids=["clipped", "telephone", "noisy"])
@pytest.mark.parametrize("place", [1, 2])
def test_the_better_of_two_is_used_whichever_comes_first(worse, place):
    sent = [Recording(worse, "worse.wav", "Worse words."), Recording(worse, "worse.wav", "Worse words.")]
    sent[place - 1] = Recording(GOOD, "good.wav", "Good words.")
    first, *more = sent
    voice = _create(
        factories.owner("Alice"),
        first.audio,
        filename=first.filename,
        transcript=first.transcript,
        more=more,
    )
    version = voice.current_version
    assert (version.original_name, version.transcript) == ("good.wav", "Good words.")
    assert storage.get(version.original_key) == GOOD
    assert [clip["chosen"] for clip in version.clips] == [place == 1, place == 2]
    assert {storage.get(clip["key"]) for clip in version.clips} == {GOOD, worse}
    assert version.quality["flaws"] == []


def test_one_that_is_no_speech_is_told_and_not_used():
    voice = _create(
        factories.owner("Alice"), _read("silence-5s.wav"), more=[Recording(b"text"), Recording(GOOD)]
    )
    found = voice.current_version.clips
    assert [clip["problems"] for clip in found] == [["no_speech"], ["audio_unreadable"], []]
    assert [clip["score"] is None for clip in found] == [True, True, False]
    assert found[2]["chosen"]


def test_none_of_them_is_speech():
    with pytest.raises(InvalidInput) as caught:
        _create(factories.owner("Alice"), _read("silence-5s.wav"), more=[Recording(b"text")])
    assert caught.value.code == "no_speech"
    assert not Voice.objects.exists()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"more": [Recording(GOOD)] * 5}, "too_many_recordings"),
        ({"more": [Recording(GOOD)], "window": (0.5, 4.0)}, "window_invalid"),
        ({"more": [Recording(GOOD, "", "<|endofprompt|>")]}, "transcript_invalid"),
        ({"chosen": 2}, "recording_unknown"),
    ],
)
def test_what_does_not_go_together(fields, code):
    with pytest.raises(InvalidInput) as caught:
        _create(factories.owner("Alice"), **fields)
    assert caught.value.code == code
    assert not Voice.objects.exists()


def test_another_recording_makes_a_new_version_and_requests_keep_theirs():
    alice = factories.owner("Alice")
    voice = _create(alice, more=[Recording(NARROW, "phone.wav", "By telephone.")])
    first = voice.current_version
    request = factories.submit(alice, voice=str(voice.id))
    changed = voices.update(actor=alice.actor, voice_id=voice.id, recording=2)
    second = changed.current_version
    assert (second.number, second.transcript, second.original_name) == (2, "By telephone.", "phone.wav")
    assert second.quality["flaws"] == ["narrow_band"]
    assert second.processed_key != first.processed_key
    request.refresh_from_db()
    assert request.voice_version == first
    first.refresh_from_db()
    assert [clip["chosen"] for clip in first.clips] == [True, False]
    # Back again: nothing is made anew.
    assert voices.update(actor=alice.actor, voice_id=voice.id, version=1).current_version == first
    assert voice.versions.count() == 2
    for wrong in ({"recording": 3}, {"version": 9}):
        with pytest.raises((InvalidInput, NotFound)):
            voices.update(actor=alice.actor, voice_id=voice.id, **wrong)


def test_recorded_again():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    bob = factories.colleague(alice, "Bob")
    voice = _create(alice)
    old = factories.submit(alice, voice=str(voice.id))
    with pytest.raises(InvalidInput) as caught:
        voices.record_again(
            actor=alice.actor, voice_id=voice.id, recordings=[Recording(NARROW)], consent=False
        )
    assert caught.value.code == "consent_required"
    with pytest.raises(NotFound):
        voices.record_again(
            actor=charlie.actor, voice_id=voice.id, recordings=[Recording(NARROW)], consent=True
        )
    again = voices.record_again(
        actor=bob.actor, voice_id=voice.id, recordings=[Recording(NARROW, "b.wav")], consent=True
    )
    version = again.current_version
    assert (version.number, version.consent_by, version.original_name) == (2, bob.user, "b.wav")
    new = factories.submit(alice, voice=str(voice.id))
    old.refresh_from_db()
    assert (old.voice_version.number, new.voice_version.number) == (1, 2)
    assert [one.number for one in voices.versions(alice.actor, voice.id)] == [2, 1]


def test_a_version_from_before_there_were_several(monkeypatch):
    alice = factories.owner("Alice")
    voice = _create(alice, filename="old.wav")
    voice.current_version.clips = []
    voice.current_version.save()
    assert [(clip["number"], clip["name"], clip["chosen"]) for clip in clips.of(voice.current_version)] == [
        (1, "old.wav", True)
    ]
    changed = voices.update(actor=alice.actor, voice_id=voice.id, window=(0.5, 5.0))
    assert changed.current_version.number == 2


class TestPrivate:
    def test_only_its_maker_and_who_manages_the_team_find_it(self):
        alice = factories.owner("Alice")
        bob, carla = factories.colleague(alice, "Bob"), factories.colleague(alice, "Carla")
        voice = _create(bob, shared=False)
        for person in (alice, bob):
            assert voices.find(person.actor, voice.id) == voice
            assert submission.find_voice(person.actor, "mine") == voice
        for attempt in (
            lambda: voices.find(carla.actor, voice.id),
            lambda: voices.update(actor=carla.actor, voice_id=voice.id, name="x"),
            lambda: voices.delete(actor=carla.actor, voice_id=voice.id),
            lambda: voices.versions(carla.actor, voice.id),
        ):
            with pytest.raises(NotFound):
                attempt()
        with pytest.raises(InvalidInput):
            submission.find_voice(carla.actor, str(voice.id))

    def test_who_decides(self):
        alice = factories.owner("Alice")
        bob, carla = factories.colleague(alice, "Bob"), factories.colleague(alice, "Carla", Role.MEMBER)
        voice = _create(bob)
        with pytest.raises(NotAllowed):
            voices.update(actor=carla.actor, voice_id=voice.id, shared=False)
        assert voices.update(actor=carla.actor, voice_id=voice.id, shared=True, name="Ours").name == "Ours"
        assert not voices.update(actor=bob.actor, voice_id=voice.id, shared=False).shared
        assert voices.update(actor=alice.actor, voice_id=voice.id, shared=True).shared
        assert voices.find(carla.actor, voice.id) == voice
