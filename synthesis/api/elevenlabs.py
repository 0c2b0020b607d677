"""ElevenLabs' `/v1/text-to-speech/{voice_id}`, `/stream` and `/with-timestamps`."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.fields import InputSerializer, Number, Text, Whole
from accounts.api.schema import BODY
from accounts.errors import InvalidInput
from synthesis import listening
from synthesis.api import elevenlabs_formats
from synthesis.api.elevenlabs_base import ElevenLabsView, elevenlabs_errors
from synthesis.api.held import Hold, HoldingView, Live
from synthesis.api.sound import WAIT_SECONDS, failure
from synthesis.engines import capabilities
from synthesis.errors import UnknownVoice, VoiceNotFound
from synthesis.models import Segment, Status, SynthesisRequest
from synthesis.services import dispatch, requests, submission
from synthesis.text.characters import weight

OUTPUT_FORMAT = OpenApiParameter(
    "output_format",
    str,
    enum=elevenlabs_formats.NAMES,
    default=elevenlabs_formats.DEFAULT,
    description="codec_samplerate_bitrate.",
)


class LoggingFilterSerializer(serializers.Serializer):
    """Whether the request is kept."""

    enable_logging = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Only true: each request is kept for as long as the plan says.",
    )


class VoiceSettingsSerializer(InputSerializer):
    """What has no counterpart in the engines (stability, similarity, style) is left alone."""

    speed = Number(required=False)


class TextToSpeechSerializer(InputSerializer):
    """ElevenLabs' body. What would change the sound and cannot be done is refused, hints are left alone."""

    text = Text(allow_blank=True)
    model_id = Text(required=False, help_text="One of `GET /v1/models`; may be left out.")
    language_code = Text(default="", allow_blank=True)
    voice_settings = VoiceSettingsSerializer(required=False)
    seed = Whole(required=False, min_value=0, max_value=2**32 - 1)
    pronunciation_dictionary_locators = serializers.ListField(required=False, help_text="Must be empty.")
    audio_effects = serializers.DictField(required=False, help_text="Must be empty.")

    def get_fields(self) -> dict[str, Any]:
        """The text is checked by `synthesis.text.clean`, which says where a forbidden character is."""
        fields: dict[str, Any] = super().get_fields()
        fields["text"].validators = []
        return fields


class AlignmentSerializer(serializers.Serializer):
    """Times of each character, estimated within each segment, whose own times are known."""

    characters = serializers.ListField(child=serializers.CharField())
    character_start_times_seconds = serializers.ListField(child=serializers.FloatField())
    character_end_times_seconds = serializers.ListField(child=serializers.FloatField())


class WithTimestampsSerializer(serializers.Serializer):
    """The sound and when each character is heard."""

    audio_base64 = serializers.CharField()
    alignment = AlignmentSerializer()
    normalized_alignment = AlignmentSerializer(allow_null=True)


class _SpeakingView(ElevenLabsView, HoldingView):
    """Submit ElevenLabs' body."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}
    # Their clients send none, and what was heard is no answer that could be kept.
    refuses_idempotency_key = True

    def submit(self, request: Request, voice_id: str) -> tuple[SynthesisRequest, listening.Sound]:
        """A request that is heard while it is spoken, and how its caller wants to hear it."""
        self.hit()
        wanted = elevenlabs_formats.parse(
            request.query_params.get("output_format", elevenlabs_formats.DEFAULT)
        )
        # Not `query`, for which an empty value is none: whoever meant to leave no trace must not leave one.
        if not self.read(LoggingFilterSerializer, request.query_params.dict())["enable_logging"]:
            raise InvalidInput(
                _("Requests are always kept here, for as long as your plan says; they can be deleted."),
                code="zero_retention_not_supported",
                param="enable_logging",
            )
        values = self.read(TextToSpeechSerializer)
        for name in ("pronunciation_dictionary_locators", "audio_effects"):
            if values.get(name):
                raise InvalidInput(
                    _("“%(name)s” cannot be applied here. Leave it out.") % {"name": name},
                    code="audio_effects_not_supported"
                    if name == "audio_effects"
                    else "pronunciation_dictionary_locators_not_supported",
                    param=name,
                )
        elevenlabs_formats.check_model(values.get("model_id"))
        seed = values.get("seed")
        try:
            planned = submission.plan(
                actor=self.actor,
                voice=voice_id,
                text=values["text"],
                format=wanted.stored,
                speed=values.get("voice_settings", {}).get("speed", 1.0),
                language=values["language_code"],
                seed=None if seed is None else seed % (submission.SEED_MAX + 1),
            )
        except UnknownVoice as error:
            raise VoiceNotFound(error.message, code=error.code) from None
        except InvalidInput as error:
            # As their clients call it.
            theirs = {"language": "language_code", "speed": "voice_settings.speed"}
            error.param = theirs.get(error.param or "", error.param)
            raise
        row = submission.submit(actor=self.actor, planned=planned, streamed=True)
        sound = listening.Sound(
            format=wanted.codec,
            rate=capabilities(row.engine).sample_rate,
            sample_rate=wanted.sample_rate,
            bit_rate=wanted.bit_rate,
            artist=row.voice.name,
        )
        return row, sound

    def live(self, request: Request, voice_id: str) -> Live:
        """The sound while it is spoken."""
        row, sound = self.submit(request, voice_id)

        def finish() -> HttpResponseBase:
            return _stream(row, sound, [self.whole(row, sound)])

        return Live(
            self,
            row.id,
            WAIT_SECONDS,
            finish,
            lambda: dispatch.cancel(row.id),
            listen=sound.of,
            respond=lambda content: _stream(row, sound, content),
        )

    def whole(self, row: SynthesisRequest, sound: listening.Sound) -> bytes:
        """The sound of what has succeeded by now; SpeechFailed otherwise."""
        ended = requests.submitted(self.actor, row.id)
        if ended.status != Status.SUCCEEDED:
            raise failure(ended)
        return sound.whole(row.id)


def _stream(
    row: SynthesisRequest, sound: listening.Sound, content: Iterable[bytes] | AsyncIterator[bytes]
) -> StreamingHttpResponse:
    if settings.CHORUS_ASGI and isinstance(content, list):
        content = _later(content)
    return StreamingHttpResponse(
        content,
        content_type=elevenlabs_formats.content_type(sound),
        headers={
            "request-id": str(row.id),
            "history-item-id": str(row.id),
            "character-cost": str(row.characters),
        },
    )


async def _later(content: list[bytes]) -> AsyncIterator[bytes]:
    for data in content:
        yield data


class TextToSpeechView(_SpeakingView):
    """Speak."""

    @extend_schema(
        summary="Speak as ElevenLabs does",
        tags=["ElevenLabs"],
        request=TextToSpeechSerializer,
        parameters=[OUTPUT_FORMAT, LoggingFilterSerializer],
        responses={
            (200, "audio/*"): OpenApiTypes.BINARY,
            **elevenlabs_errors(*BODY, 404, 409, 422, 429, 500, 504),
        },
    )
    def post(self, request: Request, voice_id: str) -> Live:
        """The sound, while it is spoken. Hanging up cancels the request; nothing is charged then."""
        return self.live(request, voice_id)


class TextToSpeechStreamView(_SpeakingView):
    """The same: all sound is sent as soon as there is any."""

    @extend_schema(
        summary="Stream as ElevenLabs does",
        tags=["ElevenLabs"],
        request=TextToSpeechSerializer,
        parameters=[OUTPUT_FORMAT, LoggingFilterSerializer],
        responses={
            (200, "audio/*"): OpenApiTypes.BINARY,
            **elevenlabs_errors(*BODY, 404, 409, 422, 429, 500, 504),
        },
    )
    def post(self, request: Request, voice_id: str) -> Live:
        """The sound, while it is spoken. Hanging up cancels the request; nothing is charged then."""
        return self.live(request, voice_id)


class TextToSpeechWithTimestampsView(_SpeakingView):
    """Speak, and tell when each character is heard."""

    @extend_schema(
        summary="Speak with timestamps as ElevenLabs does",
        tags=["ElevenLabs"],
        request=TextToSpeechSerializer,
        parameters=[OUTPUT_FORMAT, LoggingFilterSerializer],
        responses={200: WithTimestampsSerializer, **elevenlabs_errors(*BODY, 404, 409, 422, 429, 500, 504)},
    )
    def post(self, request: Request, voice_id: str) -> Hold:
        """Each segment's times are exact; those of its characters are estimated from their usual length."""
        row, sound = self.submit(request, voice_id)

        def finish() -> Response:
            data = self.whole(row, sound)
            aligned = align(row, sound.spans)
            body = {
                "audio_base64": base64.b64encode(data).decode(),
                "alignment": aligned,
                "normalized_alignment": aligned,
            }
            return Response(body, headers={"request-id": str(row.id)})

        return Hold(self, row.id, WAIT_SECONDS, finish, lambda: dispatch.cancel(row.id))


def align(row: SynthesisRequest, spans: list[tuple[float, float]]) -> dict[str, list[Any]]:
    """When each character of the text is heard: segments at their `spans` (seconds), their characters by weight.

    What lies between two segments takes no time.
    """
    starts: list[float] = []
    ends: list[float] = []

    def place(text: str, start: float, end: float) -> None:
        weights = [weight(character) for character in text]
        total = sum(weights) or 1.0
        reached = 0.0
        for one in weights:
            starts.append(round(start + (end - start) * reached / total, 3))
            reached += one
            ends.append(round(start + (end - start) * reached / total, 3))

    segments = list(Segment.objects.filter(request=row.id))
    text = row.text
    if any(segment.text not in text for segment in segments):
        # Tags that reach over several segments are begun anew in each: then what was spoken is aligned.
        text = " ".join(segment.text for segment in segments)
    position = 0
    for segment, (start, end) in zip(segments, spans, strict=True):
        found = text.index(segment.text, position)
        place(text[position:found], start, start)
        place(segment.text, start, end)
        position = found + len(segment.text)
    last = spans[-1][1]
    place(text[position:], last, last)
    return {
        "characters": list(text),
        "character_start_times_seconds": starts,
        "character_end_times_seconds": ends,
    }
