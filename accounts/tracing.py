"""Spans of OpenTelemetry, where `config.tracing` has switched them on; otherwise one comparison each.

Attributes are ids, numbers and names of ours: never what a user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

_tracer: Any = None


def use(tracer: Any) -> None:
    """Send spans to `tracer`; None switches them off."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    """Whether anybody collects."""
    return _tracer is not None


@contextmanager
def span(name: str, *, parent: str = "", server: bool = False, **attributes: Any) -> Iterator[Any]:
    """The block as a span, below `parent` (a W3C `traceparent`) or below the span that holds here. Yields the span,
    or None."""
    if _tracer is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    kind = SpanKind.SERVER if server else SpanKind.INTERNAL
    with _tracer.start_as_current_span(
        name, context=_context(parent), kind=kind, attributes=_plain(attributes)
    ) as current:
        yield current


def past(name: str, start: datetime, end: datetime, **attributes: Any) -> None:
    """A span that is over, below the one that holds here."""
    if _tracer is not None:
        done = _tracer.start_span(name, start_time=_nanoseconds(start), attributes=_plain(attributes))
        done.end(_nanoseconds(end))


def traceparent() -> str:
    """The current span in W3C's words, for whoever goes on elsewhere; empty where there is none."""
    if _tracer is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def _context(parent: str) -> Any:
    if not parent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": parent})


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {f"chorus.{name}": value for name, value in attributes.items()}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)
