"""Requests that are spoken at once by an engine that takes several, and what is kept beside a voice for others."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np
import pytest
from django.db import connection
from django.utils import timezone

from gpu_worker import jobs, resident, several
from gpu_worker.engines.base import Audio, Finished
from synthesis import storage
from synthesis.engines import capabilities
from synthesis.models import Voice, VoiceVersion
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

PLACES = 3


class Batching:
    """An engine with three places that remembers how many were at it together."""

    capabilities = dataclasses.replace(capabilities("hibari"), batch=PLACES, checks_itself=True)

    def __init__(self, speak=lambda job: None):
        self.speak = speak
        self.now = self.most = 0
        self._lock = threading.Lock()

    def load(self):
        pass

    def synthesise(self, given):
        (job,) = given
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self.speak(job)
            yield Audio(job.key, np.full(24_000, 0.1, np.float32))
            yield Finished(job.key)
        finally:
            with self._lock:
                self.now -= 1

    def free_memory(self):
        pass


@pytest.fixture
def use():
    def install(engine):
        resident.install(engine=engine, worker_name="w1")
        return engine

    yield install
    resident.remove()


def _statuses(requests):
    for request in requests:
        request.refresh_from_db()
    return [request.status for request in requests]


def _cloned(person):
    voice = Voice.objects.create(
        kind=Voice.Kind.CLONED, team=person.actor.team, name="Mine", language="en-US"
    )
    version = VoiceVersion.objects.create(
        voice=voice,
        number=1,
        sample_rate=24_000,
        seconds=5,
        window_start=0,
        window_end=5,
        original_seconds=5,
        nearest={"hibari": "heart"},
        consent_at=timezone.now(),
    )
    voice.current_version = version
    voice.save()
    return version


def test_as_many_as_the_engine_takes_and_the_next_as_soon_as_one_ends(use):
    together = threading.Barrier(PLACES, timeout=10)
    first = threading.Event()

    def speak(job):
        if not first.is_set():
            together.wait()
            first.set()
        time.sleep(0.05)

    engine = use(Batching(speak))
    requests = [factories.submit(factories.owner(f"Person {number}")) for number in range(5)]
    assert jobs.run_next() == 5
    assert _statuses(requests) == ["succeeded"] * 5
    assert engine.most == PLACES


def test_one_that_fails_leaves_the_others_alone_and_ends_the_round(use):
    people = [factories.owner(f"Person {number}") for number in range(PLACES)]
    requests = [factories.submit(person, f"This is number {number}.") for number, person in enumerate(people)]
    begun = threading.Barrier(PLACES, timeout=10)

    def speak(job):
        begun.wait()
        if "number 1" in job.text:
            raise RuntimeError("the device is lost")
        time.sleep(0.2)

    use(Batching(speak))
    with pytest.raises(RuntimeError):
        jobs.run_next()
    assert sorted(_statuses(requests)) == ["queued", "succeeded", "succeeded"]


def test_a_cancelled_one_ends_alone(use):
    from synthesis.services import requests as service

    alice, bob = factories.owner("Alice"), factories.owner("Bob")
    unwanted, wanted = factories.submit(alice), factories.submit(bob)
    begun = threading.Barrier(3, timeout=10)

    def speak(job):
        begun.wait()
        time.sleep(0.3)

    use(Batching(speak))

    def run():
        try:
            jobs.run_next()
        finally:
            connection.close()

    worker = threading.Thread(target=run)
    worker.start()
    begun.wait()
    service.cancel(actor=alice.actor, request_id=unwanted.id)
    worker.join(30)
    assert _statuses([unwanted, wanted]) == ["canceled", "succeeded"]


def test_no_more_is_taken_after_the_round(use, monkeypatch):
    monkeypatch.setattr(several, "ROUND_SECONDS", 0.0)
    use(Batching())
    factories.submit(factories.owner("Alice"))
    assert jobs.run_next() == 0


def test_nothing_to_do_is_no_error(use):
    use(Batching())
    assert jobs.run_next() == 0


def test_what_an_engine_worked_out_is_kept_below_the_voice(use, monkeypatch):
    seen = []

    def speak(job):
        seen.append(job.voice.features())
        job.voice.store_features(b"worked out")

    use(Batching(speak))
    alice = factories.owner("Alice")
    version = _cloned(alice)
    for _ in range(2):
        factories.submit(alice, voice=str(version.voice_id))
    monkeypatch.setattr(Batching, "capabilities", dataclasses.replace(Batching.capabilities, batch=1))
    jobs.run_next()
    jobs.run_next()
    assert seen == [None, b"worked out"]
    prefix = storage.voice_prefix(alice.actor.team.id, version.voice_id)
    assert storage.delete_prefix(prefix) >= 1
