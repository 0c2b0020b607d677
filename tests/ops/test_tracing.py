"""Traces: one from HTTP through the queue to the engine where they are on, nothing where they are off."""

from __future__ import annotations

import os
import sys

import pytest
from django.db import transaction
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from accounts import tracing
from accounts.redis import client as redis
from synthesis import traces
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch
from tests import factories
from tests.ops import tools


@pytest.fixture
def spans():
    """What is collected, by name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider.get_tracer("test"))
    yield lambda: {span.name: span for span in exporter.get_finished_spans()}
    tracing.use(None)


def submit(client, alice):
    voice = factories.preset()
    answer = client.post(
        "/v1/syntheses",
        {"text": "Nobody may read this.", "voice": str(voice.id)},
        content_type="application/json",
        headers=alice.headers,
    )
    assert answer.status_code == 201
    return answer.json()["id"]


def test_one_trace_from_http_to_the_engine(alice, client, spans, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        identifier = submit(client, alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    with traces.continued(claimed), tracing.span("segment", index=0):
        pass
    found = spans()
    http = found["POST v1/syntheses"]
    for name in ("synthesis", "queue", "segment"):
        assert found[name].context.trace_id == http.context.trace_id, name
    assert found["synthesis"].parent.span_id == http.context.span_id
    assert found["queue"].parent.span_id == found["synthesis"].context.span_id
    assert found["segment"].parent.span_id == found["synthesis"].context.span_id
    assert found["synthesis"].attributes["chorus.synthesis"] == identifier
    assert found["queue"].start_time == int(claimed.created_at.timestamp() * 1e9)


def test_a_caller_s_trace_goes_on(db, client, spans):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client.get("/healthz", headers={"traceparent": parent})
    assert f"{spans()['GET healthz'].context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"


def test_spans_hold_nothing_that_a_user_wrote(alice, client, spans, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        submit(client, alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    with traces.continued(claimed):
        pass
    assert "Nobody" not in "".join(span.to_json() for span in spans().values())


def test_without_redis_the_worker_begins_anew(alice, spans, django_capture_on_commit_callbacks):
    request = factories.submit(alice)
    redis().delete(f"trace:{request.id}")
    with traces.continued(request):
        pass
    assert spans()["synthesis"].parent is None


def test_off_means_off(alice):
    request = factories.submit(alice)
    with transaction.atomic():
        traces.carry(request)
    with traces.continued(request), tracing.span("x") as span:
        assert span is None
    assert tracing.traceparent() == ""
    assert not redis().exists(f"trace:{request.id}")
    assert SynthesisRequest.objects.count() == 1


_RECEIVER = """
import http.server, sys, threading
import django
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            import gzip
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                print(self.path, *[span.name for span in scope.spans], flush=True)
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass

server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
import os
os.environ["CHORUS_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
django.setup()
from accounts import tracing
from opentelemetry import trace
with tracing.span("sent"):
    pass
tracing._tracer.span_processor.force_flush()
"""


def test_spans_go_to_the_collector():
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": os.pathsep.join([str(tools.ROOT), str(tools.ROOT / "platform")]),
    }
    done = tools.run(sys.executable, "-c", _RECEIVER, env=environment)
    assert done.stdout.splitlines()[0] == "/v1/traces sent"
