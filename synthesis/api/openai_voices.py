"""OpenAI's `/v1/audio/voices` and `/v1/audio/voice_consents`."""

from __future__ import annotations

from typing import Any, cast

from django.http import QueryDict
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, SaidOnce, Text
from accounts.api.negotiation import FORM_BYTES, JsonParser
from accounts.api.pagination import openai_page
from accounts.api.schema import BODY, LIMIT, errors
from accounts.errors import InvalidInput
from synthesis.api.voices import OWN_ONLY
from synthesis.errors import ConsentNotFound, VoiceNotFound
from synthesis.models import Voice, VoiceConsent
from synthesis.services import consents, voices

#: OpenAI's bound, in bytes.
SAMPLE_BYTES = 10 * 1024 * 1024

AFTER = OpenApiParameter("after", str, description="Id of the last object of the page before.")


class AudioVoiceSerializer(serializers.Serializer):
    """A voice, as OpenAI's clients read it."""

    object = serializers.ChoiceField(["audio.voice"])
    id = serializers.CharField()
    name = serializers.CharField()
    type = serializers.ChoiceField(["audio_sample", "preset"])
    created_at = serializers.IntegerField(help_text="Seconds since 1970.")


class VoiceConsentSerializer(serializers.Serializer):
    """A recorded consent."""

    object = serializers.ChoiceField(["audio.voice_consent"])
    id = serializers.CharField()
    name = serializers.CharField()
    language = serializers.CharField()
    created_at = serializers.IntegerField(help_text="Seconds since 1970.")


class DeletedSerializer(serializers.Serializer):
    """What was deleted."""

    object = serializers.CharField()
    id = serializers.CharField()
    deleted = serializers.BooleanField()


class AudioVoiceListSerializer(serializers.Serializer):
    """One page, the newest first."""

    object = serializers.ChoiceField(["list"])
    data = AudioVoiceSerializer(many=True)  # type: ignore[assignment]  # OpenAI's name, also REST framework's
    first_id = serializers.CharField(allow_null=True)
    last_id = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


class VoiceConsentListSerializer(AudioVoiceListSerializer):
    """One page, the newest first."""

    data = VoiceConsentSerializer(many=True)  # type: ignore[assignment]


class AudioVoiceCreateSerializer(SaidOnce):
    """A form with a recording. `ref_text` and `language` are known from other servers that clone voices."""

    name = serializers.CharField(max_length=100)
    audio_sample = serializers.FileField(
        allow_empty_file=True, help_text="At most 10 MiB: wav, mp3, ogg, aac, flac, webm or mp4."
    )
    consent = serializers.CharField(help_text="Id of a recorded consent.")
    type = serializers.CharField(required=False, default="audio_sample")
    ref_text = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="What the sample says, word for word."
    )
    language = serializers.CharField(
        required=False, default="", max_length=16, help_text="Of the sample; by default the consent's."
    )


class VoiceConsentCreateSerializer(SaidOnce):
    """A form with a recording in which the speaker agrees."""

    name = serializers.CharField(max_length=100)
    language = serializers.CharField(max_length=16, help_text="A BCP 47 tag, such as en-US.")
    recording = serializers.FileField(allow_empty_file=True, help_text="At most 10 MiB.")


class VoiceConsentUpdateSerializer(InputSerializer):
    """A new name."""

    name = Text()


def _voice(row: Voice) -> dict[str, Any]:
    return {
        "object": "audio.voice",
        "id": str(row.id),
        "name": row.name,
        "type": "audio_sample" if row.kind == Voice.Kind.CLONED else "preset",
        "created_at": int(row.created_at.timestamp()),
    }


def _consent(row: VoiceConsent) -> dict[str, Any]:
    return {
        "object": "audio.voice_consent",
        "id": str(row.id),
        "name": row.name,
        "language": row.language,
        "created_at": int(row.created_at.timestamp()),
    }


def _read_file(upload: Any, param: str) -> bytes:
    if upload.size > SAMPLE_BYTES:
        raise InvalidInput(
            _("The recording is larger than %(max)d MiB.") % {"max": SAMPLE_BYTES // 2**20},
            code="audio_too_large",
            param=param,
        )
    data: bytes = upload.read()
    return data


class AudioVoicesView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.VOICES_READ, "POST": permissions.VOICES_WRITE}
    query_names = None
    parser_classes = [MultiPartParser, JsonParser]
    body_bytes = SAMPLE_BYTES + FORM_BYTES

    @extend_schema(
        summary="List voices as OpenAI does",
        tags=["OpenAI"],
        parameters=[LIMIT, AFTER],
        responses={200: AudioVoiceListSerializer, **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The presets of the engine and the team's own voices."""
        rows = Voice.objects.usable(self.actor).order_by("-id")
        return Response(openai_page(request, rows, _voice))

    @extend_schema(
        summary="Create a voice as OpenAI does",
        tags=["OpenAI"],
        request={"multipart/form-data": AudioVoiceCreateSerializer},
        responses={200: AudioVoiceSerializer, **errors(*BODY, 409, 429)},
    )
    def post(self, request: Request) -> Response:
        """Clone a voice from a sample, with the recorded consent of its speaker."""
        self.hit()
        if cast(QueryDict, request.data).get("type", "audio_sample") != "audio_sample":
            raise InvalidInput(
                _("Voices are made from samples here. Send an “audio_sample”."),
                code="voice_type_not_supported",
                param="type",
            )
        values = self.read(AudioVoiceCreateSerializer)
        consent = self._consent(values["consent"])
        sample = _read_file(values["audio_sample"], "audio_sample")
        try:
            created = voices.create(
                actor=self.actor,
                name=values["name"],
                language=values["language"] or voices.closest_language(consent.language),
                audio=sample,
                filename=values["audio_sample"].name or "",
                transcript=values["ref_text"],
                consent=True,
                consent_recording=consent,
            )
        except InvalidInput as error:
            theirs = {"audio": "audio_sample", "transcript": "ref_text"}
            error.param = theirs.get(error.param or "", error.param)
            raise
        return Response(_voice(created))

    def _consent(self, given: str) -> VoiceConsent:
        try:
            return consents.find(self.actor, parse_id(given, ConsentNotFound))
        except ConsentNotFound:
            raise InvalidInput(
                _("There is no such recorded consent. POST /v1/audio/voice_consents records one."),
                code="consent_not_found",
                param="consent",
            ) from None


class AudioVoiceView(ApiView):
    """One voice."""

    required_scopes = {"GET": permissions.VOICES_READ, "DELETE": permissions.VOICES_WRITE}
    query_names = None

    @extend_schema(
        summary="Show a voice as OpenAI does",
        tags=["OpenAI"],
        responses={200: AudioVoiceSerializer, **errors(404)},
    )
    def get(self, request: Request, voice_id: str) -> Response:
        """A preset, or one of the team's own voices."""
        return Response(_voice(voices.find(self.actor, parse_id(voice_id, VoiceNotFound))))

    @extend_schema(
        summary="Delete a voice as OpenAI does",
        tags=["OpenAI"],
        responses={200: DeletedSerializer, **errors(404, 409), **OWN_ONLY},
    )
    def delete(self, request: Request, voice_id: str) -> Response:
        """At once for new requests; requests that wait for it fail without charge."""
        identifier = parse_id(voice_id, VoiceNotFound)
        voices.delete(actor=self.actor, voice_id=identifier)
        return Response({"object": "audio.voice.deleted", "id": str(identifier), "deleted": True})


class VoiceConsentsView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.VOICES_READ, "POST": permissions.VOICES_WRITE}
    query_names = None
    parser_classes = [MultiPartParser]
    body_bytes = SAMPLE_BYTES + FORM_BYTES

    @extend_schema(
        summary="List recorded consents",
        tags=["OpenAI"],
        parameters=[LIMIT, AFTER],
        responses={200: VoiceConsentListSerializer, **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The team's, the newest first."""
        return Response(openai_page(request, consents.visible(self.actor), _consent))

    @extend_schema(
        summary="Record a consent",
        tags=["OpenAI"],
        request={"multipart/form-data": VoiceConsentCreateSerializer},
        responses={200: VoiceConsentSerializer, **errors(*BODY, 429)},
    )
    def post(self, request: Request) -> Response:
        """Keep a recording in which the speaker agrees that their voice is cloned."""
        self.hit()
        values = self.read(VoiceConsentCreateSerializer)
        created = consents.create(
            actor=self.actor,
            name=values["name"],
            language=values["language"],
            recording=_read_file(values["recording"], "recording"),
        )
        return Response(_consent(created))


class VoiceConsentView(ApiView):
    """One recorded consent."""

    required_scopes = {
        "GET": permissions.VOICES_READ,
        "POST": permissions.VOICES_WRITE,
        "DELETE": permissions.VOICES_WRITE,
    }
    query_names = None

    @extend_schema(
        summary="Show a recorded consent",
        tags=["OpenAI"],
        responses={200: VoiceConsentSerializer, **errors(404)},
    )
    def get(self, request: Request, consent_id: str) -> Response:
        """One of the team's."""
        return Response(_consent(consents.find(self.actor, parse_id(consent_id, ConsentNotFound))))

    @extend_schema(
        summary="Rename a recorded consent",
        tags=["OpenAI"],
        request=VoiceConsentUpdateSerializer,
        responses={200: VoiceConsentSerializer, **errors(*BODY, 404)},
    )
    def post(self, request: Request, consent_id: str) -> Response:
        """Only the name can be changed."""
        identifier = parse_id(consent_id, ConsentNotFound)
        name = self.read(VoiceConsentUpdateSerializer)["name"]
        return Response(_consent(consents.rename(actor=self.actor, consent_id=identifier, name=name)))

    @extend_schema(
        summary="Delete a recorded consent",
        tags=["OpenAI"],
        responses={200: DeletedSerializer, **errors(404, 409)},
    )
    def delete(self, request: Request, consent_id: str) -> Response:
        """Not while a voice rests on it."""
        identifier = parse_id(consent_id, ConsentNotFound)
        consents.delete(actor=self.actor, consent_id=identifier)
        return Response({"object": "audio.voice_consent", "id": str(identifier), "deleted": True})
