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
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.services import ledger, limits
from synthesis import doorbell, events
from synthesis.models import Attempt, Output, Segment, Status, SynthesisRequest
from synthesis.services import callbacks, deliveries, pools, turns

#: After so many attempts that ended in an error the request fails.
MAX_FAILURES = 3
#: After so many attempts whose worker was lost the request is taken to be what kills them.
MAX_LOST = 10
#: Seconds before the second, third … attempt after an error.
BACK_OFF = (1, 5, 15)
#: A storage or database outage is waited for so many times, up to BACK_OFF_OUTAGE seconds each.
MAX_OUTAGES = 20
BACK_OFF_OUTAGE = 30


def claim(*, worker: str, engine: str, limit: int = 1, pool: str = "") -> list[SynthesisRequest]:
    """Take up to `limit` requests that should be spoken next; each is running for `worker` from here on.

    Only of teams in `pool`; of those in none when it is empty.
    """
    ids = turns.take(worker=worker, engine=engine, pool=pool, limit=limit)
    if not ids:
        return []
    requests = list(
        SynthesisRequest.objects.select_related("voice", "voice_version").filter(id__in=ids).order_by("id")
    )
    for request in requests:
        callbacks.started(request)
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
        callbacks.progressed(request)
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
            expires_at=now + timedelta(days=limits.retention_days(request.team)),
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


def abandon(*, worker: str, stopped: bool = False) -> int:
    """Return what `worker` was speaking to the queue, because its process is gone; how many requests.

    `stopped`: somebody wanted it to end, which says nothing against the request.
    """
    held = SynthesisRequest.objects.filter(status=Status.RUNNING, worker=worker)
    return _give_up(held, stopped=stopped)


def expire() -> int:
    """Return to the queue what nobody renewed in time (worker and machine gone together); how many."""
    return _give_up(SynthesisRequest.objects.filter(status=Status.RUNNING, lease_until__lt=timezone.now()))


def _give_up(held, *, stopped: bool = False) -> int:  # type: ignore[no-untyped-def]
    count = 0
    with transaction.atomic():
        for row in held.select_for_update(skip_locked=True).order_by("id"):
            lost = Attempt.objects.filter(request=row, outcome=Attempt.Outcome.LOST).count() + 1
            row.lease_until = None
            if stopped or lost < MAX_LOST:
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
            if stopped:
                _end_attempt(row.id, row.attempt, Attempt.Outcome.RETURNED, "worker_stopped")
            else:
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


def refuse(voice_id: UUID, *, code: str, message: str) -> int:
    """Fail whatever of a voice has not ended, without charge, in the caller's transaction; how many.

    No retry mends the reason. A worker that speaks one of them notices at its next renewal.
    """
    unfinished = SynthesisRequest.objects.select_for_update().filter(
        voice=voice_id, status__in=[Status.QUEUED, Status.RUNNING]
    )
    count = 0
    for row in unfinished.order_by("id"):
        running = row.status == Status.RUNNING
        row.status, row.completed_at, row.lease_until = Status.FAILED, timezone.now(), None
        row.error_code, row.error_message = code, message
        row.save(update_fields=["status", "completed_at", "lease_until", "error_code", "error_message"])
        ledger.release(row.id)
        if running:
            _end_attempt(row.id, row.attempt, Attempt.Outcome.CANCELED, code)
        deliveries.ended(row)
        events.announce(row, queue_moved=True)
        count += 1
    return count


def _end_attempt(
    request_id: UUID, number: int, outcome: Attempt.Outcome, code: str = "", detail: str = ""
) -> None:
    Attempt.objects.filter(request_id=request_id, number=number).update(
        outcome=outcome, ended_at=timezone.now(), error_code=code, detail=detail[:4000]
    )
