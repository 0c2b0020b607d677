"""`/v1/voices/{id}/export` and `/v1/voices/import`: a voice as a file."""

from __future__ import annotations

import hashlib
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import filenames, permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import KnownFields
from accounts.api.schema import BODY, IDEMPOTENCY_KEY, errors
from accounts.errors import InvalidInput
from accounts.services import idempotency
from synthesis.api import objects
from synthesis.api.recordings import CONSENT_HELP, UPLOAD_BODY_BYTES, ConsentField, agreed
from synthesis.api.voices import OWN_ONLY, created
from synthesis.errors import VoiceNotFound
from synthesis.services import voice_files


class VoiceExportView(ApiView):
    """To a file."""

    required_scopes = {"GET": permissions.VOICES_WRITE}

    @extend_schema(
        summary="Export a voice",
        tags=["Voices"],
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **errors(404), **OWN_ONLY},
    )
    def get(self, request: Request, voice_id: str) -> HttpResponse:
        """Its current version as a zip: recordings, prepared clip, description, and the record of consent."""
        voice, data = voice_files.export(actor=self.actor, voice_id=parse_id(voice_id, VoiceNotFound))
        disposition = filenames.attachment(filenames.name(voice.name, "zip", default="voice"))
        return HttpResponse(
            data, content_type="application/zip", headers={"Content-Disposition": disposition}
        )


class VoiceImportSerializer(KnownFields):
    """A form with an exported voice."""

    file = serializers.FileField(
        allow_empty_file=True, help_text="As `GET /v1/voices/{voice_id}/export` made it."
    )
    name = serializers.CharField(
        required=False, default="", max_length=100, help_text="Another name than the file has."
    )
    consent = ConsentField(help_text=CONSENT_HELP)
    shared = serializers.BooleanField(required=False, default=True)


class VoiceImportView(ApiView):
    """From a file."""

    required_scopes = {"POST": permissions.VOICES_WRITE}
    parser_classes = [MultiPartParser]
    body_bytes = UPLOAD_BODY_BYTES

    @extend_schema(
        summary="Import a voice",
        tags=["Voices"],
        request={"multipart/form-data": VoiceImportSerializer},
        parameters=[IDEMPOTENCY_KEY],
        responses={201: objects.VoiceSerializer, **errors(*BODY, 409, 422, 429)},
    )
    def post(self, request: Request) -> Response:
        """Make a voice from the file of another one, here or elsewhere. The speaker must have agreed to it."""
        self.hit()
        values = self.read(VoiceImportSerializer)
        upload = values["file"]
        if upload.size > settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024:
            raise InvalidInput(
                _("The file is larger than %(max)d MB.") % {"max": settings.CHORUS_MAX_UPLOAD_MB},
                code="file_too_large",
                param="file",
            )
        statement = agreed(values["consent"])
        data = upload.read()

        def work() -> tuple[int, dict[str, Any]]:
            made = voice_files.import_(
                actor=self.actor,
                data=data,
                consent=statement is not None,
                statement=statement,
                name=values["name"],
                shared=values["shared"],
            )
            return 201, objects.voice(made, request)

        status, body, replayed = idempotency.once_apart(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "import", **values, "file": hashlib.sha256(data).hexdigest()},
            work=work,
        )
        return created(request, body, status, replayed)
