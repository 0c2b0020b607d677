"""A voice as one file, to be kept or taken to another installation: a zip of its recordings, the prepared clip, what is
known about it, and the record of its speaker's consent.

What is imported comes from anybody. Nothing is written to disk, nothing is unpacked that is not expected by name and
size, every checksum must be right, and the recordings go through the same preparation as an upload: neither the
prepared clip nor a measurement of the file is believed.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import ChorusError, InvalidInput
from accounts.services import audit
from synthesis import storage
from synthesis.consent import Statement
from synthesis.errors import NotAVoice
from synthesis.models import Voice, VoiceConsent
from synthesis.services import clips, consents, voices

FORMAT, FORMAT_VERSION = "chorus-voice", 1
_DESCRIPTION = "voice.json"
_DESCRIPTION_BYTES = 256 * 1024
_NAME = re.compile(
    r"voice\.json|prepared\.wav|recordings/[1-5](\.[a-z0-9]{1,5})?|consent/recording", re.ASCII
)
#: One description, one clip, five recordings, one consent.
_MOST_FILES = 2 + clips.MOST + 1
#: Bytes of a zip's list of files; ours has 60 to 90 for each.
_DIRECTORY_BYTES = 8 * 1024
_END = struct.Struct("<4s4H2IH")
#: Endings by which a program knows a recording; all others are left out.
_ENDINGS = {"wav", "mp3", "m4a", "mp4", "aac", "webm", "ogg", "opus", "flac", "mov", "3gp", "mka", "mkv"}


def export(*, actor: Actor, voice_id: UUID) -> tuple[Voice, bytes]:
    """One of the team's voices, as its current version is, and the zip. Raises VoiceNotFound, VoiceIsPreset and
    StorageUnavailable.
    """
    actor.require(permissions.VOICES_WRITE)
    voice = voices.find_own(actor, voice_id)
    version = voices.current(voice)
    file = io.BytesIO()
    # Sound is compressed already, or nearly as large afterwards.
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        recordings = []
        for clip in clips.of(version):
            ending = clip["name"].rpartition(".")[2].lower()
            name = f"recordings/{clip['number']}" + (f".{ending}" if ending in _ENDINGS else "")
            recordings.append(
                {
                    **{key: clip[key] for key in ("name", "transcript", "chosen", "problems")},
                    **_add(archive, name, storage.get(clip["key"])),
                }
            )
        description = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "exported_at": timezone.now().isoformat(),
            "voice": str(voice.id),
            "version": version.number,
            "name": voice.name,
            "language": voice.language,
            "gender": voice.gender,
            "transcript": version.transcript,
            "window": [version.window_start, version.window_end],
            "recordings": recordings,
            "prepared": {
                "sample_rate": version.sample_rate,
                "seconds": version.seconds,
                **_add(archive, "prepared.wav", storage.get(version.processed_key)),
            },
            "quality": version.quality,
            "consent": {
                "statement": version.consent_statement,
                "statement_language": version.consent_language,
                "statement_version": version.consent_version,
                "by": version.consent_by.email if version.consent_by else "",
                "at": version.consent_at.isoformat(),
                "recording": _consent(archive, version.consent_recording),
            },
            "origin": version.origin,
        }
        archive.writestr(
            _DESCRIPTION, json.dumps(description, ensure_ascii=False, indent=2), zipfile.ZIP_DEFLATED
        )
    audit.record("voice.exported", actor=actor, target=voice, name=voice.name, version=version.number)
    return voice, file.getvalue()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> dict[str, str]:
    archive.writestr(name, data)
    return {"file": name, "sha256": hashlib.sha256(data).hexdigest()}


def _consent(archive: zipfile.ZipFile, consent: VoiceConsent | None) -> dict[str, str] | None:
    if consent is None:
        return None
    return {
        "name": consent.name,
        "language": consent.language,
        **_add(archive, "consent/recording", storage.get(consent.recording_key)),
    }


def import_(
    *,
    actor: Actor,
    data: bytes,
    consent: bool,
    statement: Statement | None = None,
    name: str = "",
    shared: bool = True,
) -> Voice:
    """A voice from a file that `export` made, here or elsewhere, under its own name or another.

    Who imports it gives the consent anew; what the file says of the first one is kept in the version's `origin` and
    in the audit log. Raises NotAVoice, and what `voices.create` raises.
    """
    actor.require(permissions.VOICES_WRITE)
    if not consent:
        # Before anything is unpacked.
        voices.check_consent(consent)
    package = _unpack(data)
    recorded = None
    if package.consent_recording is not None:
        recorded = consents.create(
            actor=actor,
            name=package.consent_name or package.name,
            language=package.consent_language,
            recording=package.consent_recording,
        )
    try:
        first, *more = package.recordings
        return voices.create(
            actor=actor,
            name=name or package.name,
            language=voices.closest_language(package.language),
            audio=first.audio,
            filename=first.filename,
            transcript=first.transcript,
            more=more,
            consent=True,
            statement=statement,
            consent_recording=recorded,
            gender=package.gender,
            shared=shared,
            window=package.window,
            chosen=package.chosen,
            origin=package.origin,
        )
    except ChorusError as error:
        if recorded is not None:
            consents.delete(actor=actor, consent_id=recorded.id)
        if error.param in {"audio", "transcript", "window_start"}:
            error.param = "file"
        raise


@dataclass(frozen=True, slots=True)
class _Package:
    name: str
    language: str
    gender: str
    window: tuple[float, float]
    recordings: list[clips.Recording]
    chosen: int
    origin: dict[str, Any]
    consent_name: str
    consent_language: str
    consent_recording: bytes | None


def _unpack(data: bytes) -> _Package:
    try:
        return _package(_Files(data))
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        # What is missing or of another type in its description.
        raise NotAVoice(_("its description is incomplete")) from error


class _Files:
    """The files of a zip, each read once, within bounds."""

    def __init__(self, data: bytes) -> None:
        self._left = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + _DESCRIPTION_BYTES
        _check_end(data)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
        except _BROKEN as error:
            raise NotAVoice(_("it is damaged")) from error
        members = self._archive.infolist()
        if len({member.filename for member in members}) != len(members):
            raise NotAVoice(_("a name occurs twice in it"))
        for member in members:
            if not _NAME.fullmatch(member.filename):
                raise NotAVoice(_("it holds other files"))
            if member.flag_bits & 0x1:
                raise NotAVoice(_("it is encrypted"))

    def read(self, name: str, most: int | None = None) -> bytes:
        """A file, whatever size the zip says that it has; NotAVoice when it is not there, damaged or too large."""
        most = self._left if most is None else min(most, self._left)
        try:
            with self._archive.open(name) as file:
                content = file.read(most + 1)
        except KeyError:
            raise NotAVoice(_("a file is missing in it")) from None
        except _BROKEN as error:
            raise NotAVoice(_("it is damaged")) from error
        if len(content) > most:
            raise NotAVoice(_("what is in it is too large"))
        self._left -= len(content)
        return content

    def checked(self, entry: dict[str, Any]) -> bytes:
        """The file that `entry` of the description names, with the checksum that it gives."""
        name = str(entry["file"])
        if name == _DESCRIPTION or not _NAME.fullmatch(name):
            raise NotAVoice(_("it holds other files"))
        content = self.read(name)
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise NotAVoice(_("a file in it was changed"))
        return content


#: What reading a broken zip raises.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, struct.error)


def _check_end(data: bytes) -> None:
    """Before the list of files is read: it must be short. A zip may promise millions of files in a few megabytes."""
    end = data[-_END.size :]
    if len(end) == _END.size:
        mark, _disk, _start, _here, count, length, _offset, comment = _END.unpack(end)
        is_64 = data[-_END.size - 20 : -_END.size - 16] == b"PK\x06\x07"
        if mark == b"PK\x05\x06" and comment == 0 and not is_64:
            if count > _MOST_FILES or length > _DIRECTORY_BYTES:
                raise NotAVoice(_("it holds other files"))
            return
    raise NotAVoice(_("it is no zip file, or was packed anew"))


def _package(files: _Files) -> _Package:
    try:
        said = json.loads(files.read(_DESCRIPTION, _DESCRIPTION_BYTES))
    except (ValueError, RecursionError) as error:
        raise NotAVoice(_("its description is damaged")) from error
    if said["format"] != FORMAT or said["format_version"] != FORMAT_VERSION:
        raise NotAVoice(_("it was made by a newer version of this service, or by something else"))
    if not 1 <= len(said["recordings"]) <= clips.MOST:
        raise NotAVoice(_("its description is incomplete"))
    consent = said["consent"]
    if not _text(consent["statement"], 2_000).strip():
        raise InvalidInput(
            _("The file says nothing of the speaker's consent. Make the voice from its recording instead."),
            code="consent_missing",
            param="file",
        )
    recordings = [
        clips.Recording(files.checked(entry), _text(entry["name"], 255), _text(entry["transcript"], 2_000))
        for entry in said["recordings"]
    ]
    chosen = [number for number, entry in enumerate(said["recordings"], 1) if entry["chosen"] is True]
    # The words of the chosen recording may have been written later.
    recordings[chosen[0] - 1] = clips.Recording(
        recordings[chosen[0] - 1].audio,
        recordings[chosen[0] - 1].filename,
        _text(said["transcript"], clips.TRANSCRIPT_CHARACTERS),
    )
    files.checked(said["prepared"])
    start, end = said["window"]
    recorded = consent["recording"]
    return _Package(
        name=_text(said["name"], 100),
        language=_text(said["language"], 16),
        gender=_text(said["gender"], 8),
        window=(float(start), float(end)),
        recordings=recordings,
        chosen=chosen[0],
        origin={
            "voice": _text(said["voice"], 64),
            "version": int(said["version"]),
            "exported_at": _text(said["exported_at"], 64),
            "consent": {key: _text(consent[key], 2_000) for key in ("statement", "by", "at")},
        },
        consent_name=_text(recorded["name"], 100) if recorded else "",
        consent_language=_text(recorded["language"], 16) if recorded else "",
        consent_recording=files.checked(recorded) if recorded else None,
    )


def _text(value: Any, most: int) -> str:
    """A string of at most `most` characters that a database takes."""
    if not isinstance(value, str) or len(value) > most or "\x00" in value:
        raise ValueError
    value.encode()  # refuses lone surrogates, which JSON can hold
    return value
