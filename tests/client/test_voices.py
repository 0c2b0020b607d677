"""`chorus voices` and `chorus usage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from synthesis.models import Voice
from tests import factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"


def _own(alice, name="Mine"):
    return Voice.objects.create(team=alice.actor.team, kind="cloned", name=name, language="en-US")


class TestList:
    @pytest.mark.parametrize("arguments", [["voices"], ["voices", "list"]])
    def test_own_ones_first(self, chorus, alice, arguments):
        voice = _own(alice, "我的音色")
        status, out, err = chorus(*arguments)
        first, second = out.decode().splitlines()
        assert (status, err) == (0, "")
        assert first.split() == ["我的音色", "en-US", "own", str(voice.id)]
        assert second.startswith("Hibari    en-US")

    def test_as_json_and_filtered(self, chorus, alice):
        _own(alice)
        _status, out, _err = chorus("voices", "list", "--json", "--kind", "preset", "--search", "hib")
        assert [voice["name"] for voice in json.loads(out)] == ["Hibari"]

    def test_a_strangers_is_not_there(self, chorus):
        _own(factories.owner("Charlie"), "Theirs")
        assert b"Theirs" not in chorus("voices")[1]


class TestAdd:
    def test_a_recording(self, chorus, alice):
        clip = SPEECH / "austen-0870.wav"
        status, out, err = chorus(
            "voices", "add", clip, "--name", "Jane", "--language", "en-US", "--consent", "--gender", "female"
        )
        assert (status, err) == (0, "")
        voice = Voice.objects.get(team=alice.actor.team)
        assert (voice.name, voice.gender) == ("Jane", "female")
        assert out.decode().split() == ["Jane", str(voice.id)]

    def test_not_without_consent(self, chorus, alice):
        status, _out, err = chorus("voices", "add", SPEECH / "austen-0870.wav", "--language", "en-US")
        assert status == 2
        assert "permission" in err

    def test_what_is_no_recording(self, chorus):
        (chorus.folder / "clip.m4a").write_bytes(b"nothing")
        assert chorus("voices", "add", "clip.m4a", "--language", "en-US", "--consent")[0] == 4
        assert chorus("voices", "add", "missing.m4a", "--language", "en-US", "--consent")[0] == 2


class TestDelete:
    def test_by_name(self, chorus, alice):
        voice = _own(alice)
        assert chorus("voices", "delete", "mine", "--yes")[0] == 0
        voice.refresh_from_db()
        assert voice.deleted_at is not None

    @pytest.mark.parametrize("name", ["Nobody", "Hibari", "Theirs"])
    def test_neither_a_preset_nor_a_strangers(self, chorus, name):
        theirs = _own(factories.owner("Charlie"), "Theirs")
        assert chorus("voices", "delete", name, "--yes")[0] == 4
        theirs.refresh_from_db()
        assert theirs.deleted_at is None

    def test_not_without_a_question(self, chorus, alice):
        voice = _own(alice)
        assert chorus("voices", "delete", "Mine")[0] == 2
        voice.refresh_from_db()
        assert voice.deleted_at is None


def test_usage(chorus, alice):
    row = finished.succeed(factories.submit(alice))
    status, out, err = chorus("usage", "--by", "model")
    assert (status, err) == (0, "")
    head, names, line = out.decode().splitlines()
    assert head.startswith(f"{row.characters} of 1,000,000 characters used, 0 reserved")
    assert names.split() == ["model", "characters", "requests", "minutes"]
    assert line.split() == ["hibari", str(row.characters), "1", "0.0"]
    body = json.loads(chorus("usage", "--by", "model", "--json")[1])
    assert body["quota"]["characters_used"] == row.characters
    assert body["usage"]["results"][0]["requests"] == 1
    assert chorus("usage", "--first", "yesterday")[0] == 4
