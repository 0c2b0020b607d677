"""`/v1/voices`: presets and the team's own voices."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.models import Q
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.actors import Actor
from accounts.api.authentication import uses_elevenlabs
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, KnownFields, Number, Text, Whole
from accounts.api.negotiation import JsonParser
from accounts.api.pagination import page
from accounts.api.schema import BODY, CURSOR, IDEMPOTENCY_KEY, LIMIT, PAGE, ErrorSerializer, errors, page_of
from accounts.services import idempotency
from synthesis import delivery
from synthesis.api import objects
from synthesis.api.recordings import (
    UPLOAD_BODY_BYTES,
    RecordingsSerializer,
    TagsField,
    agreed,
    named,
    payload,
    sent,
    window,
)
from synthesis.engines import capabilities
from synthesis.errors import VoiceNotFound
from synthesis.languages import language_name
from synthesis.models import Voice, VoiceQuerySet, VoiceTag
from synthesis.services import voice_marks, voices

#: A page holds all presets of an engine.
_PAGE = 100
#: The most that ElevenLabs' clients get at once.
_ALL = 1000
#: What routes answer that are for the team's own voices only.
OWN_ONLY = {
    403: OpenApiResponse(
        ErrorSerializer,
        description="`voice_is_preset`: a preset belongs to the installation. Or the key may not do this: "
        "`insufficient_scope`, `permission_denied`, `team_suspended`, `user_suspended`, `address_not_allowed`.",
    )
}
_CHANGEABLE = ("name", "language", "gender", "transcript", "recording", "version", "shared")


class VoiceFilterSerializer(serializers.Serializer):
    """Which voices to list."""

    search = serializers.CharField(
        required=False, help_text="Part of the name, the style, a tag, or the language's name or tag."
    )
    tag = serializers.CharField(required=False, help_text="A tag of your team's, as a whole; any case.")
    language = serializers.CharField(required=False, help_text="A BCP 47 tag; `en` also finds `en-GB`.")
    kind = serializers.ChoiceField(Voice.Kind.values, required=False)
    gender = serializers.ChoiceField(["female", "male", "neutral"], required=False)


class VoiceCreateSerializer(RecordingsSerializer):
    """A form with recordings, or (also as JSON) the address of one."""

    name = serializers.CharField(max_length=100)
    language = serializers.CharField(max_length=16, help_text="Of the recording; a language of the engine.")
    gender = serializers.CharField(required=False, allow_blank=True, default="")
    shared = serializers.BooleanField(
        required=False, default=True, help_text="`false` keeps it to yourself and those who manage the team."
    )
    tags = TagsField(required=False, default=list)


class VoiceUpdateSerializer(KnownFields, InputSerializer):
    """What is given is changed. Another transcript, window or recording makes a new version; requests keep theirs."""

    name = Text(required=False)
    language = Text(required=False)
    gender = Text(required=False, allow_blank=True)
    transcript = Text(required=False, allow_blank=True)
    window_start = Number(required=False)
    window_end = Number(required=False)
    recording = Whole(
        required=False, min_value=1, help_text="Number of another one of the recordings that were sent."
    )
    version = Whole(required=False, min_value=1, help_text="Go back to this version, or change from there.")
    shared = serializers.BooleanField(
        required=False,
        help_text="With the whole team; its maker and those who manage the team may decide it.",
    )
    tags = serializers.ListField(
        child=Text(), required=False, help_text="All of them anew; the one field that a preset takes as well."
    )


class VoicePageSerializer(page_of(objects.VoiceSerializer)):  # type: ignore[misc]
    """One page, the newest first."""

    voices = objects.VoiceSerializer(
        many=True, required=False, help_text="All voices; only when the key came as `xi-api-key`."
    )


class VoicesView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.VOICES_READ, "POST": permissions.VOICES_WRITE}
    query_names = {"GET": (*VoiceFilterSerializer().fields, *PAGE)}
    shared_with_elevenlabs = True
    parser_classes = [MultiPartParser, JsonParser]
    body_bytes = UPLOAD_BODY_BYTES

    @extend_schema(
        summary="List voices",
        tags=["Voices"],
        parameters=[VoiceFilterSerializer, LIMIT, CURSOR],
        responses={200: VoicePageSerializer, **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The presets of the engine and the team's own voices."""
        rows = filtered(self.actor, **self.query(VoiceFilterSerializer))
        body = page(request, rows, lambda row: objects.voice(row, request), size=_PAGE)
        if uses_elevenlabs(request):
            # Their clients know no pages here.
            body["voices"] = [objects.voice(row, request) for row in rows.order_by("-id")[:_ALL]]
        return Response(body)

    @extend_schema(
        summary="Create a voice",
        tags=["Voices"],
        request={"multipart/form-data": VoiceCreateSerializer, "application/json": VoiceCreateSerializer},
        parameters=[IDEMPOTENCY_KEY],
        responses={201: objects.VoiceSerializer, **errors(*BODY, 409, 422, 429)},
    )
    def post(self, request: Request) -> Response:
        """Clone a voice from a recording. The speaker must have agreed to it."""
        self.hit()
        values = self.read(VoiceCreateSerializer)
        status, body, replayed = idempotency.once_apart(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "voices", **payload(values)},
            work=lambda: (201, self._created(values)),
        )
        return created(request, body, status, replayed)

    def _created(self, values: dict[str, Any]) -> dict[str, Any]:
        tags = voice_marks.checked(values["tags"])
        first, *more = sent(values)
        with named(values):
            created = voices.create(
                actor=self.actor,
                name=values["name"],
                language=voices.closest_language(values["language"]),
                audio=first.audio,
                filename=first.filename,
                transcript=first.transcript,
                more=more,
                consent=True,
                statement=agreed(values["consent"]),
                gender=values["gender"],
                shared=values["shared"],
                window=window(values),
            )
        if tags:
            created = voice_marks.set_tags(actor=self.actor, voice_id=created.id, names=tags)
        return objects.voice(created, self.request)


def created(request: Request, body: dict[str, Any], status: int, replayed: bool) -> Response:
    """The answer to whoever made a voice, or made it anew."""
    answer = Response(body, status=status)
    answer.headers["Location"] = request.build_absolute_uri(f"/v1/voices/{body['id']}")
    if replayed:
        answer.headers["Idempotent-Replayed"] = "true"
    return answer


class VoiceView(ApiView):
    """One voice."""

    required_scopes = {
        "GET": permissions.VOICES_READ,
        "PATCH": permissions.VOICES_WRITE,
        "DELETE": permissions.VOICES_WRITE,
    }
    shared_with_elevenlabs = True

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
        responses={200: objects.VoiceSerializer, **errors(*BODY, 404, 409), **OWN_ONLY},
    )
    def patch(self, request: Request, voice_id: str) -> Response:
        """Only the team's own voices can be changed; a preset can be given tags, which are the team's own."""
        identifier = parse_id(voice_id, VoiceNotFound)
        values = self.read(VoiceUpdateSerializer)
        part = window(values)
        tags = voice_marks.checked(values["tags"]) if "tags" in values else None
        if tags is None or values.keys() - {"tags"}:
            changed = voices.update(
                actor=self.actor,
                voice_id=identifier,
                window=part,
                **{name: values.get(name) for name in _CHANGEABLE},
            )
        if tags is not None:
            changed = voice_marks.set_tags(actor=self.actor, voice_id=identifier, names=tags)
        return Response(objects.voice(changed, request))

    @extend_schema(
        summary="Delete a voice", tags=["Voices"], responses={204: None, **errors(404, 409), **OWN_ONLY}
    )
    def delete(self, request: Request, voice_id: str) -> Response:
        """At once for new requests; requests that wait for it fail without charge."""
        voices.delete(actor=self.actor, voice_id=parse_id(voice_id, VoiceNotFound))
        return Response(status=204)


class SampleFilterSerializer(serializers.Serializer):
    """Which version to hear."""

    version = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="Of one of the team's voices; the current one.",
    )


class VoiceSampleView(ApiView):
    """How a voice sounds."""

    required_scopes = {"GET": permissions.VOICES_READ}
    query_names = {"GET": tuple(SampleFilterSerializer().fields)}

    @extend_schema(
        summary="Hear a voice",
        tags=["Voices"],
        parameters=[
            SampleFilterSerializer,
            *(
                OpenApiParameter(name, str, OpenApiParameter.HEADER)
                for name in ("Range", "If-Range", "If-None-Match")
            ),
        ],
        responses={
            (200, "audio/wav"): OpenApiTypes.BINARY,
            (206, "audio/wav"): OpenApiTypes.BINARY,
            (200, "audio/mpeg"): OpenApiTypes.BINARY,
            (206, "audio/mpeg"): OpenApiTypes.BINARY,
            302: None,
            304: None,
            **errors(400, 404, 416),
        },
    )
    def get(self, request: Request, voice_id: str) -> HttpResponseBase:
        """A preset's sample, or the part of the team's own recording that is used."""
        found = voices.find(self.actor, parse_id(voice_id, VoiceNotFound))
        number = self.query(SampleFilterSerializer).get("version")
        if number is not None:
            found.current_version = voices.find_version(found, number)
        return delivery.serve_sample(request._request, found)


def filtered(
    actor: Actor, *, search: str = "", language: str = "", kind: str = "", gender: str = "", tag: str = ""
) -> VoiceQuerySet:
    """What `actor` may speak with, of that what is asked for."""
    rows = voices.usable(actor)
    tags = VoiceTag.objects.filter(team=actor.team)
    if search:
        rows = rows.filter(
            Q(name__icontains=search)
            | Q(style__icontains=search)
            | Q(preset=search)
            | Q(language__in=_languages(search))
            | Q(id__in=tags.filter(name__icontains=search).values("voice"))
        )
    if language:
        rows = rows.filter(Q(language__iexact=language) | Q(language__istartswith=f"{language}-"))
    if kind:
        rows = rows.filter(kind=kind)
    if gender:
        rows = rows.filter(gender=gender)
    if tag:
        rows = rows.filter(id__in=tags.filter(name__iexact=tag).values("voice"))
    return rows


def _languages(search: str) -> list[str]:
    """The engine's languages whose tag, or whose name as the caller reads it, has `search` in it."""
    wanted = search.casefold()
    return [
        tag
        for tag in capabilities(settings.CHORUS_ENGINE).languages
        if wanted == tag.casefold() or wanted in language_name(tag).casefold()
    ]
