"""`POST /v1/audio/speech`: OpenAI's shape. The answer is the sound; the caller waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from accounts import permissions
from accounts.api.base import parse_id
from accounts.api.fields import InputSerializer, Number, Text, Whole
from accounts.api.schema import BODY, IDEMPOTENCY_KEY, errors
from accounts.errors import ChorusError, InvalidInput
from accounts.services import idempotency
from synthesis import storage
from synthesis.api.catalogue import check_model, names
from synthesis.api.fields import VoiceField
from synthesis.api.held import Hold, HoldingView
from synthesis.models import Format, Status, SynthesisRequest
from synthesis.services import dispatch, requests, submission

#: Seconds that a caller is kept waiting: OpenAI's clients give up after 10 minutes by themselves.
WAIT_SECONDS = 900

#: What a failure means to the caller. Ours (500) unless it lies in what was asked for.
_FAILURES = {"segment_implausible": 422, "voice_deleted": 400, "storage_unavailable": 503}


class SpeechFailed(ChorusError):
    """The request ended without sound. It was tried several times: trying again at once will not help."""

    status = 500
    code = "engine_error"
    should_retry = False
    message = gettext_lazy("The speech engine failed. Your characters were given back; try again.")


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
    seed = Whole(default=None)

    def get_fields(self) -> dict[str, Any]:
        """The text is checked by `synthesis.text.clean`, which says where a forbidden character is."""
        fields: dict[str, Any] = super().get_fields()
        fields["input"].validators = []
        return fields


class SpeechView(HoldingView):
    """Speak and answer with the sound."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Speak a text",
        tags=["OpenAI"],
        request=SpeechSerializer,
        parameters=[IDEMPOTENCY_KEY],
        responses={(200, "audio/*"): OpenApiTypes.BINARY, **errors(*BODY, 409, 422, 429, 500, 504)},
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
            return 200, {"id": str(submission.submit(actor=self.actor, planned=planned).id)}

        _status, saved, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "speech", **request.data},
            work=work,
        )
        identifier = parse_id(saved["id"])
        return Hold(
            self,
            identifier,
            WAIT_SECONDS,
            finish=lambda: spoken(requests.find(self.actor, identifier)),
            # Who repeats a request waits for another caller's as well as for their own.
            abandon=None if replayed else lambda: dispatch.cancel(identifier),
        )


@contextmanager
def _openai_names() -> Iterator[None]:
    """Let errors name the fields as this route does."""
    theirs = {"format": "response_format", "instruction": "instructions", "text": "input"}
    try:
        yield
    except InvalidInput as error:
        error.param = theirs.get(error.param or "", error.param)
        raise


def spoken(row: SynthesisRequest) -> HttpResponseBase:
    """The sound of a request that has ended well; SpeechFailed otherwise."""
    output = getattr(row, "output", None)
    if row.status != Status.SUCCEEDED or output is None:
        raise _failure(row)
    return StreamingHttpResponse(
        pieces(output.key, output.bytes),
        content_type=output.content_type,
        headers={
            "Content-Length": str(output.bytes),
            "Content-Disposition": content_disposition_header(True, f"speech.{row.format}") or "attachment",
            "x-synthesis-id": str(row.id),
        },
    )


def pieces(key: str, size: int) -> storage.Stream | _LaterStream:
    """A stored object, of the kind that this process streams; StorageUnavailable is raised before the first piece."""
    source = storage.open_range(key, 0, size - 1)
    return _LaterStream(source) if settings.CHORUS_ASGI else source


class _LaterStream:
    """A stream that is read in threads which belong to nobody, so that a slow caller holds none."""

    def __init__(self, source: storage.Stream) -> None:
        self._source = source
        self.close = source.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(next, self._source, b""):
            yield piece


def _failure(row: SynthesisRequest) -> SpeechFailed:
    about: dict[str, Any] = {"synthesis_id": str(row.id)}
    if not row.is_final:
        error = SpeechFailed(
            _("It is not done after %(minutes)d minutes. It goes on: fetch it as GET /v1/syntheses/%(id)s.")
            % {"minutes": WAIT_SECONDS // 60, "id": row.id},
            code="timeout",
            **about,
        )
        error.status = 504
        return error
    match row.status:
        case Status.CANCELED:
            error = SpeechFailed(
                _("The request was canceled. Nothing was charged."), code="canceled", **about
            )
            error.status = 409
        case Status.SUCCEEDED:
            error = SpeechFailed(
                _("The recording was deleted when its time was over."), code="output_expired", **about
            )
            error.status = 410
        case _:
            error = SpeechFailed(
                _(row.error_message) if row.error_message else None, code=row.error_code or None, **about
            )
            error.status = _FAILURES.get(row.error_code, 500)
    return error
