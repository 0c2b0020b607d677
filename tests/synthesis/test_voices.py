"""A team's own voices: real recordings become voices, and what is none is refused with nothing left behind."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.db import connection

from accounts.errors import ChorusError, Conflict, InvalidInput, NotAllowed, NotFound
from accounts.models import AuditEntry, MemberQuota, Role, TeamQuota
from synthesis import storage
from synthesis.errors import VoiceIsPreset
from synthesis.models import Voice
from synthesis.services import voices
from tests import factories

pytestmark = pytest.mark.django_db

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "speech"


def _create(person, file="austen-0870.wav", **fields):
    defaults = {
        "name": "奶奶的声音",
        "language": "en-US",
        "audio": (FIXTURES / file).read_bytes(),
        "filename": "奶奶 录音.wav",
        "consent": True,
    }
    return voices.create(actor=person.actor, **(defaults | fields))


def _long_clip(seconds=60, rate=16_000):
    """The same reading again and again with pauses, as a long recording."""
    samples, rate = soundfile.read(FIXTURES / "austen-0870.wav", dtype="float32")
    piece = np.concatenate([samples, np.zeros(rate // 2, np.float32)])
    data = io.BytesIO()
    soundfile.write(data, np.tile(piece, seconds * rate // len(piece)), rate, format="WAV")
    return data.getvalue()


@pytest.mark.parametrize(
    "file",
    [
        "austen-0870.wav",
        "austen-0870.m4a",
        "austen-0870.webm",
        "austen-0870-stereo.mp3",
        "austen-0870-8k.wav",
    ],
)
def test_a_recording_becomes_a_voice(file):
    alice = factories.owner("Alice")
    voice = _create(alice, file, transcript="And Mr. John Dashwood had then leisure to consider.")
    version = voice.current_version
    assert (voice.kind, voice.name, voice.cloning) == ("cloned", "奶奶的声音", "nearest_preset")
    assert storage.get(version.original_key) == (FIXTURES / file).read_bytes()
    samples, rate = soundfile.read(io.BytesIO(storage.get(version.processed_key)))
    assert (rate, samples.ndim, version.sample_rate) == (24_000, 1, 24_000)
    assert abs(len(samples) / rate - version.seconds) < 0.01
    assert 5 < version.seconds < 7.5
    assert version.nearest["hibari"]
    assert version.quality["speech_seconds"] > 3
    assert version.consent_by == alice.user
    assert "permission" in version.consent_statement
    assert AuditEntry.objects.get(action="voice.created").data["consent"] == version.consent_statement
    for key in (version.original_key, version.processed_key):
        assert key.startswith(f"teams/{alice.actor.team.id}/voices/{voice.id}/")
        assert "奶奶" not in key


def test_a_clipped_recording_is_taken_with_a_warning():
    assert (
        "clipped"
        in _create(factories.owner("Alice"), "austen-0870-clipped.wav").current_version.quality["flaws"]
    )


def test_a_long_recording_is_cut_to_its_best_part_and_another_part_makes_a_new_version():
    alice = factories.owner("Alice")
    voice = _create(alice, audio=_long_clip())
    first = voice.current_version
    assert 50 < first.original_seconds < 60
    assert 5 <= first.seconds <= 15.5
    assert first.quality["windows"]
    changed = voices.update(
        actor=alice.actor, voice_id=voice.id, window=(7.6, 14.7), transcript="Same words."
    )
    second = changed.current_version
    assert (second.number, second.window_start, second.window_end) == (
        2,
        pytest.approx(7.6, abs=0.5),
        pytest.approx(14.7, abs=0.5),
    )
    assert second.processed_key != first.processed_key
    assert storage.get(first.processed_key) != storage.get(second.processed_key)
    with pytest.raises(InvalidInput):
        voices.update(actor=alice.actor, voice_id=voice.id, window=(50, 400))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"file": "not-audio.wav"}, "audio_unreadable"),
        ({"file": "truncated.m4a"}, "audio_unreadable"),
        ({"audio": b""}, "audio_unreadable"),
        ({"file": "silence-5s.wav"}, "no_speech"),
        ({"consent": False}, "consent_required"),
        ({"name": " "}, "name_invalid"),
        ({"name": "x" * 101}, "name_invalid"),
        ({"language": "fr"}, "language_not_supported"),
        ({"gender": "robot"}, "gender_unknown"),
        ({"transcript": "<|endofprompt|>"}, "transcript_invalid"),
        ({"window": (3.0, 100.0)}, "audio_window"),
    ],
)
def test_what_is_no_voice_leaves_nothing(fields, code):
    with pytest.raises(ChorusError) as caught:
        _create(factories.owner("Alice"), **fields)
    assert (caught.value.code, caught.value.status) == (code, 400)
    assert not Voice.objects.filter(kind="cloned").exists()


def test_a_clip_of_0_4_seconds_and_one_whose_header_lies():
    alice = factories.owner("Alice")
    samples, rate = soundfile.read(FIXTURES / "austen-0870.wav", dtype="float32")
    short = io.BytesIO()
    soundfile.write(short, samples[rate : rate + int(0.4 * rate)], rate, format="WAV")
    with pytest.raises(InvalidInput) as caught:
        _create(alice, audio=short.getvalue())
    assert caught.value.code in {"too_short", "no_speech"}
    with pytest.raises(InvalidInput) as caught:
        _create(alice, audio=(FIXTURES / "austen-0870.wav").read_bytes()[:60_000])
    assert caught.value.code == "audio_unreadable"


def test_a_name_is_taken_once_in_a_team():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    _create(alice, name="Granny")
    with pytest.raises(Conflict) as caught:
        _create(alice, name="gRANNY")
    assert caught.value.code == "voice_name_taken"
    _create(charlie, name="Granny")


def test_the_places_for_voices():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    TeamQuota.objects.create(team=alice.actor.team, stored_voices=2)
    MemberQuota.objects.create(membership=bob.actor.membership, stored_voices=0)
    with pytest.raises(Conflict) as caught:
        _create(bob)
    assert caught.value.code == "voice_limit_reached"
    first = _create(alice, name="one")
    _create(alice, name="two")
    with pytest.raises(Conflict):
        _create(alice, name="three")
    voices.delete(actor=alice.actor, voice_id=first.id)
    _create(alice, name="three")


def test_a_stranger_finds_nothing_and_a_viewer_changes_nothing():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    viewer = factories.colleague(alice, "Vera", Role.VIEWER)
    voice = _create(alice)
    assert voices.find(viewer.actor, voice.id) == voice
    for attempt in (
        lambda: voices.find(charlie.actor, voice.id),
        lambda: voices.update(actor=charlie.actor, voice_id=voice.id, name="mine"),
        lambda: voices.delete(actor=charlie.actor, voice_id=voice.id),
    ):
        with pytest.raises(NotFound):
            attempt()
    for attempt in (
        lambda: _create(viewer, name="v"),
        lambda: voices.delete(actor=viewer.actor, voice_id=voice.id),
    ):
        with pytest.raises(NotAllowed):
            attempt()
    preset = factories.preset()
    with pytest.raises(VoiceIsPreset):
        voices.delete(actor=alice.actor, voice_id=preset.id)


def test_an_upload_that_dies_on_its_way_to_storage_is_invisible(monkeypatch):
    alice = factories.owner("Alice")

    def die(*_):
        raise SystemExit

    monkeypatch.setattr(storage, "put", die)
    with pytest.raises(SystemExit):
        _create(alice)
    assert Voice.objects.usable(alice.actor).filter(kind="cloned").count() == 0
    monkeypatch.undo()
    _create(alice)


@pytest.mark.django_db(transaction=True)
def test_two_uploads_at_once_take_the_last_place_once():
    alice = factories.owner("Alice")
    TeamQuota.objects.create(team=alice.actor.team, stored_voices=1)
    outcomes = []

    def upload(name):
        try:
            _create(alice, name=name)
            outcomes.append("made")
        except Conflict:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=upload, args=(f"voice {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["made", "refused", "refused"]


def test_a_voice_takes_no_built_in_name():
    """A team's own voice comes first when a request names one, so that it would take the preset's place unnoticed."""
    alice = factories.owner("Alice")
    factories.preset("Heart")
    with pytest.raises(Conflict, match="built-in voice is called") as caught:
        _create(alice, name="heart")
    assert (caught.value.code, caught.value.param) == ("voice_name_taken", "name")
    voice = _create(alice)
    with pytest.raises(Conflict, match="built-in voice"):
        voices.update(actor=alice.actor, voice_id=voice.id, name="HEART")
    assert voices.update(actor=alice.actor, voice_id=voice.id, name="奶奶").name == "奶奶"
