"""What Django's ASGI handler leaves open: bodies are bounded before they are read (it would put any number of bytes on
disk first), and an answer that breaks off is told from one that is complete.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from django.conf import settings

from accounts.api.base import LengthRequired
from accounts.api.negotiation import JSON_BYTES, too_large
from accounts.errors import ChorusError
from config.errors import response
from synthesis import listening

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

#: Of a form beside its file.
_FORM_BYTES = 64 * 1024
#: Of a body that is refused, so much is thrown away before the answer.
_DRAIN_BYTES, _DRAIN_SECONDS = 2 * JSON_BYTES, 2.0


def bounded(application: Application) -> Application:
    """`application`, which sees no request whose body is larger than a JSON body, or a form's upload, may be."""

    async def bound(scope: Any, receive: Receive, send: Send) -> None:
        error = _refusal(dict(scope["headers"])) if scope["type"] == "http" else None
        if error is not None:
            await _drain(receive)
            await _answer(error, send)
            return
        try:
            await application(scope, receive, send)
        except listening.Ended:
            # Sound that breaks off must not look complete: the server closes the connection before the last chunk.
            logger.info("A request ended while it was heard")

    return bound


def _refusal(headers: dict[bytes, bytes]) -> ChorusError | None:
    length = headers.get(b"content-length", b"0")
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        return LengthRequired()
    is_form = headers.get(b"content-type", b"").startswith(b"multipart/")
    limit = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + _FORM_BYTES if is_form else JSON_BYTES
    return too_large(limit) if not length.isdigit() or int(length[:20]) > limit else None


async def _drain(receive: Receive) -> None:
    """Take a little of what is under way: most clients read an answer only when they have sent everything."""
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
