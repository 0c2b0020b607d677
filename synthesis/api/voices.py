"""`/v1/voices`: presets and the team's own voices."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import outgoing, permissions
from accounts.api.authentication import uses_elevenlabs
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, Number, Text
from accounts.api.negotiation import JsonParser
from accounts.api.pagination import page
from accounts.api.schema import BODY, CURSOR, LIMIT, errors, page_of
from accounts.errors import InvalidInput
from synthesis import delivery
from synthesis.api import objects
from synthesis.errors import VoiceNotFound
from synthesis.models import Voice
from synthesis.services import voices

#: A page holds all presets of an engine.
_PAGE = 100
#: The most that ElevenLabs' clients get at once.
_ALL = 1000
_FORM_BYTES = 64 * 1024


class VoiceFilterSerializer(serializers.Serializer):
    """Which voices to list."""

    search = serializers.CharField(required=False, help_text="Part of the name or the style.")
    language = serializers.CharField(required=False, help_text="A BCP 47 tag; `en` also finds `en-GB`.")
    kind = serializers.ChoiceField(Voice.Kind.values, required=False)
    gender = serializers.ChoiceField(["female", "male", "neutral"], required=False)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "boolean"}]})
class ConsentField(serializers.CharField):
    """A form has no booleans, JSON has."""

    def to_internal_value(self, data: Any) -> str:
        """ "true" of true."""
        return super().to_internal_value(str(data).lower() if isinstance(data, bool) else data)


class VoiceCreateSerializer(serializers.Serializer):
    """A form with a recording, or (also as JSON) the address of one."""

    name = serializers.CharField(max_length=100)
    language = serializers.CharField(max_length=16, help_text="Of the recording; a language of the engine.")
    audio = serializers.FileField(
        required=False,
        allow_empty_file=True,
        help_text="3 seconds to 10 minutes: wav, mp3, m4a, aac, webm, ogg, opus, flac, or the sound of a video.",
    )
    audio_url = serializers.CharField(
        required=False,
        max_length=2000,
        help_text="Where the recording lies, instead of `audio`: http or https, never an internal address.",
    )
    transcript = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="What the recording says, word for word."
    )
    gender = serializers.CharField(required=False, allow_blank=True, default="")
    consent = ConsentField(
        help_text="`true`: this is my own voice, or I have the speaker's permission to clone it and to use it for "
        "what my team makes."
    )
    window_start = serializers.FloatField(
        required=False, help_text="The part of the recording to use, in seconds; the best one by default."
    )
    window_end = serializers.FloatField(required=False)


class VoiceUpdateSerializer(InputSerializer):
    """What is given is changed. Another transcript or window makes a new version; requests keep theirs."""

    name = Text(required=False)
    language = Text(required=False)
    gender = Text(required=False, allow_blank=True)
    transcript = Text(required=False, allow_blank=True)
    window_start = Number(required=False)
    window_end = Number(required=False)


class VoicePageSerializer(page_of(objects.VoiceSerializer)):  # type: ignore[misc]
    """One page, the newest first."""

    voices = objects.VoiceSerializer(
        many=True, required=False, help_text="All voices; only when the key came as `xi-api-key`."
    )


class VoicesView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.VOICES_READ, "POST": permissions.VOICES_WRITE}
    parser_classes = [MultiPartParser, JsonParser]
    body_bytes = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + _FORM_BYTES

    @extend_schema(
        summary="List voices",
        tags=["Voices"],
        parameters=[VoiceFilterSerializer, LIMIT, CURSOR],
        responses={200: VoicePageSerializer, **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The presets of the engine and the team's own voices."""
        rows = _filtered(Voice.objects.usable(self.actor), **self.query(VoiceFilterSerializer))
        rows = rows.select_related("current_version__consent_by")
        body = page(request, rows, lambda row: objects.voice(row, request), size=_PAGE)
        if uses_elevenlabs(request):
            # Their clients know no pages here.
            body["voices"] = [objects.voice(row, request) for row in rows.order_by("-id")[:_ALL]]
        return Response(body)

    @extend_schema(
        summary="Create a voice",
        tags=["Voices"],
        request={"multipart/form-data": VoiceCreateSerializer, "application/json": VoiceCreateSerializer},
        responses={201: objects.VoiceSerializer, **errors(*BODY, 409, 429)},
    )
    def post(self, request: Request) -> Response:
        """Clone a voice from a recording. The speaker must have agreed to it."""
        self.hit()
        values = self.read(VoiceCreateSerializer)
        agreed = _agreed(values["consent"])
        # Nothing is fetched for what will be refused anyway.
        audio, filename = _recording(values) if agreed else (b"", "")
        created = voices.create(
            actor=self.actor,
            name=values["name"],
            language=voices.closest_language(values["language"]),
            audio=audio,
            filename=filename,
            transcript=values["transcript"],
            consent=agreed,
            gender=values["gender"],
            window=_window(values),
        )
        answer = Response(objects.voice(created, request), status=201)
        answer.headers["Location"] = request.build_absolute_uri(f"/v1/voices/{created.id}")
        return answer


class VoiceView(ApiView):
    """One voice."""

    required_scopes = {
        "GET": permissions.VOICES_READ,
        "PATCH": permissions.VOICES_WRITE,
        "DELETE": permissions.VOICES_WRITE,
    }

    @extend_schema(
        summary="Show a voice", tags=["Voices"], responses={200: objects.VoiceSerializer, **errors(404)}
    )
    def get(self, request: Request, voice_id: str) -> Response:
        """A preset, or one of the team's own voices."""
        found = voices.find(self.actor, parse_id(voice_id, VoiceNotFound))
        return Response(objects.voice(found, request))

    @extend_schema(
        summary="Change a voice",
        tags=["Voices"],
        request=VoiceUpdateSerializer,
        responses={200: objects.VoiceSerializer, **errors(*BODY, 404, 409)},
    )
    def patch(self, request: Request, voice_id: str) -> Response:
        """Only the team's own voices can be changed."""
        identifier = parse_id(voice_id, VoiceNotFound)
        values = self.read(VoiceUpdateSerializer)
        window = _window(values)
        changed = voices.update(
            actor=self.actor,
            voice_id=identifier,
            window=window,
            **{name: values.get(name) for name in ("name", "language", "gender", "transcript")},
        )
        return Response(objects.voice(changed, request))

    @extend_schema(summary="Delete a voice", tags=["Voices"], responses={204: None, **errors(404)})
    def delete(self, request: Request, voice_id: str) -> Response:
        """At once for new requests; requests that wait for it fail without charge."""
        voices.delete(actor=self.actor, voice_id=parse_id(voice_id, VoiceNotFound))
        return Response(status=204)


class VoiceSampleView(ApiView):
    """How a voice sounds."""

    required_scopes = {"GET": permissions.VOICES_READ}

    @extend_schema(
        summary="Hear a voice",
        tags=["Voices"],
        parameters=[OpenApiParameter("Range", str, OpenApiParameter.HEADER)],
        responses={
            (200, "audio/wav"): OpenApiTypes.BINARY,
            (206, "audio/wav"): OpenApiTypes.BINARY,
            (200, "audio/mpeg"): OpenApiTypes.BINARY,
            (206, "audio/mpeg"): OpenApiTypes.BINARY,
            302: None,
            304: None,
            416: None,
            **errors(404),
        },
    )
    def get(self, request: Request, voice_id: str) -> HttpResponseBase:
        """A preset's sample, or the part of the team's own recording that is used."""
        found = voices.find(self.actor, parse_id(voice_id, VoiceNotFound))
        return delivery.serve_sample(request._request, found)


def _filtered(
    rows: QuerySet[Voice], *, search: str = "", language: str = "", kind: str = "", gender: str = ""
) -> QuerySet[Voice]:
    if search:
        rows = rows.filter(Q(name__icontains=search) | Q(style__icontains=search) | Q(preset=search))
    if language:
        rows = rows.filter(Q(language__iexact=language) | Q(language__istartswith=f"{language}-"))
    if kind:
        rows = rows.filter(kind=kind)
    if gender:
        rows = rows.filter(gender=gender)
    return rows


def _recording(values: dict[str, Any]) -> tuple[bytes, str]:
    """The recording and its name: what was uploaded, or what lies at `audio_url`."""
    most = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024
    upload, url = values.get("audio"), values.get("audio_url")
    if (upload is None) == (url is None):
        raise InvalidInput(
            _("Send a recording as “audio”, or its address as “audio_url”."),
            code="missing_field",
            param="audio",
        )
    if upload is not None:
        if upload.size > most:
            raise InvalidInput(
                _("The recording is larger than %(max)d MB.") % {"max": settings.CHORUS_MAX_UPLOAD_MB},
                code="audio_too_large",
                param="audio",
            )
        return upload.read(), upload.name or ""
    try:
        fetched = outgoing.fetch(str(url), most=most)
    except InvalidInput as error:
        error.param = "audio_url"
        raise
    except outgoing.Unreachable:
        raise InvalidInput(
            _("There is no recording at this address, or nobody answers there."),
            code="audio_unreachable",
            param="audio_url",
        ) from None
    return fetched.data, fetched.name


def _agreed(consent: str) -> bool:
    """A form has no booleans. What is neither a yes nor the statement itself is a no."""
    return consent.strip().lower() in {"true", "1", "yes", "on"} or consent.strip() == str(
        voices.CONSENT_STATEMENT
    )


def _window(values: dict[str, Any]) -> tuple[float, float] | None:
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
