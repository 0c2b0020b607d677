"""What Django's handlers leave open: bodies are bounded before they are read (the one for ASGI would put any number of
bytes on disk first), forms may come without a length (as OpenAI's client for Node sends them), and an answer that
breaks off is told from one that is complete.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Any

from django.conf import settings

from accounts.api.base import LengthRequired
from accounts.api.negotiation import FORM_BYTES, JSON_BYTES, too_large
from accounts.errors import ChorusError
from config.errors import response
from synthesis import listening

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

#: Of a body that nobody wants, so much is thrown away before the answer: all that a front lets through. An answer in
#: the middle of it would cut the connection, which the front takes for a process that is being started again.
_DRAIN_BYTES, _DRAIN_SECONDS = 64 * 1024 * 1024, 30.0
#: Of a form without a length so much is held in memory, the rest on disk; handed on in pieces.
_MEMORY_BYTES, _PIECE_BYTES = 2 * JSON_BYTES, 64 * 1024


def bounded(application: Application) -> Application:
    """`application`, which sees no request whose body is larger than a JSON body, or a form's upload, may be."""

    async def bound(scope: Any, receive: Receive, send: Send) -> None:
        error = _refusal(dict(scope["headers"])) if scope["type"] == "http" else None
        if error is not None:
            await _drain(receive)
            await _answer(error, send)
            return
        try:
            if scope["type"] == "http" and _comes_in_chunks(dict(scope["headers"])):
                with SpooledTemporaryFile(_MEMORY_BYTES) as body:
                    if (size := await _gather(receive, body)) is None:
                        await _answer(too_large(_form_limit()), send)
                        return
                    await application(_with_length(scope, size), _replay(body, receive), send)
            else:
                await application(scope, receive, send)
        except listening.Ended:
            # Sound that breaks off must not look complete: the server closes the connection before the last chunk.
            logger.info("A request ended while it was heard")

    return bound


def _form_limit() -> int:
    return settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + FORM_BYTES


def _is_form(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").lower().startswith(b"multipart/")


def _comes_in_chunks(headers: dict[bytes, bytes]) -> bool:
    return b"chunked" in headers.get(b"transfer-encoding", b"").lower()


async def _gather(receive: Receive, body: SpooledTemporaryFile[bytes]) -> int | None:
    """The whole body, and how long it is; None when it is longer than a form may be, or nobody sends any more."""
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size > _form_limit():
            return None
        body.write(piece)
        if not message.get("more_body"):
            body.seek(0)
            return size


def _with_length(scope: Any, size: int) -> Any:
    headers = [header for header in scope["headers"] if header[0] != b"transfer-encoding"]
    return {**scope, "headers": [*headers, (b"content-length", str(size).encode())]}


def _replay(body: SpooledTemporaryFile[bytes], receive: Receive) -> Receive:
    """What was gathered, and then what the server says."""
    ended = False

    async def again() -> Any:
        nonlocal ended
        if ended:
            return await receive()
        piece = body.read(_PIECE_BYTES)
        ended = len(piece) < _PIECE_BYTES
        return {"type": "http.request", "body": piece, "more_body": not ended}

    return again


def measured(application: Callable[[Any, Any], Iterable[bytes]]) -> Callable[[Any, Any], Iterable[bytes]]:
    """The same for WSGI: forms that come in chunks get a length, and no answer comes before its question has ended."""

    def measure(environ: Any, start_response: Any) -> Iterable[bytes]:
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not chunked or not environ.get("CONTENT_TYPE", "").lower().startswith("multipart/"):
            answer = application(environ, start_response)
            _throw_away(environ)
            return answer
        body = SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115  it lives as long as the request
        size = 0
        while piece := environ["wsgi.input"].read(_PIECE_BYTES):
            size += len(piece)
            if size > _form_limit():
                body.close()
                _throw_away(environ)
                return _refuse(too_large(_form_limit()), start_response)
            body.write(piece)
        body.seek(0)
        del environ["HTTP_TRANSFER_ENCODING"]
        told = environ | {"CONTENT_LENGTH": str(size), "wsgi.input": body}
        return _closing(application(told, start_response), body)

    return measure


def _throw_away(environ: Any) -> None:
    """What the application has not read."""
    line = environ.get("gunicorn.socket")
    patience = line.gettimeout() if line is not None else None
    deadline = time.monotonic() + _DRAIN_SECONDS
    taken = 0
    try:
        while taken < _DRAIN_BYTES and (left := deadline - time.monotonic()) > 0:
            if line is not None:
                line.settimeout(left)
            piece = environ["wsgi.input"].read(_PIECE_BYTES)
            if not piece:
                return
            taken += len(piece)
    except OSError:
        return  # whoever sent it has gone, or says no more
    finally:
        if line is not None:
            line.settimeout(patience)


def _closing(answer: Iterable[bytes], body: SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    """`answer`, and the end of `body` with it."""
    try:
        yield from answer
    finally:
        body.close()
        if hasattr(answer, "close"):
            answer.close()


def _refuse(error: ChorusError, start_response: Any) -> Iterable[bytes]:
    answer = response(error)
    status = f"{answer.status_code} {HTTPStatus(answer.status_code).phrase}"
    # What was not read would be taken for the next request.
    start_response(status, [*answer.items(), ("Connection", "close")])
    return [answer.content]


def _refusal(headers: dict[bytes, bytes]) -> ChorusError | None:
    length = headers.get(b"content-length", b"0")
    if _comes_in_chunks(headers):
        return None if _is_form(headers) else LengthRequired()
    limit = _form_limit() if _is_form(headers) else JSON_BYTES
    return too_large(limit) if not length.isdigit() or int(length[:20]) > limit else None


async def _drain(receive: Receive) -> None:
    """Take what is under way: most clients read an answer only when they have sent everything."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            taken = 0
            while taken < _DRAIN_BYTES:
                message = await receive()
                taken += len(message.get("body", b""))
                if not message.get("more_body"):
                    return


async def _answer(error: ChorusError, send: Send) -> None:
    answer = response(error)
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    # What was not read would be taken for the next request.
    headers += [(b"connection", b"close"), (b"content-length", str(len(answer.content)).encode())]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
