"""Probes and Prometheus ask by address: in a cluster they know no name under which the service is reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

#: Their answers say nothing of the host, so that a wrong one does no harm.
PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


class AnyHost:
    """Accept whatever `Host` these paths are asked with."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path in PATHS:
            named = (host.lstrip(".") for host in settings.ALLOWED_HOSTS if host != "*")
            request.META["HTTP_HOST"] = next(named, "localhost")
        return self.get_response(request)
