"""`/v1/voices/{id}/export` and `/v1/voices/import`: a voice travels, and nothing else does."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import time
import uuid
import zipfile
import zlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import AuditEntry, TeamQuota
from accounts.services import keys
from synthesis import storage
from synthesis.models import Voice, VoiceConsent
from synthesis.services import consents, voices
from synthesis.services.clips import Recording
from tests import factories
from tests.synthesis.voicing import SPEECH, URL, error

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

IMPORT = f"{URL}/import"
GOOD = (SPEECH / "austen-0870.wav").read_bytes()
PHONE = (SPEECH / "austen-0870-8k.wav").read_bytes()


def _voice(person, **fields):
    defaults = {
        "name": "奶奶 / ../x",
        "language": "en-US",
        "audio": GOOD,
        "filename": "../../etc/奶奶.WAV",
        "transcript": "Said.",
        "consent": True,
    }
    return voices.create(actor=person.actor, **(defaults | fields))


def _export(client, person, voice):
    response = client.get(f"{URL}/{voice.id}/export", headers=person.headers)
    assert response.status_code == 200, response.content
    return response


def _import(client, person, data, **fields):
    form = {"file": SimpleUploadedFile("voice.zip", data), "consent": "true"} | fields
    form = {name: value for name, value in form.items() if value is not None}
    return client.post(IMPORT, form, headers=person.headers)


def _repacked(data, *, change=None, replace=None, add=(), drop=(), compress=zipfile.ZIP_STORED):
    """`data` with another description, and other files."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", compress) as new:
        for member in old.infolist():
            if member.filename in drop:
                continue
            content = (replace or {}).get(member.filename, old.read(member))
            if member.filename == "voice.json" and change:
                said = json.loads(content)
                changed = change(said)
                content = json.dumps(said if changed is None else changed)
            new.writestr(member.filename, content)
        for name, content in add:
            new.writestr(name, content)
    return out.getvalue()


@pytest.fixture
def exported(client, alice):
    return _export(client, alice, _voice(alice)).content


class TestThere:
    def test_what_is_in_it(self, client, alice):
        consent = consents.create(actor=alice.actor, name="Granny agrees", language="en-US", recording=GOOD)
        voice = _voice(alice, more=[Recording(PHONE, "phone")], consent_recording=consent)
        response = _export(client, alice, voice)
        assert response.headers["Content-Type"] == "application/zip"
        assert "attachment" in response.headers["Content-Disposition"]
        assert "%E5%A5%B6" in response.headers["Content-Disposition"]
        with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
            assert set(archive.namelist()) == {
                "voice.json",
                "prepared.wav",
                "recordings/1.wav",
                "recordings/2",
                "consent/recording",
            }
            assert archive.read("recordings/1.wav") == GOOD
            assert archive.read("prepared.wav") == storage.get(voice.current_version.processed_key)
            said = json.loads(archive.read("voice.json"))
        assert (said["name"], said["transcript"], said["language"]) == ("奶奶 / ../x", "Said.", "en-US")
        assert said["consent"]["by"] == "alice@example.org"
        assert "permission" in said["consent"]["statement"]
        assert said["recordings"][0]["sha256"] == hashlib.sha256(GOOD).hexdigest()
        assert AuditEntry.objects.filter(action="voice.exported").count() == 1


class TestAndBack:
    def test_to_another_team(self, client, alice, charlie):
        consent = consents.create(actor=alice.actor, name="Granny agrees", language="en-US", recording=GOOD)
        voice = _voice(
            alice, more=[Recording(PHONE, "phone.wav")], consent_recording=consent, gender="female"
        )
        voice = voices.update(actor=alice.actor, voice_id=voice.id, transcript="Better words.")
        data = _export(client, alice, voice).content
        response = _import(client, charlie, data)
        assert response.status_code == 201, response.content
        made = Voice.objects.get(team=charlie.actor.team)
        assert response.headers["Location"].endswith(str(made.id))
        old, new = voice.current_version, made.current_version
        assert (made.name, made.gender, new.transcript) == (voice.name, "female", "Better words.")
        assert storage.get(new.original_key) == GOOD
        assert storage.get(new.processed_key) == storage.get(old.processed_key)
        assert (new.window_start, new.window_end) == (old.window_start, old.window_end)
        assert [clip["name"] for clip in new.clips] == ["../../etc/奶奶.WAV", "phone.wav"]
        assert new.original_key.startswith(f"teams/{charlie.actor.team.id}/voices/{made.id}/")
        # Who imports agrees anew; what was agreed to before is kept.
        assert new.consent_by == charlie.user
        assert new.origin["consent"]["by"] == "alice@example.org"
        assert AuditEntry.objects.get(action="voice.created", team_id=charlie.actor.team.id).data["origin"][
            "voice"
        ] == str(voice.id)
        recorded = new.consent_recording
        assert (recorded.team, recorded.name) == (charlie.actor.team, "Granny agrees")
        assert storage.get(recorded.recording_key) == GOOD

    def test_under_another_name_and_private(self, client, alice, exported):
        assert error(_import(client, alice, exported))[:2] == (409, "voice_name_taken")
        body = _import(client, alice, exported, name="Copy", shared="false").json()
        assert (body["name"], body["shared"]) == ("Copy", False)

    def test_a_refused_one_leaves_no_consent(self, client, alice):
        consent = consents.create(actor=alice.actor, name="Agreed", language="en-US", recording=GOOD)
        data = _export(client, alice, _voice(alice, consent_recording=consent)).content
        assert _import(client, alice, data).status_code == 409
        assert VoiceConsent.objects.filter(deleted_at=None).count() == 1

    @pytest.mark.parametrize("consent", ["false", "", "maybe"])
    def test_not_without_consent(self, client, charlie, exported, consent):
        response = _import(client, charlie, exported, consent=consent)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "consent")
        assert Voice.objects.count() == 1

    def test_no_place_left(self, client, charlie, exported):
        TeamQuota.objects.create(team=charlie.actor.team, stored_voices=0)
        assert error(_import(client, charlie, exported))[:2] == (409, "voice_limit_reached")

    def test_too_many_in_a_minute(self, client, charlie, exported):
        TeamQuota.objects.create(team=charlie.actor.team, requests_per_minute=1)
        _import(client, charlie, b"")
        assert error(_import(client, charlie, exported))[:2] == (429, "rate_limit_exceeded")


def _bomb(size=300 * 1024 * 1024):
    """A small file that says it is small and grows to `size` bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b"\x00" * (1024 * 1024)
    packed = b"".join(packer.compress(block) for _i in range(size // len(block))) + packer.flush()
    name, crc = b"voice.json", 0
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(packed), 1000, len(name), 0)
    central = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, len(packed), 1000, len(name), 0, 0, 0, 0, 0, 0
    )
    body = local + name + packed
    directory = central + name
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), len(body), 0)
    return body + directory + end


def _truthful_bomb():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("voice.json", b"0" * (100 * 1024 * 1024))
    return out.getvalue()


def _many():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(20_000):
            archive.writestr(f"recordings/{number}", b"")
    return out.getvalue()


class TestWhatIsNoVoice:
    def _refused(self, client, person, data):
        began = time.monotonic()
        response = _import(client, person, data)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "file"), response.content
        assert time.monotonic() - began < 5
        assert not Voice.objects.filter(team=person.actor.team).exists()
        assert not VoiceConsent.objects.exists()
        return response.json()["error"]["code"]

    @pytest.mark.parametrize(
        "data",
        [b"", b"text", b"PK\x05\x06" + b"\x00" * 18, GOOD, _bomb(), _truthful_bomb(), _many()],
        ids=["empty", "text", "no files", "wav", "lying bomb", "bomb", "many files"],
    )
    def test_other_files(self, client, charlie, data):
        assert self._refused(client, charlie, data) == "voice_file_unreadable"

    @pytest.mark.parametrize("cut", [30, 1000, -1, -30])
    def test_a_part_of_it(self, client, charlie, exported, cut):
        assert self._refused(client, charlie, exported[:cut]) == "voice_file_unreadable"

    def test_a_flipped_byte_anywhere(self, client, charlie, exported):
        for place in range(50, len(exported), len(exported) // 9):
            broken = bytearray(exported)
            broken[place] ^= 0xFF
            assert self._refused(client, charlie, bytes(broken)) == "voice_file_unreadable"

    @pytest.mark.parametrize(
        "name", ["../evil", "/etc/passwd", "recordings/../../x", "recordings/6.wav", "C:\\x", "recordings/"]
    )
    def test_files_of_other_names(self, client, charlie, exported, name):
        assert (
            self._refused(client, charlie, _repacked(exported, add=[(name, b"x")])) == "voice_file_unreadable"
        )

    def test_a_name_twice(self, client, charlie, exported):
        with pytest.warns(UserWarning, match="Duplicate"):
            doubled = _repacked(exported, add=[("prepared.wav", b"x")])
        assert self._refused(client, charlie, doubled) == "voice_file_unreadable"

    @pytest.mark.parametrize("name", ["prepared.wav", "recordings/1.wav", "voice.json"])
    def test_a_file_is_missing_or_another(self, client, charlie, exported, name):
        assert self._refused(client, charlie, _repacked(exported, drop=[name])) == "voice_file_unreadable"
        changed = _repacked(exported, replace={name: b"other"})
        assert self._refused(client, charlie, changed) == "voice_file_unreadable"

    @pytest.mark.parametrize(
        "change",
        [
            lambda said: said.update(format="other"),
            lambda said: said.update(format_version=2),
            lambda said: said.pop("name"),
            lambda said: said.update(name=5),
            lambda said: said.update(name="a\x00"),
            lambda said: said.update(name="\ud800"),
            lambda said: said.update(window=[1]),
            lambda said: said.update(window=["x", "y"]),
            lambda said: said.update(recordings=[]),
            lambda said: said.update(recordings=said["recordings"] * 6),
            lambda said: said.update(recordings={}),
            lambda said: said["recordings"][0].update(chosen=False),
            lambda said: said["recordings"][0].update(file="../x"),
            lambda said: said["recordings"][0].update(file="voice.json"),
            lambda said: said.update(consent=None),
            lambda said: said["consent"].update(recording={"file": "prepared.wav"}),
            lambda said: [],
            lambda said: "voice",
            lambda said: said.update(version="9" * 5000),
        ],
    )
    def test_a_wrong_description(self, client, charlie, exported, change):
        assert self._refused(client, charlie, _repacked(exported, change=change)) == "voice_file_unreadable"

    def test_nothing_about_consent(self, client, charlie, exported):
        changed = _repacked(exported, change=lambda said: said["consent"].update(statement=" "))
        assert self._refused(client, charlie, changed) == "consent_missing"

    def test_a_window_outside(self, client, charlie, exported):
        for window in ([50, 60], [0, 1e308], [float("nan"), 1]):
            changed = _repacked(exported, change=lambda said, window=window: said.update(window=window))
            assert self._refused(client, charlie, changed) == "audio_window"

    def test_a_recording_that_is_none_though_its_checksum_is_right(self, client, charlie, exported):
        text = b"This is no sound."

        def change(said):
            said["recordings"][0]["sha256"] = hashlib.sha256(text).hexdigest()

        changed = _repacked(exported, change=change, replace={"recordings/1.wav": text})
        assert self._refused(client, charlie, changed) == "audio_unreadable"

    def test_the_prepared_clip_is_not_believed(self, client, charlie, exported):
        other = b"RIFF something else"

        def change(said):
            said["prepared"]["sha256"] = hashlib.sha256(other).hexdigest()
            said["quality"] = {"flaws": []}

        changed = _repacked(exported, change=change, replace={"prepared.wav": other})
        assert _import(client, charlie, changed).status_code == 201
        version = Voice.objects.get(team=charlie.actor.team).current_version
        assert storage.get(version.processed_key) != other
        assert "loudness_lufs" in version.quality

    def test_a_language_that_is_not_spoken_here(self, client, charlie, exported):
        changed = _repacked(exported, change=lambda said: said.update(language="xx"))
        assert error(_import(client, charlie, changed))[:2] == (400, "language_not_supported")

    def test_packed_anew_by_another_program(self, client, charlie, exported):
        assert _import(client, charlie, _repacked(exported, compress=zipfile.ZIP_DEFLATED)).status_code == 201

    def test_too_large(self, client, charlie, exported, settings):
        settings.CHORUS_MAX_UPLOAD_MB = 0
        assert self._refused(client, charlie, exported) == "file_too_large"


class TestWhoMay:
    def test_a_strangers_a_presets_a_private_and_none(self, client, alice, charlie):
        voice, bob = _voice(alice, shared=False), factories.colleague(alice, "Bob")
        for person, identifier in (
            (charlie, voice.id),
            (bob, voice.id),
            (alice, uuid.uuid4()),
            (alice, "x"),
        ):
            response = client.get(f"{URL}/{identifier}/export", headers=person.headers)
            assert error(response)[:2] == (404, "voice_not_found")
        response = client.get(f"{URL}/{factories.preset().id}/export", headers=alice.headers)
        assert error(response)[:2] == (403, "voice_is_preset")

    def test_a_strangers_file_is_ones_own_voice(self, client, charlie, exported):
        """Who has the file has the recordings: what it may be used for is what they agree to."""
        assert _import(client, charlie, exported).status_code == 201
        assert Voice.objects.filter(team=charlie.actor.team, created_by=charlie.user).count() == 1

    def test_no_key_a_reading_key_a_viewer_and_another_method(self, client, alice):
        export = f"{URL}/{_voice(alice).id}/export"
        assert client.get(export).status_code == 401
        assert client.post(IMPORT, {}).status_code == 401
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        headers = {"authorization": f"Bearer {secret}"}
        assert error(client.get(export, headers=headers))[:2] == (403, "insufficient_scope")
        assert error(client.post(IMPORT, {}, headers=headers))[:2] == (403, "insufficient_scope")
        assert client.get(IMPORT, headers=alice.headers).status_code == 405
        assert client.post(export, headers=alice.headers).status_code == 405
