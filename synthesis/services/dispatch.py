"""From the queue to the end of a request. Postgres is the truth; every write of a worker is fenced.

A worker holds a request by a lease and an attempt number. Each of its writes names both `status = running` and the
attempt, so that a worker that was given up writes nothing, and each end closes the reservation in the same
transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.services import ledger
from synthesis import doorbell, events
from synthesis.models import Attempt, Output, Segment, Status, SynthesisRequest
from synthesis.services import deliveries, pools

#: After so many attempts that ended in an error the request fails.
MAX_FAILURES = 3
#: After so many attempts whose worker was lost the request is taken to be what kills them.
MAX_LOST = 10
#: Seconds before the second, third … attempt after an error.
BACK_OFF = (1, 5, 15)
#: A storage or database outage is waited for so many times, up to BACK_OFF_OUTAGE seconds each.
MAX_OUTAGES = 20
BACK_OFF_OUTAGE = 30
#: `pg_advisory_xact_lock` of the claim.
_CLAIM_LOCK = 0x43484F52

# Fair share: the team with the least at work for its weight comes next, then its own priority and age. Limits of team
# and person hold for what runs at once. It walks the teams that have something queued, not all teams.
_CLAIM = """
WITH RECURSIVE waiting AS (  -- a loose index scan: one step per team with queued rows
    (SELECT team_id FROM synthesis_synthesisrequest WHERE status = 'queued' ORDER BY team_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.team_id FROM synthesis_synthesisrequest r
            WHERE r.status = 'queued' AND r.team_id > w.team_id ORDER BY r.team_id LIMIT 1)
    FROM waiting w WHERE w.team_id IS NOT NULL
), team AS (
    SELECT t.id, p.weight, coalesce(q.concurrent_requests, p.concurrent_requests) AS allowed
    FROM waiting w
    JOIN accounts_team t ON t.id = w.team_id
    JOIN accounts_plan p ON p.id = t.plan_id
    LEFT JOIN accounts_teamquota q ON q.team_id = t.id
    LEFT JOIN synthesis_teampool tp ON tp.team_id = t.id
    WHERE t.suspended_at IS NULL AND coalesce(tp.pool_id, '') = %(pool)s
      -- A worker that is to pause, stop or start anew is given nothing, whether it has heard of it or not.
      AND NOT EXISTS (SELECT 1 FROM synthesis_worker sw
                      WHERE sw.name = %(worker)s AND sw."order" IN ('pause', 'stop', 'restart'))
), busy AS (
    SELECT team_id, user_id, count(*) AS n FROM synthesis_synthesisrequest
    WHERE status = 'running' GROUP BY team_id, user_id
), team_busy AS (
    SELECT team_id, sum(n)::int AS n FROM busy GROUP BY team_id
), member AS (  -- people with a limit of their own, and what it still allows
    SELECT m.team_id, m.user_id, q.concurrent_requests - coalesce(b.n, 0) AS free
    FROM accounts_memberquota q
    JOIN accounts_membership m ON m.id = q.membership_id
    LEFT JOIN busy b ON b.team_id = m.team_id AND b.user_id = m.user_id
    WHERE q.concurrent_requests IS NOT NULL
), candidate AS (
    SELECT r.id, r.created_at, (coalesce(b.n, 0) + r.nth) / t.weight AS share
    FROM team t
    LEFT JOIN team_busy b ON b.team_id = t.id
    CROSS JOIN LATERAL (
        SELECT q.id, q.user_id, q.created_at,
               row_number() OVER (ORDER BY q.priority DESC, q.created_at) AS nth,
               row_number() OVER (PARTITION BY q.user_id ORDER BY q.priority DESC, q.created_at) AS nth_of_user
        FROM (SELECT s.id, s.user_id, s.priority, s.created_at FROM synthesis_synthesisrequest s
              WHERE s.team_id = t.id AND s.status = 'queued' AND s.engine = %(engine)s
                AND s.not_before <= statement_timestamp()
                AND NOT EXISTS (SELECT 1 FROM member m
                                WHERE m.team_id = s.team_id AND m.user_id = s.user_id AND m.free <= 0)
              ORDER BY s.priority DESC, s.created_at LIMIT %(n)s) q) r
    WHERE coalesce(b.n, 0) + r.nth <= t.allowed
      AND NOT EXISTS (SELECT 1 FROM member m
                      WHERE m.team_id = t.id AND m.user_id = r.user_id AND r.nth_of_user > m.free)
    ORDER BY share, r.created_at LIMIT %(n)s
)
UPDATE synthesis_synthesisrequest SET
    status = 'running', attempt = attempt + 1, worker = %(worker)s,
    lease_until = statement_timestamp() + make_interval(secs => %(lease)s),
    started_at = coalesce(started_at, statement_timestamp())
WHERE id IN (SELECT id FROM candidate) AND status = 'queued'
RETURNING id
"""


def claim(*, worker: str, engine: str, limit: int = 1, pool: str = "") -> list[SynthesisRequest]:
    """Take up to `limit` requests that should be spoken next; each is running for `worker` from here on.

    Only of teams in `pool`; of those in none when it is empty.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        # In a statement of its own: the claim's snapshot must not be older than the lock.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_CLAIM_LOCK])
        cursor.execute(
            _CLAIM,
            {
                "worker": worker,
                "engine": engine,
                "pool": pool,
                "n": limit,
                "lease": settings.CHORUS_LEASE_SECONDS,
            },
        )
        ids = [row[0] for row in cursor.fetchall()]
        requests = list(
            SynthesisRequest.objects.select_related("voice", "voice_version")
            .filter(id__in=ids)
            .order_by("id")
        )
        Attempt.objects.bulk_create(
            Attempt(request=request, number=request.attempt, worker=worker) for request in requests
        )
        for request in requests:
            events.announce(request, queue_moved=True)
    return requests


def _held(request: SynthesisRequest):  # type: ignore[no-untyped-def]
    """The row, as long as this attempt holds it: the fence of every write."""
    return SynthesisRequest.objects.filter(id=request.id, status=Status.RUNNING, attempt=request.attempt)


def renew(request: SynthesisRequest) -> bool:
    """Extend the lease; False when the request was canceled or given to somebody else: stop then."""
    until = timezone.now() + timedelta(seconds=settings.CHORUS_LEASE_SECONDS)
    return bool(_held(request).update(lease_until=until))


def save_segment(
    request: SynthesisRequest, *, index: int, audio_key: str, seconds: float, engine_seconds: float
) -> bool:
    """Keep a segment's sound (already in storage); False when the request is no longer this attempt's."""
    with transaction.atomic():
        until = timezone.now() + timedelta(seconds=settings.CHORUS_LEASE_SECONDS)
        if not _held(request).update(lease_until=until, engine_seconds=F("engine_seconds") + engine_seconds):
            return False
        Segment.objects.filter(request_id=request.id, index=index).update(
            audio_key=audio_key, seconds=seconds, attempt=request.attempt
        )
        done = Segment.objects.filter(request_id=request.id).exclude(audio_key="").count()
        SynthesisRequest.objects.filter(id=request.id).update(segments_done=done)
        events.announce(request)
    return True


@dataclass(frozen=True, slots=True)
class Made:
    """A finished file that lies in storage. `seconds` of sound, `sample_rate` in Hz."""

    key: str
    content_type: str
    bytes: int
    sha256: str
    seconds: float
    sample_rate: int


def complete(request: SynthesisRequest, made: Made) -> bool:
    """End a request well: output, settlement and end in one transaction. False when it was no longer ours."""
    with transaction.atomic():
        now = timezone.now()
        if not _held(request).update(
            status=Status.SUCCEEDED,
            completed_at=now,
            lease_until=None,
            segments_done=F("segments_total"),
            audio_seconds=made.seconds,
            error_code="",
            error_message="",
        ):
            return False
        output = Output.objects.create(
            request_id=request.id,
            key=made.key,
            content_type=made.content_type,
            bytes=made.bytes,
            sha256=made.sha256,
            seconds=made.seconds,
            sample_rate=made.sample_rate,
            attempt=request.attempt,
            expires_at=now + timedelta(days=request.team.plan.retention_days),
        )
        ledger.settle(request.id)
        _end_attempt(request.id, request.attempt, Attempt.Outcome.SUCCEEDED)
        request.status = Status.SUCCEEDED
        deliveries.ended(request, output)
        events.announce(request)
    return True


def fail(
    request: SynthesisRequest,
    *,
    code: str,
    message: str,
    detail: str = "",
    retryable: bool,
    outage: bool = False,
) -> bool:
    """End an attempt badly: back to the queue with a pause while it is `retryable`, else the end of the request.

    `message` is shown to the user; `detail` is for operators. An `outage` (storage, database) is no fault of the
    request and is waited for longer. False when the request was no longer this attempt's.
    """
    with transaction.atomic():
        if not _held(request).select_for_update().exists():
            return False
        row = SynthesisRequest.objects.get(id=request.id)
        if outage:
            retry = row.attempt < MAX_OUTAGES
            pause = min(BACK_OFF_OUTAGE, 2 ** min(row.attempt, 5))
        else:
            row.failures += 1
            retry = retryable and row.failures < MAX_FAILURES
            pause = BACK_OFF[min(row.failures, len(BACK_OFF)) - 1]
        row.error_code, row.error_message = code, message
        row.lease_until = None
        if retry:
            row.status = Status.QUEUED
            row.not_before = timezone.now() + timedelta(seconds=pause)
        else:
            row.status = Status.FAILED
            row.completed_at = timezone.now()
            ledger.release(row.id)
        row.save(
            update_fields=[
                "failures",
                "error_code",
                "error_message",
                "lease_until",
                "status",
                "not_before",
                "completed_at",
            ]
        )
        _end_attempt(row.id, row.attempt, Attempt.Outcome.FAILED, code, detail)
        if row.is_final:
            deliveries.ended(row)
        events.announce(row, queue_moved=True)
    return True


def abandon(*, worker: str) -> int:
    """Return what `worker` was speaking to the queue, because its process is gone; how many requests."""
    held = SynthesisRequest.objects.filter(status=Status.RUNNING, worker=worker)
    return _give_up(held)


def expire() -> int:
    """Return to the queue what nobody renewed in time (worker and machine gone together); how many."""
    return _give_up(SynthesisRequest.objects.filter(status=Status.RUNNING, lease_until__lt=timezone.now()))


def _give_up(held) -> int:  # type: ignore[no-untyped-def]
    count = 0
    with transaction.atomic():
        for row in held.select_for_update(skip_locked=True).order_by("id"):
            lost = Attempt.objects.filter(request=row, outcome=Attempt.Outcome.LOST).count() + 1
            row.lease_until = None
            if lost < MAX_LOST:
                row.status = Status.QUEUED
                row.not_before = timezone.now()
            else:
                row.status = Status.FAILED
                row.completed_at = timezone.now()
                row.error_code = "worker_lost"
                row.error_message = gettext_noop(
                    "The workers that spoke this text stopped unexpectedly, again and again. Try a shorter text."
                )
                ledger.release(row.id)
            row.save(
                update_fields=[
                    "lease_until",
                    "status",
                    "not_before",
                    "completed_at",
                    "error_code",
                    "error_message",
                ]
            )
            _end_attempt(row.id, row.attempt, Attempt.Outcome.LOST, "worker_lost")
            if row.is_final:
                deliveries.ended(row)
            events.announce(row, queue_moved=True)
            doorbell.ring(pools.of_team(row.team_id))
            count += 1
    return count


def cancel(request_id: UUID) -> bool:
    """End a request that has not ended, at once; a worker that speaks it notices at its next renewal.

    Nothing is charged. False when it had ended before.
    """
    with transaction.atomic():
        row = SynthesisRequest.objects.select_for_update().get(id=request_id)
        if row.is_final:
            return False
        running = row.status == Status.RUNNING
        row.status = Status.CANCELED
        row.completed_at = timezone.now()
        row.lease_until = None
        row.save(update_fields=["status", "completed_at", "lease_until"])
        ledger.release(row.id)
        if running:
            _end_attempt(row.id, row.attempt, Attempt.Outcome.CANCELED)
        deliveries.ended(row)
        events.announce(row, queue_moved=True)
    return True


def _end_attempt(
    request_id: UUID, number: int, outcome: Attempt.Outcome, code: str = "", detail: str = ""
) -> None:
    Attempt.objects.filter(request_id=request_id, number=number).update(
        outcome=outcome, ended_at=timezone.now(), error_code=code, detail=detail[:4000]
    )
