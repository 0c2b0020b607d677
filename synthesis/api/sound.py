"""The sound of a request as an answer: whole, or while it is spoken."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

from django.conf import settings
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import ChorusError
from synthesis import listening, storage, watching
from synthesis.api.held import Hold, HoldingView, Live
from synthesis.audio import encode
from synthesis.engines import capabilities
from synthesis.models import Status, SynthesisRequest
from synthesis.services import dispatch, requests

#: OpenAI's `stream_format`: the bytes of one file, or events that carry them.
STREAM_FORMATS = ("audio", "sse")
#: Seconds that a caller is kept waiting: OpenAI's clients give up after 10 minutes by themselves.
WAIT_SECONDS = 900
#: Sound is counted as CosyVoice3 makes it, in tokens a second.
_TOKENS_PER_SECOND = 25

#: What a failure means to the caller. Ours (500) unless it lies in what was asked for.
_FAILURES = {
    "segment_implausible": 422,
    "voice_deleted": 400,
    "voice_taken_down": 403,
    "language_not_supported": 400,
    "nothing_to_speak": 400,
    "cannot_pronounce": 422,
    "storage_unavailable": 503,
}


class SpeechFailed(ChorusError):
    """The request ended without sound. It was tried several times: trying again at once will not help."""

    status = 500
    code = "engine_error"
    should_retry = False
    message = gettext_lazy("The speech engine failed. Your characters were given back; try again.")


def hold(view: HoldingView, row: SynthesisRequest, *, stream_format: str = "", cancels: bool = True) -> Hold:
    """Answer with the sound of `row`: when it is finished, or by `stream_format` while it is spoken.

    `cancels`: the request ends when the caller hangs up.
    """
    abandon = (lambda: dispatch.cancel(row.id)) if cancels else None

    def finished() -> SynthesisRequest:
        return requests.submitted(view.actor, row.id)

    if not stream_format:
        return Hold(view, row.id, WAIT_SECONDS, lambda: whole(finished()), abandon)
    heard = listening.Sound(
        format=cast("encode.Format", row.format),
        rate=capabilities(row.engine).sample_rate,
        title=row.title,
        artist=row.voice.name,
    )
    if stream_format == "audio":
        return Live(
            view,
            row.id,
            WAIT_SECONDS,
            lambda: whole(finished()),
            abandon,
            listen=heard.of,
            respond=lambda content: _streamed(row, content),
        )
    return Live(
        view,
        row.id,
        WAIT_SECONDS,
        lambda: _events_of_whole(finished()),
        abandon,
        listen=lambda watch: _events(row, heard, watch),
        respond=lambda content: _event_stream(row, content),
    )


def whole(row: SynthesisRequest) -> HttpResponseBase:
    """The file of a request that has ended well; SpeechFailed otherwise."""
    output = getattr(row, "output", None)
    if row.status != Status.SUCCEEDED or output is None:
        raise failure(row)
    source = storage.open_range(output.key, 0, output.bytes - 1)
    answer = _streamed(row, _LaterStream(source) if settings.CHORUS_ASGI else source)
    answer.headers["Content-Length"] = str(output.bytes)
    return answer


def _streamed(
    row: SynthesisRequest, content: Iterable[bytes] | AsyncIterator[bytes] | _LaterStream
) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        content,
        content_type=encode.CONTENT_TYPES[cast("encode.Format", row.format)],
        headers={
            "Content-Disposition": content_disposition_header(True, f"speech.{row.format}") or "attachment",
            "x-synthesis-id": str(row.id),
        },
    )


class _LaterStream:
    """A stream that is read in threads which belong to nobody, so that a slow caller holds none."""

    def __init__(self, source: storage.Stream) -> None:
        self._source = source
        self.close = source.close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await watching.release_thread()
        while piece := await asyncio.to_thread(next, self._source, b""):
            yield piece


async def _events(
    row: SynthesisRequest, heard: listening.Sound, watch: watching.Watch
) -> AsyncIterator[bytes]:
    """`speech.audio.delta` … `speech.audio.done`, or `speech.audio.error` once something was sent."""
    begun = False
    try:
        async for data in heard.of(watch):
            begun = True
            yield _delta(data)
    except listening.Ended:
        if not begun:
            raise
        error = await asyncio.to_thread(_ended, row)
        yield _event("speech.audio.error", error={"message": str(error), "code": error.code})
    else:
        yield _done(row, heard.seconds)


def _events_of_whole(row: SynthesisRequest) -> HttpResponseBase:
    if row.status != Status.SUCCEEDED or not hasattr(row, "output"):
        raise failure(row)
    content = [_delta(storage.get(row.output.key)), _done(row, row.output.seconds)]
    return _event_stream(row, content)


def _event_stream(
    row: SynthesisRequest, content: Iterable[bytes] | AsyncIterator[bytes]
) -> StreamingHttpResponse:
    return StreamingHttpResponse(
        content,
        content_type="text/event-stream",
        headers={"X-Accel-Buffering": "no", "x-synthesis-id": str(row.id)},
    )


def _delta(data: bytes) -> bytes:
    return _event("speech.audio.delta", audio=base64.b64encode(data).decode())


def _done(row: SynthesisRequest, seconds: float) -> bytes:
    """Our tokens are what is counted here: characters in, and the model's tokens of sound out."""
    heard = round(seconds * _TOKENS_PER_SECOND)
    usage = {
        "input_tokens": row.characters,
        "output_tokens": heard,
        "total_tokens": row.characters + heard,
    }
    return _event("speech.audio.done", usage=usage)


def _event(kind: str, **fields: Any) -> bytes:
    return f"data: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def _ended(row: SynthesisRequest) -> SpeechFailed:
    close_old_connections()
    try:
        row.refresh_from_db()
        return failure(row)
    finally:
        close_old_connections()


def failure(row: SynthesisRequest) -> SpeechFailed:
    """Why there is no sound (any more)."""
    about: dict[str, Any] = {"synthesis_id": str(row.id)}
    if not row.is_final:
        message = _(
            "It is not done after %(minutes)d minutes. It goes on: fetch it as GET /v1/syntheses/%(id)s."
        ) % {
            "minutes": WAIT_SECONDS // 60,
            "id": row.id,
        }
        return _failure(504, message, "timeout", about)
    if row.status == Status.CANCELED:
        return _failure(409, _("The request was canceled. Nothing was charged."), "canceled", about)
    if row.status == Status.SUCCEEDED:
        message = _("The recording was deleted when its time was over. Submit the text again.")
        return _failure(410, message, "output_expired", about)
    message = _(row.error_message) if row.error_message else ""
    return _failure(_FAILURES.get(row.error_code, 500), message, row.error_code, about)


def _failure(status: int, message: str, code: str, about: dict[str, Any]) -> SpeechFailed:
    error = SpeechFailed(message or None, code=code or None, **about)
    error.status = status
    return error
