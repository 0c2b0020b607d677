"""What the sweep does: everything that somebody should have done who was killed before they could."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.services import alerts, grants, idempotency, quotas
from synthesis import doorbell, storage, tally
from synthesis.models import Output, Status, SynthesisRequest, Voice, VoiceConsent
from synthesis.services import deliveries, dispatch, pools, rollup, turns, verification, workers

logger = logging.getLogger(__name__)

#: Outputs deleted in one round, so that a round stays short.
_BATCH = 200
#: Objects of a request that ended badly are kept so long, in case its last attempt is still writing.
_GRACE = timedelta(minutes=10)


def return_expired_leases() -> int:
    """Requests whose worker went silent go back to the queue."""
    return dispatch.expire()


def ring_for_waiting() -> int:
    """Doorbells that were lost (a flushed Redis, a crash between commit and ring) are rung again."""
    waiting = SynthesisRequest.objects.filter(
        status=Status.QUEUED, not_before__lte=timezone.now(), engine=settings.CHORUS_ENGINE
    )
    rung = 0
    for pool in pools.names():
        count = pools.within(waiting, pool)[: doorbell.ENOUGH].count()
        rung += doorbell.ring_missing(count, pool) if count else 0
    return rung


def delete_expired_outputs() -> int:
    """Sound that is older than its team keeps it; the request stays, for the record."""
    expired = Output.objects.select_related("request").filter(expires_at__lt=timezone.now())[:_BATCH]
    count = 0
    for output in expired:
        storage.delete_prefix(storage.request_prefix(output.request.team_id, output.request_id))
        # The objects first: killed in between, the row is found again.
        with transaction.atomic():
            output.request.segments.update(audio_key="")
            output.delete()
        count += 1
    return count


def delete_orphans() -> int:
    """Objects of requests that failed, were canceled or deleted, and of voices that were deleted or never finished."""
    ended = timezone.now() - _GRACE
    orphaned = SynthesisRequest.objects.filter(
        Q(status__in=[Status.FAILED, Status.CANCELED]) | Q(deleted_at__isnull=False),
        # Nothing is stored for a text before its first attempt.
        Q(attempt__gt=0) | Q(source_seconds__gt=0),
        completed_at__lt=ended,
        objects_deleted=False,
    )[:_BATCH]
    count = 0
    for request in orphaned:
        storage.delete_prefix(storage.request_prefix(request.team_id, request.id))
        with transaction.atomic():
            request.segments.update(audio_key="")
            SynthesisRequest.objects.filter(id=request.id).update(objects_deleted=True)
        count += 1
    for voice in Voice.objects.filter(deleted_at__lt=ended, objects_deleted=False)[:_BATCH]:
        if voice.team_id:
            storage.delete_prefix(storage.voice_prefix(voice.team_id, voice.id))
        Voice.objects.filter(id=voice.id).update(objects_deleted=True)
        count += 1
    for consent in VoiceConsent.objects.filter(deleted_at__lt=ended)[:_BATCH]:
        storage.delete_prefix(storage.consent_prefix(consent.team_id, consent.id))
        consent.delete()
        count += 1
    return count


def note_the_round() -> int:
    """For `/metrics`: an alert tells when the sweep no longer goes round, and counting has a beginning."""
    now = timezone.now().timestamp()
    tally.begin(now)
    tally.note("sweep", now)
    return 0


#: Each with the seconds between two runs.
TASKS: tuple[tuple[Callable[[], int], int], ...] = (
    (return_expired_leases, settings.CHORUS_SWEEP_SECONDS),
    (turns.tidy, settings.CHORUS_SWEEP_SECONDS),
    (ring_for_waiting, settings.CHORUS_SWEEP_SECONDS),
    (delete_expired_outputs, 60),
    (delete_orphans, 60),
    (note_the_round, 5),
    (quotas.apply_due, 10),
    (grants.tend, 10),
    (rollup.roll_up, 15),
    (rollup.mend, 3600),
    (alerts.look, 60),
    (alerts.send, 30),
    (verification.start_nightly, 300),
    (idempotency.forget_old, 3600),
    (deliveries.forget_old, 3600),
    (workers.forget_old, 3600),
)
