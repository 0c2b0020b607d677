"""What tests of voices share: one made through the API, one without that work, and what an error says."""

from __future__ import annotations

from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from synthesis import storage
from synthesis.models import Voice, VoiceVersion

URL = "/v1/voices"
SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"


def error(response):
    """Status, code and field."""
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


def create(client, person, clip="austen-0870.wav", **fields):
    form = {
        "name": "Mine",
        "language": "en-US",
        "transcript": "",
        "consent": "true",
        "audio": SimpleUploadedFile(clip, (SPEECH / clip).read_bytes()) if isinstance(clip, str) else clip,
    } | fields
    form = {name: value for name, value in form.items() if value is not None}
    return client.post(URL, form, headers=person.headers)


def own(person, name="Mine", sound=b"RIFF sound", **fields):
    """A cloned voice without the work of making one."""
    voice = Voice.objects.create(
        team=person.actor.team, created_by=person.user, kind="cloned", name=name, language="en-US", **fields
    )
    version = VoiceVersion(
        voice=voice,
        number=1,
        sample_rate=24000,
        seconds=8.0,
        window_start=1.0,
        window_end=9.0,
        original_seconds=20.0,
        transcript="What was said.",
        quality={"problems": []},
        nearest={"hibari": "heart"},
        consent_statement="I agree.",
        consent_by=person.user,
        consent_at=timezone.now(),
    )
    version.original_key = storage.version_key(person.actor.team.id, version, "original")
    version.processed_key = storage.version_key(person.actor.team.id, version, "prompt.wav")
    storage.put(version.processed_key, sound, "audio/wav")
    version.save()
    voice.current_version = version
    voice.save()
    return voice
