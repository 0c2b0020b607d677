"""What `/metrics` says of the whole service, from the rows and from `synthesis.tally`: the same in every process.

Counters of ended requests are taken forward by whoever is asked: the rows that ended since the last time are added to
the tally, under a lock, so that a scrape costs no more than what happened since the one before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connection
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.exceptions import LockError, RedisError

from accounts.redis import client
from config import health
from synthesis import doorbell, tally
from synthesis.models import LedgerCheck, Worker
from synthesis.models.workers import ALIVE

logger = logging.getLogger(__name__)

#: A transaction may be committed so much later than the time that it writes as the request's end.
_SETTLED = timedelta(seconds=3)

_QUEUE = """
SELECT r.engine, coalesce(o.pool_id, ''), p.name, r.status, count(*), sum(r.characters),
       coalesce(extract(epoch FROM statement_timestamp() - min(r.created_at)), 0)
FROM synthesis_synthesisrequest r
JOIN accounts_team t ON t.id = r.team_id JOIN accounts_plan p ON p.id = t.plan_id
LEFT JOIN synthesis_teampool o ON o.team_id = r.team_id
WHERE r.status IN ('queued', 'running') GROUP BY 1, 2, 3, 4
"""
_ENDED = """
SELECT r.engine, p.name, r.status, CASE WHEN r.status = 'failed' THEN r.error_code ELSE '' END,
       r.characters, r.audio_seconds, r.engine_seconds,
       extract(epoch FROM r.started_at - r.created_at)
FROM synthesis_synthesisrequest r
JOIN accounts_team t ON t.id = r.team_id JOIN accounts_plan p ON p.id = t.plan_id
WHERE r.completed_at > %(since)s AND r.completed_at <= %(until)s
"""
_ATTEMPTS = """
SELECT r.engine, a.outcome, count(*)
FROM synthesis_synthesisrequest r JOIN synthesis_attempt a ON a.request_id = r.id
WHERE r.completed_at > %(since)s AND r.completed_at <= %(until)s AND a.outcome <> '' GROUP BY 1, 2
"""


class ServiceCollector(Collector):
    """Collects at each scrape; a part whose server does not answer is left out, and `chorus_dependency_up` says so."""

    def collect(self) -> Iterator[Metric]:
        """All families."""
        build = GaugeMetricFamily(
            "chorus_build_info", "1, with the version and the engine as labels.", labels=["version", "engine"]
        )
        build.add_metric([settings.CHORUS_VERSION, settings.CHORUS_ENGINE], 1)
        yield build
        up = GaugeMetricFamily(
            "chorus_dependency_up", "1 when a part that the service needs answers.", labels=["part"]
        )
        parts = health.parts()
        for name, state in parts.items():
            up.add_metric([name], state)
        yield up
        if parts["database"]:
            try:
                yield from _queue()
                yield from _workers()
                yield from _ledger()
            except DatabaseFailure:
                logger.warning("The database does not answer: metrics are incomplete")
        if parts["redis"]:
            try:
                if parts["database"]:
                    advance()
                yield from _tallied(tally.read())
                yield _doorbells()
            except (RedisError, DatabaseFailure) as error:
                logger.warning("Metrics are incomplete: %s", type(error).__name__)


def advance() -> None:
    """Add what ended since the last time to the tally. Somebody else may be at it: then nothing."""
    redis = client()
    try:
        with redis.lock("metrics:lock", timeout=30, blocking=False):
            mark = redis.get(tally.MARK)
            until = timezone.now() - _SETTLED
            since = datetime.fromtimestamp(float(mark), UTC) if mark else until
            if until > since or not mark:
                _add(since, until)
    except LockError:
        return


def _add(since: datetime, until: datetime) -> None:
    with client().pipeline() as pipeline, connection.cursor() as cursor:  # one MULTI: all of it or nothing
        cursor.execute(_ENDED, {"since": since, "until": until})
        for engine, plan, status, code, characters, audio, busy, waited in cursor:
            tally.add(pipeline, tally.field("requests", engine, plan, status, code), 1)
            if waited is not None:
                waits = [max(0.0, float(waited))]
                tally.add_observed(pipeline, tally.field("wait", plan), tally.WAIT_BUCKETS, waits)
            tally.add(pipeline, tally.field("engine_seconds", engine), busy)
            if status == "succeeded":
                tally.add(pipeline, tally.field("characters", engine, plan), characters)
                tally.add(pipeline, tally.field("audio_seconds", engine), audio)
            if status == "succeeded" and audio > 0:
                tally.add_observed(
                    pipeline, tally.field("factor", engine), tally.FACTOR_BUCKETS, [busy / audio]
                )
        cursor.execute(_ATTEMPTS, {"since": since, "until": until})
        for engine, outcome, count in cursor:
            tally.add(pipeline, tally.field("attempts", engine, outcome), count)
        pipeline.set(tally.MARK, until.timestamp())
        pipeline.execute()


def _queue() -> Iterator[Metric]:
    # The pool is the one whose workers may take them, empty for those that all teams without one share.
    labels = ("engine", "pool", "plan")
    requests = _gauge("chorus_queue_requests", "Requests that wait.", *labels)
    characters = _gauge("chorus_queue_characters", "Characters of the requests that wait.", *labels)
    oldest = _gauge("chorus_queue_oldest_seconds", "Age of the request that has waited longest.", *labels)
    running = _gauge("chorus_running_requests", "Requests that are being spoken.", *labels)
    # A series that vanishes with the last waiting request could not be told from a broken scrape.
    waits = False
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE)
        for engine, pool, plan, status, count, total, age in cursor.fetchall():
            where = [engine, pool, plan]
            if status == "queued":
                waits = True
                requests.add_metric(where, count)
                characters.add_metric(where, total)
                oldest.add_metric(where, float(age))
            else:
                running.add_metric(where, count)
    if not waits:
        for family in (requests, characters, oldest):
            family.add_metric([settings.CHORUS_ENGINE, "", ""], 0)
    yield from (requests, characters, oldest, running)


def _workers() -> Iterator[Metric]:
    count = _gauge(
        "chorus_workers", "Workers by state; `silent` ones have stopped reporting.", "engine", "pool", "state"
    )
    memory = _gauge("chorus_worker_memory_bytes", "Resident memory of a worker's engine process.", "worker")
    done = CounterMetricFamily(
        "chorus_worker_requests", "Requests that a worker has taken since it started.", labels=["worker"]
    )
    load = _gauge(
        "chorus_worker_gpu_utilisation_ratio",
        "Share of time that the worker's GPU was busy.",
        "worker",
        "gpu",
    )
    taken = _gauge("chorus_worker_gpu_memory_bytes", "Memory in use on the worker's GPU.", "worker", "gpu")
    states: dict[tuple[str, str, str], int] = {}
    moment = timezone.now()
    for worker in Worker.objects.exclude(state=Worker.State.GONE):
        alive = worker.last_seen > moment - ALIVE
        key = (worker.engine, worker.pool, worker.state if alive else "silent")
        states[key] = states.get(key, 0) + 1
        if not alive:
            continue
        memory.add_metric([worker.name], worker.rss_bytes)
        done.add_metric([worker.name], worker.requests_done)
        if worker.gpu_percent is not None:
            load.add_metric([worker.name, worker.gpu], worker.gpu_percent / 100)
        if worker.gpu_memory_bytes is not None:
            taken.add_metric([worker.name, worker.gpu], worker.gpu_memory_bytes)
    for state in ("idle", "busy", "loading", "silent"):
        states.setdefault((settings.CHORUS_ENGINE, "", state), 0)
    for labels, number in states.items():
        count.add_metric(labels, number)
    yield from (count, memory, done, load, taken)


def _ledger() -> Iterator[Metric]:
    differences = _gauge(
        "chorus_ledger_differences",
        "What did not add up at the last check of ledger, counters and requests. Always 0.",
    )
    checked = _gauge("chorus_ledger_checked_timestamp_seconds", "When the ledger was last checked.")
    last = LedgerCheck.objects.order_by("-finished_at").first()
    if last is not None:
        differences.add_metric([], last.differences)
        checked.add_metric([], last.finished_at.timestamp())
    yield from (differences, checked)


def _doorbells() -> Metric:
    bells = _gauge("chorus_doorbells", "Doorbells in the RQ queue that no worker has answered yet.")
    bells.add_metric([], doorbell.queue().count)
    return bells


_COUNTERS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "requests",
        "chorus_requests",
        "Requests that ended. `code` is empty unless they failed.",
        ("engine", "plan", "status", "code"),
    ),
    ("characters", "chorus_characters", "Characters of requests that succeeded.", ("engine", "plan")),
    ("audio_seconds", "chorus_audio_seconds", "Seconds of sound made.", ("engine",)),
    ("engine_seconds", "chorus_engine_seconds", "Seconds that engines were busy.", ("engine",)),
    ("attempts", "chorus_attempts", "Attempts of ended requests, by how each ended.", ("engine", "outcome")),
)
_HISTOGRAMS: tuple[tuple[str, str, str, tuple[str, ...], tuple[float, ...]], ...] = (
    (
        "wait",
        "chorus_queue_wait_seconds",
        "From submission to the first claim.",
        ("plan",),
        tally.WAIT_BUCKETS,
    ),
    (
        "factor",
        "chorus_real_time_factor",
        "Engine seconds for a second of sound.",
        ("engine",),
        tally.FACTOR_BUCKETS,
    ),
    ("claim", "chorus_claim_seconds", "What taking a request from the queue takes.", (), tally.CLAIM_BUCKETS),
)


def _tallied(fields: dict[str, float]) -> Iterator[Metric]:
    for name, public, words, labels in _COUNTERS:
        counter = CounterMetricFamily(public, words, labels=labels)
        for values, amount in tally.of(fields, name).items():
            counter.add_metric(values, amount)
        yield counter
    for name, public, words, labels, bounds in _HISTOGRAMS:
        family = HistogramMetricFamily(public, words, labels=labels)
        for values, seen in tally.histograms(fields, name, bounds).items():
            buckets = [("+Inf" if bound == float("inf") else str(bound), n) for bound, n in seen.cumulative]
            family.add_metric(values, buckets, seen.sum)
        yield family
    swept = _gauge("chorus_sweep_last_run_timestamp_seconds", "When the sweep last went round.")
    if "sweep" in fields:
        swept.add_metric([], fields["sweep"])
    yield swept


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, labels=labels)
