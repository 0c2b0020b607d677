"""Switches traces on: spans go by OTLP over HTTP to CHORUS_OTLP_ENDPOINT."""

from __future__ import annotations

import os
import socket

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from accounts import tracing


def set_up() -> None:
    """Once in a process, before it forks; nothing without an endpoint. ImproperlyConfigured without the packages."""
    if not settings.CHORUS_OTLP_ENDPOINT or tracing.is_on():
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        raise ImproperlyConfigured(
            "CHORUS_OTLP_ENDPOINT is set, but the extra `tracing` is not installed: pip install '.[tracing]'."
        ) from None
    provider = TracerProvider(
        resource=Resource.create(
            {
                "service.name": "chorus",
                "service.version": settings.CHORUS_VERSION,
                "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            }
        ),
        sampler=ParentBased(TraceIdRatioBased(settings.CHORUS_TRACE_PERCENT / 100)),
    )
    # Sends from a thread of its own, which begins anew in forked processes; what cannot be sent is dropped.
    exporter = OTLPSpanExporter(endpoint=f"{settings.CHORUS_OTLP_ENDPOINT.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracing.use(provider.get_tracer("chorus", settings.CHORUS_VERSION))
