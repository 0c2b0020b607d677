"""`/metrics` for Prometheus: this installation's processes and the service as a whole.

The processes of one machine share PROMETHEUS_MULTIPROC_DIR, where each keeps its counters in files of its own, so that
whichever of them is asked answers for all. It must be a folder that is emptied when the service starts.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from accounts.api.authentication import client_address, is_proxy

# A series more for each one, which nothing here looks at and shared files do not have.
disable_created_metrics()  # type: ignore[no-untyped-call]

#: Seconds until the answer begins. Streams and held requests wait for a voice: up to a quarter of an hour.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 900.0)
_own = CollectorRegistry()
REQUESTS = Counter(
    "chorus_http_requests",
    "Answers by route, status and, for errors, their code.",
    ["method", "route", "status", "code"],
    registry=_own,
)
SECONDS = Histogram(
    "chorus_http_request_seconds",
    "From the first line of a request to the first of its answer.",
    ["method", "route"],
    buckets=_BUCKETS,
    registry=_own,
)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Everything, in Prometheus's text format or OpenMetrics. To others than Prometheus there is nothing here."""
    if not _allowed(request):
        raise Http404
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry()), content_type=content_type, headers={"Cache-Control": "no-store"})


class _Shared(Collector):
    """What the processes of this machine have written; without what libraries count for themselves."""

    def collect(self) -> Iterator[Metric]:
        """Our own families."""
        everything = MultiProcessCollector(None, settings.PROMETHEUS_MULTIPROC_DIR)  # type: ignore[no-untyped-call]
        families: Iterable[Metric] = everything.collect()  # type: ignore[no-untyped-call]
        yield from (family for family in families if family.name.startswith("chorus_"))


def registry() -> CollectorRegistry:
    """What a scrape collects."""
    from config.measures import ServiceCollector

    whole = CollectorRegistry()
    if settings.PROMETHEUS_MULTIPROC_DIR:
        whole.register(_Shared())
    else:
        whole.register(_own)
    whole.register(ServiceCollector())
    return whole


def _allowed(request: HttpRequest) -> bool:
    """By the token where one is set, else by address: loopback and CHORUS_METRICS_NETWORKS."""
    if settings.CHORUS_METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {settings.CHORUS_METRICS_TOKEN}".encode())
    peer = request.META.get("REMOTE_ADDR", "")
    if peer and not is_proxy(peer) and "X-Forwarded-For" in request.headers:
        # A proxy that we do not know: everybody in the world comes from its address.
        return False
    try:
        address = ipaddress.ip_address(client_address(request))
    except ValueError:
        return False
    return address.is_loopback or any(address in network for network in settings.CHORUS_METRICS_NETWORKS)
