"""Bodies bounded before they are read: Django's ASGI handler would put any number of bytes on disk first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from accounts.api.base import LengthRequired
from accounts.api.negotiation import JSON_BYTES, too_large
from accounts.errors import ChorusError
from config.errors import response

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

#: Of a form beside its file.
_FORM_BYTES = 64 * 1024


def bounded(application: Application) -> Application:
    """`application`, which sees no request whose body is larger than a JSON body, or a form's upload, may be."""

    async def bound(scope: Any, receive: Receive, send: Send) -> None:
        error = _refusal(dict(scope["headers"])) if scope["type"] == "http" else None
        if error is None:
            await application(scope, receive, send)
        else:
            await _answer(error, send)

    return bound


def _refusal(headers: dict[bytes, bytes]) -> ChorusError | None:
    length = headers.get(b"content-length", b"0")
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        return LengthRequired()
    is_form = headers.get(b"content-type", b"").startswith(b"multipart/")
    limit = settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024 + _FORM_BYTES if is_form else JSON_BYTES
    return too_large(limit) if not length.isdigit() or int(length[:20]) > limit else None


async def _answer(error: ChorusError, send: Send) -> None:
    answer = response(error)
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    # What was not read would be taken for the next request.
    headers += [(b"connection", b"close"), (b"content-length", str(len(answer.content)).encode())]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
