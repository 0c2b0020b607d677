"""Middleware that concerns every request."""

from __future__ import annotations

import re
import uuid
from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from accounts import log_context

_ACCEPTED = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class RequestId:
    """Give every request an id (the caller's own, when it is harmless), in the answer and in the logs."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._waits = iscoroutinefunction(get_response)
        if self._waits:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self._waits:
            return self.answer_later(request)
        with log_context.bind(request_id=self._identify(request)):
            response = self.get_response(request)
            response.headers["x-request-id"] = request.request_id  # type: ignore[attr-defined]
            return response

    async def answer_later(self, request: HttpRequest) -> HttpResponse:
        """The same under ASGI."""
        with log_context.bind(request_id=self._identify(request)):
            response = await self.get_response(request)  # type: ignore[misc]
            response.headers["x-request-id"] = request.request_id  # type: ignore[attr-defined]
            return response

    @staticmethod
    def _identify(request: HttpRequest) -> str:
        given = request.headers.get("x-request-id", "")
        identifier = given if _ACCEPTED.fullmatch(given) else uuid.uuid4().hex
        request.request_id = identifier  # type: ignore[attr-defined]
        # What is sent here is UTF-8. Django would take the address for whatever encoding a caller names for the body:
        # for one that is none of text (“base64”) nothing could be answered any more.
        request._encoding = None  # type: ignore[attr-defined]
        return identifier
