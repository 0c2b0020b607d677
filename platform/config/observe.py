"""Count and log every answer. Routes, never addresses: those may hold secrets (an invitation) or what users wrote."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts import tracing
from config import metrics

logger = logging.getLogger("chorus.access")

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Asked for every few seconds by machines: only worth a line to who looks for it.
_QUIET = frozenset({"(static)", "healthz", "readyz", "metrics"})


class Observe:
    """Right after RequestId, so that it sees what every other middleware answers."""

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
        started = time.perf_counter()
        with tracing.span("HTTP", parent=request.headers.get("traceparent", ""), server=True) as span:
            response = self.get_response(request)
            _note(request, response, time.perf_counter() - started, span)
        return response

    async def answer_later(self, request: HttpRequest) -> HttpResponseBase:
        """The same under ASGI."""
        started = time.perf_counter()
        with tracing.span("HTTP", parent=request.headers.get("traceparent", ""), server=True) as span:
            response: HttpResponseBase = await self.get_response(request)  # type: ignore[misc]
            _note(request, response, time.perf_counter() - started, span)
        return response


def _note(request: HttpRequest, response: HttpResponseBase, seconds: float, span: Any) -> None:
    method = request.method if request.method in _METHODS else "OTHER"
    route = route_of(request)
    code = getattr(response, "error_code", "")
    metrics.REQUESTS.labels(method, route, str(response.status_code), code).inc()
    metrics.SECONDS.labels(method, route).observe(seconds)
    if span is not None:
        span.update_name(f"{method} {route}")
        span.set_attribute("http.request.method", method)
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", response.status_code)
    level = logging.DEBUG if route in _QUIET else logging.INFO
    if logger.isEnabledFor(level):
        logger.log(
            level,
            "Answered",
            extra={
                "method": method,
                "route": route,
                "status": response.status_code,
                "seconds": round(seconds, 4),
                **({"code": code} if code else {}),
                **_ids(request),
            },
        )


def route_of(request: HttpRequest) -> str:
    """The pattern that the address matched: bounded in number, and without what stands in its places."""
    match = request.resolver_match
    if match is not None:
        return match.route or "/"
    return "(static)" if request.path.startswith(settings.STATIC_URL) else "(none)"


def _ids(request: HttpRequest) -> dict[str, str]:
    """The ids in the address. Only what is a UUID: anything else may be a secret."""
    match = request.resolver_match
    found = {}
    for name, value in (match.kwargs if match else {}).items():
        try:
            found[name] = str(UUID(str(value)))
        except ValueError:
            continue
    return found
