"""`POST /v1/audio/speech`: OpenAI's shape. The answer is the sound; the caller waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from accounts import permissions
from accounts.api.base import parse_id
from accounts.api.fields import InputSerializer, Number, Text, Whole
from accounts.api.schema import BODY, IDEMPOTENCY_KEY, errors
from accounts.errors import InvalidInput
from accounts.services import idempotency
from synthesis.api import sound
from synthesis.api.catalogue import check_model, names
from synthesis.api.fields import ServerSentEventSerializer, VoiceField
from synthesis.api.held import Hold, HoldingView
from synthesis.models import Format
from synthesis.services import requests, submission


class SpeechSerializer(InputSerializer):
    """OpenAI's body; `language` and `seed` are ours."""

    model = Text(required=False, help_text="One of `GET /v1/models`; may be left out.")
    input = Text(allow_blank=True, help_text="The text to speak.")
    voice = VoiceField(help_text="Id or name of a voice.")
    instructions = Text(
        default="", allow_blank=True, help_text="How to say it, for engines that follow instructions."
    )
    response_format = Text(default=Format.MP3, help_text=f"One of {', '.join(Format.values)}.")
    speed = Number(default=1.0, min_value=0.25, max_value=4.0, help_text="Most engines take 0.5 to 2.")
    language = Text(default="", allow_blank=True, help_text="By default as the text is written.")
    stream_format = serializers.ChoiceField(
        sound.STREAM_FORMATS,
        default="",
        help_text="`audio` sends the sound while it is spoken, `sse` as events: `speech.audio.delta` with base64 "
        "`audio`, and `speech.audio.done`. Without it the answer is the finished file, whose header knows its length.",
    )
    seed = Whole(default=None)

    def get_fields(self) -> dict[str, Any]:
        """The text is checked by `synthesis.text.clean`, which says where a forbidden character is."""
        fields: dict[str, Any] = super().get_fields()
        fields["input"].validators = []
        return fields


class SpeechView(HoldingView):
    """Speak and answer with the sound."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}
    query_names = None

    @extend_schema(
        summary="Speak a text",
        tags=["OpenAI"],
        request=SpeechSerializer,
        parameters=[IDEMPOTENCY_KEY],
        responses={
            (200, "audio/*"): OpenApiTypes.BINARY,
            (200, "text/event-stream"): ServerSentEventSerializer,
            **errors(*BODY, 409, 410, 422, 429, 500, 504),
        },
    )
    def post(self, request: Request) -> Hold:
        """Hanging up cancels the request; nothing is charged then."""
        self.hit()
        values = self.read(SpeechSerializer)
        check_model(values.get("model") or names()[0])

        def work() -> tuple[int, dict[str, Any]]:
            with _openai_names():
                planned = submission.plan(
                    actor=self.actor,
                    voice=values["voice"],
                    text=values["input"],
                    format=values["response_format"],
                    speed=values["speed"],
                    language=values["language"],
                    instruction=values["instructions"],
                    seed=values["seed"],
                    param="input",
                )
            row = submission.submit(actor=self.actor, planned=planned, streamed=bool(values["stream_format"]))
            return 200, {"id": str(row.id)}

        _status, saved, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "speech", **cast(dict[str, Any], request.data)},
            work=work,
        )
        row = requests.submitted(self.actor, parse_id(saved["id"]))
        # Who repeats a request waits for another caller's as well as for their own.
        return sound.hold(self, row, stream_format=values["stream_format"], cancels=not replayed)


@contextmanager
def _openai_names() -> Iterator[None]:
    """Let errors name the fields as this route does."""
    theirs = {"format": "response_format", "instruction": "instructions", "text": "input"}
    try:
        yield
    except InvalidInput as error:
        error.param = theirs.get(error.param or "", error.param)
        raise
