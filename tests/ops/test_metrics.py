"""What Prometheus gets, and who else gets it."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.redis import client as redis
from config import measures
from synthesis import tally
from synthesis.models import LedgerCheck, Pool, SynthesisRequest, TeamPool, Worker
from synthesis.services import dispatch, housekeeping, workers
from tests import factories

MADE: dict[str, Any] = {
    "key": "k",
    "content_type": "audio/mpeg",
    "bytes": 1,
    "sha256": "",
    "sample_rate": 24_000,
}


def scrape(client, **headers):
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 200
    return {family.name: family for family in text_string_to_metric_families(answer.content.decode())}


def value(families, name, **labels):
    """The one sample with these labels."""
    found = [
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def finish(request, *, seconds=2.0, busy=1.0, ago=10.0):
    """Let it have succeeded a while ago, so that the next scrape counts it."""
    made = dispatch.Made(seconds=seconds, **MADE)
    assert dispatch.complete(request, made)
    ended = timezone.now() - timedelta(seconds=ago)
    SynthesisRequest.objects.filter(id=request.id).update(completed_at=ended, engine_seconds=busy)


@pytest.fixture
def counted():
    """Counting has begun a minute ago."""
    from accounts.redis import client

    client().set("metrics:until", (timezone.now() - timedelta(minutes=1)).timestamp())


def test_the_queue_is_told_by_plan(alice, client):
    factories.submit(alice, "Twelve chars")
    factories.submit(alice, "Twelve chars")
    dispatch.claim(worker="w", engine="hibari")
    families = scrape(client)
    assert value(families, "chorus_queue_requests", plan="Test", engine="hibari") == 1
    assert value(families, "chorus_queue_characters", plan="Test") == 12
    assert value(families, "chorus_running_requests", plan="Test") == 1
    assert value(families, "chorus_queue_oldest_seconds", plan="Test") >= 0


def test_the_queue_is_told_by_pool(alice, client):
    """Whose workers may take it: a pool may wait while others have nothing to do."""
    charlie = factories.owner("Charlie")
    TeamPool.objects.create(team=charlie.actor.team, pool=Pool.objects.create(name="gold"))
    factories.submit(alice, "Twelve chars")
    factories.submit(charlie, "Twelve chars")
    factories.submit(charlie, "Twelve chars")
    dispatch.claim(worker="w", engine="hibari", pool="gold")
    workers.beat(name="g", engine="hibari", host="h", pid=1, state="busy", pool="gold")
    families = scrape(client)
    for pool in ("", "gold"):
        assert value(families, "chorus_queue_requests", pool=pool) == 1
        assert value(families, "chorus_queue_characters", pool=pool) == 12
    assert value(families, "chorus_running_requests", pool="gold") == 1
    assert value(families, "chorus_workers", pool="gold", state="busy") == 1
    assert value(families, "chorus_workers", pool="", state="busy") == 0


def test_an_empty_queue_is_zero_and_not_missing(db, client):
    assert value(scrape(client), "chorus_queue_requests") == 0


def test_what_ended_is_counted_once(alice, client, counted):
    request = factories.submit(alice, "Twelve chars")
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    finish(claimed, seconds=4.0, busy=1.0)
    for _scrape in range(2):
        families = scrape(client)
        assert value(families, "chorus_requests_total", status="succeeded", plan="Test") == 1
    assert value(families, "chorus_characters_total", plan="Test") == request.characters
    assert value(families, "chorus_audio_seconds_total", engine="hibari") == 4
    assert value(families, "chorus_engine_seconds_total", engine="hibari") == 1
    assert value(families, "chorus_attempts_total", outcome="succeeded") == 1
    assert value(families, "chorus_real_time_factor_bucket", le="0.2") == 0
    assert value(families, "chorus_real_time_factor_bucket", le="0.3") == 1
    assert value(families, "chorus_queue_wait_seconds_count", plan="Test") == 1


def test_failures_are_counted_by_code(alice, client, counted):
    factories.submit(alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    dispatch.fail(claimed, code="engine_error", message="x", retryable=False)
    ended = timezone.now() - timedelta(seconds=10)
    SynthesisRequest.objects.update(completed_at=ended)
    families = scrape(client)
    assert value(families, "chorus_requests_total", status="failed", code="engine_error") == 1


def test_a_flushed_redis_starts_at_zero(alice, client):
    factories.submit(alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    finish(claimed)
    assert "chorus_requests_total" not in {
        s.name for family in scrape(client).values() for s in family.samples
    }


def test_counting_begins_with_the_service_and_not_with_the_first_scrape(db):
    housekeeping.note_the_round()
    began = redis().get(tally.MARK)
    assert float(began) == pytest.approx(timezone.now().timestamp(), abs=5)
    housekeeping.note_the_round()
    assert redis().get(tally.MARK) == began


def test_claims_are_timed(db, client):
    tally.note_claim(0.004)
    tally.note_claim(30.0)
    families = scrape(client)
    assert value(families, "chorus_claim_seconds_bucket", le="0.0025") == 0
    assert value(families, "chorus_claim_seconds_bucket", le="0.005") == 1
    assert value(families, "chorus_claim_seconds_bucket", le="+Inf") == 2
    assert value(families, "chorus_claim_seconds_sum") == pytest.approx(30.004)


def test_workers_tell_memory_and_gpu(db, client):
    report = {"engine": "hibari", "host": "h", "pid": 1, "state": "idle", "rss_bytes": 5 << 20, "gpu": "0"}
    workers.beat(name="h:0", gpu_percent=80, gpu_memory_bytes=1 << 30, requests_done=7, **report)
    workers.beat(name="h:1", **report)
    Worker.objects.filter(name="h:1").update(last_seen=timezone.now() - timedelta(minutes=1))
    families = scrape(client)
    assert value(families, "chorus_workers", state="idle") == 1
    assert value(families, "chorus_workers", state="silent") == 1
    assert value(families, "chorus_worker_memory_bytes", worker="h:0") == 5 << 20
    assert value(families, "chorus_worker_requests_total", worker="h:0") == 7
    assert value(families, "chorus_worker_gpu_utilisation_ratio", worker="h:0", gpu="0") == 0.8
    assert value(families, "chorus_worker_gpu_memory_bytes", worker="h:0") == 1 << 30


def test_dependencies_are_told_by_name(db, client):
    families = scrape(client)
    for part in ("database", "migrations", "redis", "storage"):
        assert value(families, "chorus_dependency_up", part=part) == 1
    assert value(families, "chorus_dependency_up", part="workers") == 0


def test_a_dead_database_leaves_the_rest(db, client, monkeypatch):
    monkeypatch.setattr("config.health.parts", lambda: {"database": False, "redis": True})
    families = scrape(client)
    assert value(families, "chorus_dependency_up", part="database") == 0
    assert "chorus_queue_requests" not in families
    assert "chorus_claim_seconds" in families


def test_answers_are_counted_by_route_and_code(alice, client):
    client.get("/v1/voices/no-such-voice", headers=alice.headers)
    families = scrape(client)
    labels = {"method": "GET", "route": "v1/voices/<str:voice_id>", "status": "404"}
    assert value(families, "chorus_http_requests_total", code="voice_not_found", **labels) >= 1
    assert value(families, "chorus_http_request_seconds_count", method="GET", route=labels["route"]) >= 1


def test_addresses_that_match_nothing_share_one_label(db, client):
    client.get("/one-of-many/")
    samples = [
        s for f in scrape(client).values() for s in f.samples if s.name == "chorus_http_requests_total"
    ]
    # Other tests of this process asked for other addresses that are not there, with other codes.
    assert sum(s.value for s in samples if (s.labels["route"], s.labels["method"]) == ("(none)", "GET")) >= 1
    assert not any("one-of-many" in s.labels["route"] for s in samples)


def test_the_last_check_of_the_ledger(db, client):
    assert "chorus_ledger_differences" not in {s.name for f in scrape(client).values() for s in f.samples}
    now = timezone.now()
    LedgerCheck.objects.create(trigger="sweep", differences=2, finished_at=now - timedelta(days=1))
    LedgerCheck.objects.create(trigger="sweep", differences=0, finished_at=now)
    families = scrape(client)
    assert value(families, "chorus_ledger_differences") == 0
    assert value(families, "chorus_ledger_checked_timestamp_seconds") == pytest.approx(now.timestamp())


class TestAccess:
    """Loopback and named networks, or the token; nobody else learns that there is something."""

    def test_loopback_may(self, db, client):
        scrape(client)

    def test_a_stranger_may_not(self, db, client):
        assert client.get("/metrics", REMOTE_ADDR="203.0.113.7").status_code == 404

    def test_a_named_network_may(self, db, client, settings):
        settings.CHORUS_METRICS_NETWORKS = [ip_network("10.0.0.0/8")]
        scrape(client, REMOTE_ADDR="10.1.2.3")

    def test_a_stranger_behind_the_front_may_not(self, db, client):
        # The front's Unix socket has no address.
        headers = {"x-forwarded-for": "203.0.113.7"}
        assert client.get("/metrics", headers=headers, REMOTE_ADDR="").status_code == 404
        scrape(client, headers={"x-forwarded-for": "127.0.0.1"}, REMOTE_ADDR="")

    def test_an_unknown_proxy_on_this_machine_opens_nothing(self, db, client):
        headers = {"x-forwarded-for": "203.0.113.7"}
        assert client.get("/metrics", headers=headers).status_code == 404

    def test_with_a_token_only_the_token_counts(self, db, client, settings):
        settings.CHORUS_METRICS_TOKEN = "s3cret"
        assert client.get("/metrics").status_code == 404
        assert client.get("/metrics", headers={"authorization": "Bearer wrong"}).status_code == 404
        scrape(client, headers={"authorization": "Bearer s3cret"}, REMOTE_ADDR="203.0.113.7")

    def test_other_methods_are_refused(self, db, client):
        assert client.post("/metrics").status_code == 405


def test_two_scrapes_at_once_count_once(alice, counted):
    from accounts.redis import client

    factories.submit(alice)
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    finish(claimed)
    with client().lock("metrics:lock", timeout=5, blocking=False):
        measures.advance()
        assert not tally.of(tally.read(), "requests")
    measures.advance()
    assert sum(tally.of(tally.read(), "requests").values()) == 1
