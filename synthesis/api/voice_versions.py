"""`/v1/voices/{id}/versions` and `/preview`: other recordings of a voice, and how it sounds."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, KnownFields, Text
from accounts.api.negotiation import JsonParser
from accounts.api.pagination import page
from accounts.api.schema import BODY, CURSOR, IDEMPOTENCY_KEY, LIMIT, PAGE, errors, page_of
from accounts.services import idempotency
from synthesis.api import objects
from synthesis.api.held import Hold, HoldingView
from synthesis.api.recordings import (
    UPLOAD_BODY_BYTES,
    RecordingsSerializer,
    agreed,
    named,
    payload,
    sent,
    window,
)
from synthesis.api.syntheses import PREFER, submitted
from synthesis.api.voices import OWN_ONLY, created
from synthesis.errors import VoiceNotFound
from synthesis.services import previews, queue, voices


class VoiceVersionsView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.VOICES_READ, "POST": permissions.VOICES_WRITE}
    query_names = {"GET": PAGE}
    parser_classes = [MultiPartParser, JsonParser]
    body_bytes = UPLOAD_BODY_BYTES

    @extend_schema(
        summary="List the versions of a voice",
        tags=["Voices"],
        parameters=[LIMIT, CURSOR],
        responses={200: page_of(objects.VoiceVersionSerializer), **errors(400, 404), **OWN_ONLY},
    )
    def get(self, request: Request, voice_id: str) -> Response:
        """Of one of the team's voices, the newest first."""
        voice = voices.find_own(self.actor, parse_id(voice_id, VoiceNotFound))
        rows = voices.versions(self.actor, voice.id)
        return Response(page(request, rows, lambda row: objects.voice_version(row, voice, request)))

    @extend_schema(
        summary="Record a voice again",
        tags=["Voices"],
        request={"multipart/form-data": RecordingsSerializer, "application/json": RecordingsSerializer},
        parameters=[IDEMPOTENCY_KEY],
        responses={201: objects.VoiceSerializer, **errors(*BODY, 404, 409, 422, 429), **OWN_ONLY},
    )
    def post(self, request: Request, voice_id: str) -> Response:
        """Make a new version from other recordings of the same speaker.

        Requests that were submitted before keep theirs, and `PATCH /v1/voices/{voice_id}` with `version` goes back.
        """
        self.hit()
        identifier = parse_id(voice_id, VoiceNotFound)
        # Another team's voice, or a preset, is nothing to fetch recordings for.
        voices.find_own(self.actor, identifier)
        values = self.read(RecordingsSerializer)

        def work() -> tuple[int, dict[str, Any]]:
            with named(values):
                changed = voices.record_again(
                    actor=self.actor,
                    voice_id=identifier,
                    recordings=sent(values),
                    consent=True,
                    statement=agreed(values["consent"]),
                    window=window(values),
                )
            return 201, objects.voice(changed, request)

        status, body, replayed = idempotency.once_apart(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "versions", "voice": str(identifier), **payload(values)},
            work=work,
        )
        return created(request, body, status, replayed)


class PreviewSerializer(KnownFields, InputSerializer):
    """What to say."""

    text = Text(
        default="",
        allow_blank=True,
        help_text=f"At most {previews.CHARACTERS} characters; by default a greeting in the voice's language.",
    )


class VoicePreviewView(HoldingView):
    """Try a voice."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Try a voice",
        tags=["Voices"],
        request=PreviewSerializer,
        parameters=[PREFER, IDEMPOTENCY_KEY],
        responses={201: objects.SynthesisSerializer, **errors(*BODY, 404, 409, 422, 429)},
    )
    def post(self, request: Request, voice_id: str) -> Response | Hold:
        """Queue a test sentence: a synthesis request like any other, which counts like one."""
        self.hit()
        identifier = parse_id(voice_id, VoiceNotFound)
        values = self.read(PreviewSerializer)

        def work() -> tuple[int, dict[str, Any]]:
            row = previews.submit(actor=self.actor, voice_id=identifier, text=values["text"])
            return 201, objects.synthesis(row, request, outlook=queue.outlook(row))

        status, body, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "preview", "voice": str(identifier), **values},
            work=work,
        )
        return submitted(self, body, status, replayed)
