"""A claim among a million queued requests of ten thousand teams, beside one among a thousand of ten."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from benchmarks import rows, service
from benchmarks.load import percentile
from benchmarks.results import Aim, Line

if TYPE_CHECKING:
    from uuid import UUID

    from tests.live.stack import Stack

#: Requests that are being spoken meanwhile: as many workers.
AT_WORK = 64
P99_MS = 15


def run(quick: bool) -> list[Line]:
    """See the module."""
    few, many, teams, claims = (1_000, 20_000, 200, 200) if quick else (1_000, 1_000_000, 10_000, 2_000)
    with service.running("hibari", workers=0) as running:
        service.django(running)
        _fill(running, few, 10)
        small = _claims(min(claims, few - AT_WORK - 100))
        _fill(running, many, teams)
        large = _claims(claims)
    queue = f"{many:,} queued of {teams:,} teams"
    beside = f"{few:,} of 10 teams"
    return [
        Line(f"p50, {queue}", percentile(large, 50), "ms", percentile(small, 50), beside),
        Line(
            f"p99, {queue}",
            percentile(large, 99),
            "ms",
            percentile(small, 99),
            beside,
            Aim("value", most=P99_MS),
            note=f"{claims:,} claims, each with its attempt written and announced; {AT_WORK} requests at work",
        ),
    ]


def _fill(running: Stack, count: int, teams: int) -> None:
    with service.database(running) as connection:
        ids = rows.teams(connection, teams)
        with rows.without_notes(connection, teams=ids, engine="hibari"):
            rows.requests(connection, count, teams=ids, engine="hibari", status="queued")
    service.tidy_up(running)


def _claims(count: int) -> list[float]:
    """Milliseconds of each; what was claimed longest ago ends between two claims."""
    from synthesis.models import SynthesisRequest
    from synthesis.services import dispatch, turns

    turns.tidy()
    at_work: deque[UUID] = deque()
    taken = []
    for number in range(count + AT_WORK):
        started = time.perf_counter()
        (request,) = dispatch.claim(worker="bench", engine="hibari")
        if number >= AT_WORK:
            taken.append((time.perf_counter() - started) * 1000)
        at_work.append(request.pk)
        if len(at_work) > AT_WORK:
            SynthesisRequest.objects.filter(pk=at_work.popleft()).update(
                status="canceled", completed_at=request.created_at, lease_until=None
            )
    SynthesisRequest.objects.filter(pk__in=at_work).update(
        status="canceled", completed_at=request.created_at, lease_until=None
    )
    return taken
