"""A service under load, played by threads: people who submit and cancel, workers that succeed, fail and are killed."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from accounts.actors import Actor
from accounts.errors import ChorusError, LimitReached
from accounts.operators import Operator
from accounts.services import grants, quotas
from synthesis.models import Status, SynthesisRequest
from synthesis.services import dispatch, operations, submission
from tests import factories

MADE = dispatch.Made("key", "audio/mpeg", 10, "0" * 64, 1.5, 24_000)


def run(requests: int, *, submitters: int = 4, workers: int = 4, seed: int = 1) -> Counter[str]:
    """Play until `requests` were submitted and all of them have ended; how many ended how.

    A killed worker is one that never comes back to what it claimed: its lease runs out, or its parent gives it back;
    and sometimes it was only slow, and writes too late.
    """
    voice = str(factories.preset().pk)
    people = [factories.owner(f"Person{number}") for number in range(3)]
    people += [factories.colleague(people[0], f"Colleague{number}") for number in range(2)]
    quotas.change(
        by=Operator.command(), targets=[people[0].actor.membership], values={"characters_per_month": 10**9}
    )
    left = threading.Semaphore(requests)
    submitting = threading.Barrier(submitters + 1)
    done = threading.Event()

    def submitter(number: int) -> None:
        dice = random.Random(seed * 100 + number)
        submitting.wait()
        while left.acquire(blocking=False):
            person = dice.choice(people)
            actor: Actor = dice.choice([person.actor, person.by_key])
            text = "A sentence that is spoken. " * dice.randint(1, 4)
            planned = submission.plan(actor=actor, voice=voice, text=text)
            request = None
            while request is None:
                try:
                    request = submission.submit(actor=actor, planned=planned, priority=dice.choice([0, 0, 5]))
                except LimitReached:
                    time.sleep(0.05)  # as a client does who is told to come back
            if dice.random() < 0.1:
                dispatch.cancel(request.pk)
            if dice.random() < 0.02:
                grants.give(by=Operator.command(), team=actor.team, characters=100, reason="Luck")

    def worker(number: int) -> None:
        dice = random.Random(seed * 1000 + number)
        late: list[SynthesisRequest] = []
        name = f"worker-{number}"
        while not done.is_set():
            claimed = dispatch.claim(worker=name, engine="hibari", limit=dice.choice([1, 1, 3]))
            for request in claimed:
                fate = dice.random()
                if fate < 0.7:
                    dispatch.complete(request, MADE)
                elif fate < 0.8:
                    dispatch.fail(request, code="engine_error", message="x", retryable=dice.random() < 0.7)
                elif fate < 0.85:
                    dispatch.fail(request, code="storage", message="x", retryable=True, outage=True)
                elif fate < 0.9:
                    dispatch.cancel(request.pk)
                    dispatch.complete(request, MADE)  # the worker has not noticed yet
                else:
                    late.append(request)  # killed with it in hand
            if late and dice.random() < 0.3:
                dispatch.abandon(worker=name)
                dispatch.complete(late.pop(), MADE)  # it was slow, not dead: too late all the same
            # Nobody waits in this play: pauses and leases are over at once.
            now = timezone.now()
            SynthesisRequest.objects.filter(status=Status.QUEUED, not_before__gt=now).update(not_before=now)
            if dice.random() < 0.1:
                overdue = SynthesisRequest.objects.filter(status=Status.RUNNING, worker=name)
                overdue.update(lease_until=timezone.now() - timedelta(seconds=1))
                dispatch.expire()
                for failed in SynthesisRequest.objects.filter(status=Status.FAILED, retry_of=None).order_by(
                    "-id"
                )[:1]:
                    with contextlib.suppress(ChorusError):
                        operations.retry(by=Operator.command(), request_id=failed.pk)

    def thread(play: Callable[[int], None], number: int) -> None:
        try:
            play(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(submitters + workers) as pool:
        busy = [pool.submit(thread, submitter, number) for number in range(submitters)]
        rest = [pool.submit(thread, worker, number) for number in range(workers)]
        submitting.wait()
        for future in busy:
            future.result()
        while _unfinished().exists():
            failed = [future for future in rest if future.done()]
            for future in failed:
                future.result()
            threading.Event().wait(0.05)
        done.set()
        for future in rest:
            future.result()
    while _unfinished().exists():  # what was tried again between our last look and the workers' end
        past = timezone.now() - timedelta(seconds=1)
        _unfinished().update(not_before=past)
        SynthesisRequest.objects.filter(status=Status.RUNNING).update(lease_until=past)
        dispatch.expire()
        for request in dispatch.claim(worker="last", engine="hibari", limit=3):
            dispatch.complete(request, MADE)
    return Counter(SynthesisRequest.objects.values_list("status", flat=True))


def _unfinished() -> QuerySet[SynthesisRequest]:
    return SynthesisRequest.objects.filter(status__in=[Status.QUEUED, Status.RUNNING])
