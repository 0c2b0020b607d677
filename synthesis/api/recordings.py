"""Recordings in a request: uploaded, one or several, or lying at an address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts import outgoing
from accounts.api.fields import KnownFields, Text
from accounts.api.negotiation import FORM_BYTES
from accounts.errors import InvalidInput
from synthesis import consent as consents
from synthesis.services import clips, voices

#: The largest body of a form with a recording.
UPLOAD_BODY_BYTES = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + FORM_BYTES


class _Several(serializers.ListField):
    """A field that may be repeated in a form. What is wrong with one of them is wrong with the field."""

    def run_child_validation(self, data: Any) -> list[Any]:
        """The first error, without the place in the list."""
        return [self.child.run_validation(item) for item in data]


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class TextsField(_Several):
    """One text, or one for each recording."""

    child = Text(allow_blank=True)

    def to_internal_value(self, data: Any) -> list[Any]:
        """A list also of a single text."""
        return list(super().to_internal_value([data] if isinstance(data, str) else data))


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
class TagsField(TextsField):
    """Of a form: the field several times, or once with commas between the tags."""

    def to_internal_value(self, data: Any) -> list[Any]:
        """Without empty ones."""
        parts = (part.strip() for text in super().to_internal_value(data) for part in text.split(","))
        return [part for part in parts if part]


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "boolean"}]})
class ConsentField(serializers.CharField):
    """A form has no booleans, JSON has."""

    def to_internal_value(self, data: Any) -> str:
        """ "true" of true."""
        return super().to_internal_value(str(data).lower() if isinstance(data, bool) else data)


CONSENT_HELP = (
    "`true`: this is my own voice, or I have the speaker's permission to clone it and to use it for "
    "what my team makes."
)


class RecordingsSerializer(KnownFields):
    """A form with recordings, or (also as JSON) the address of one."""

    audio = _Several(
        child=serializers.FileField(allow_empty_file=True),
        required=False,
        help_text="3 seconds to 10 minutes: wav, mp3, m4a, aac, webm, ogg, opus, flac, or the sound of a video. Send "
        f"the field up to {clips.MOST} times with recordings of the same speaker, and the best is used.",
    )
    audio_url = serializers.CharField(
        required=False,
        max_length=2000,
        help_text="Where the recording lies, instead of `audio`: http or https, never an internal address.",
    )
    transcript = TextsField(
        required=False,
        default=list,
        help_text="What the recording says, word for word; of several, once for each in the same order.",
    )
    consent = ConsentField(help_text=CONSENT_HELP)
    window_start = serializers.FloatField(
        required=False, help_text="The part of the recording to use, in seconds; the best one by default."
    )
    window_end = serializers.FloatField(required=False)


def recordings(values: dict[str, Any]) -> list[clips.Recording]:
    """What was uploaded, or what lies at `audio_url`, with the words of each."""
    uploads, url = values.get("audio") or [], values.get("audio_url")
    if uploads and url is not None:
        raise InvalidInput(
            _("Send only one of “audio” and “audio_url”."), code="audio_and_audio_url", param="audio_url"
        )
    if not uploads and url is None:
        raise InvalidInput(
            _("Send a recording as “audio”, or its address as “audio_url”."),
            code="missing_field",
            param="audio",
        )
    # An empty field of a form is none.
    words = values["transcript"] if any(values["transcript"]) else []
    count = len(uploads) or 1
    if count > clips.MOST:
        raise InvalidInput(
            _("Send 1 to %(most)d recordings.") % {"most": clips.MOST},
            code="too_many_recordings",
            param="audio",
        )
    if len(words) not in (0, count):
        raise InvalidInput(
            _("Send as many transcripts as recordings, in the same order, or none."),
            code="transcript_invalid",
            param="transcript",
        )
    words = words or [""] * count
    if url is not None:
        return [_fetched(str(url), words[0])]
    if sum(upload.size for upload in uploads) > settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024:
        raise InvalidInput(
            _("The recording is larger than %(max)d MB.") % {"max": settings.CHORUS_MAX_UPLOAD_MB},
            code="audio_too_large",
            param="audio",
        )
    return [
        clips.Recording(upload.read(), upload.name or "", text)
        for upload, text in zip(uploads, words, strict=True)
    ]


def _fetched(url: str, transcript: str) -> clips.Recording:
    try:
        fetched = outgoing.fetch(url, most=settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024)
    except InvalidInput as error:
        error.param = "audio_url"
        raise
    except outgoing.Unreachable:
        raise InvalidInput(
            _("There is no recording at this address, or nobody answers there."),
            code="audio_unreachable",
            param="audio_url",
        ) from None
    return clips.Recording(fetched.data, fetched.name, transcript)


def agreed(consent: str) -> consents.Statement | None:
    """The statement that is agreed to, word for word or, by a yes, as it is in the caller's language; else None."""
    if consent.strip().lower() in {"true", "1", "yes", "on"}:
        return consents.current()
    return consents.said(consent)


@contextmanager
def named(values: dict[str, Any]) -> Iterator[None]:
    """Let errors of a recording name the field that it came in."""
    try:
        yield
    except InvalidInput as error:
        if error.param == "audio" and values.get("audio_url") is not None:
            error.param = "audio_url"
        raise


def sent(values: dict[str, Any]) -> Sequence[clips.Recording]:
    """The recordings of somebody who has agreed; nothing is fetched for what will be refused anyway."""
    voices.check_consent(agreed(values["consent"]) is not None)
    return recordings(values)


def payload(values: dict[str, Any]) -> dict[str, Any]:
    """What makes two requests with an `Idempotency-Key` the same: the fields, and the content of the uploads."""
    sums = []
    for upload in values.get("audio") or []:
        sums.append(hashlib.file_digest(upload, "sha256").hexdigest())
        upload.seek(0)
    return {**values, "audio": sums}


def window(values: dict[str, Any]) -> tuple[float, float] | None:
    """The part to use; InvalidInput for half of one."""
    start, end = values.get("window_start"), values.get("window_end")
    if start is None and end is None:
        return None
    if start is None or end is None or not 0 <= start < end:
        raise InvalidInput(
            _("Give both window_start and window_end, in seconds, the end after the start."),
            code="window_invalid",
            param="window_start",
        )
    return start, end
