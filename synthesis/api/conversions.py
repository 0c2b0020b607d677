"""`/v1/conversions`: the words of a recording, said in another voice."""

from __future__ import annotations

import hashlib
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import parse_id
from accounts.api.fields import KnownFields
from accounts.api.negotiation import JsonParser
from accounts.api.schema import BODY, IDEMPOTENCY_KEY, errors
from accounts.services import idempotency
from synthesis.api import objects
from synthesis.api.fields import VoiceField
from synthesis.api.held import Hold, HoldingView
from synthesis.api.recordings import UPLOAD_BODY_BYTES, named, recordings
from synthesis.api.syntheses import EVENTS_HELP, PREFER, WEBHOOK_HELP, submitted
from synthesis.models import Format
from synthesis.services import callbacks, conversions, queue, requests


class ConversionSerializer(KnownFields):
    """A form with a recording, or (also as JSON) the address of one."""

    voice = VoiceField(help_text="Id or name of the voice that says it.")
    audio = serializers.FileField(
        required=False,
        allow_empty_file=True,
        help_text="Up to 10 minutes of speech: wav, mp3, m4a, aac, webm, ogg, opus, flac, or the sound of a video.",
    )
    audio_url = serializers.CharField(
        required=False,
        max_length=2000,
        help_text="Where the recording lies, instead of `audio`: http or https, never an internal address.",
    )
    format = serializers.CharField(
        required=False, default=Format.MP3, help_text=f"One of {', '.join(Format.values)}."
    )
    seed = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        help_text="The same seed, recording and voice give the same sound.",
    )
    title = serializers.CharField(
        required=False, default="", allow_blank=True, help_text="By default the name of the file."
    )
    webhook = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=callbacks.URL_CHARACTERS,
        help_text=WEBHOOK_HELP,
    )
    webhook_events_filter = serializers.ListField(
        child=serializers.CharField(max_length=32), required=False, max_length=20, help_text=EVENTS_HELP
    )


class ConversionsView(HoldingView):
    """Create; what was created is a synthesis request like any other."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}
    parser_classes = [MultiPartParser, JsonParser]
    body_bytes = UPLOAD_BODY_BYTES

    @extend_schema(
        summary="Say a recording in another voice",
        tags=["Syntheses"],
        request={"multipart/form-data": ConversionSerializer, "application/json": ConversionSerializer},
        parameters=[PREFER, IDEMPOTENCY_KEY],
        responses={201: objects.SynthesisSerializer, **errors(*BODY, 409, 422, 429, 503)},
    )
    def post(self, request: Request) -> Response | Hold:
        """Queue the words of a recording to be said in another voice, with the recording's own pace and feeling.

        A second of the recording counts 15 characters. Needs an engine that converts (`cosyvoice3`). The answer is a
        synthesis request: `/v1/syntheses/{id}` follows, cancels, fetches and deletes it.
        """
        self.hit()
        values = self.read(ConversionSerializer)
        audio = values.pop("audio", None)
        source = {"audio": [audio] if audio else [], "audio_url": values.pop("audio_url", None)}
        [recording] = recordings({**source, "transcript": []})
        planned: conversions.Conversion | None = None

        def work() -> tuple[int, dict[str, Any]]:
            nonlocal planned
            with named(source):
                planned = conversions.plan(
                    actor=self.actor, audio=recording.audio, filename=recording.filename, **values
                )
            row = conversions.submit(actor=self.actor, planned=planned)
            return 201, objects.synthesis(row, request, outlook=queue.outlook(row))

        status, body, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={
                "route": "conversions",
                "audio": hashlib.sha256(recording.audio).hexdigest(),
                **values,
            },
            work=work,
        )
        if planned and not replayed:
            row = requests.submitted(self.actor, parse_id(body["id"]))
            conversions.upload(actor=self.actor, request=row, planned=planned)
        return submitted(self, body, status, replayed)
