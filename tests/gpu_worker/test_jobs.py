"""A doorbell makes the worker claim a request and speak it to its end, with the real engine and real servers."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from django.db import connection
from django.utils import timezone

from accounts.models import UsageCounter
from gpu_worker import child, jobs, resident
from gpu_worker.engines import load_engine
from gpu_worker.engines.base import Audio, Failed, Finished
from synthesis import storage
from synthesis.engines import capabilities
from synthesis.models import Attempt, SynthesisRequest
from synthesis.services import conversions, dispatch
from synthesis.services.presets import seed as seed_presets
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

SPEECH = Path(__file__).parent.parent / "fixtures" / "speech"


@pytest.fixture(scope="module")
def hibari():
    return load_engine("hibari")


@pytest.fixture
def worker(hibari):
    resident.install(engine=hibari, worker_name="w1")
    yield hibari
    resident.remove()


class Scripted:
    """An engine whose every call is a step of the test: a callable that gets the job and yields events."""

    capabilities = capabilities("hibari")

    def __init__(self, *steps):
        self.steps = list(steps)
        self.jobs = []

    def load(self):
        pass

    def synthesise(self, jobs):
        (job,) = jobs
        self.jobs.append(job)
        yield from (self.steps.pop(0) if len(self.steps) > 1 else self.steps[0])(job)

    def free_memory(self):
        pass


def _tone(job):
    # As long as its text takes: 15 characters a second, in syllables, at a speaking level.
    seconds = max(0.4, len(job.text) / 15)
    time = np.arange(int(seconds * 24_000)) / 24_000
    yield Audio(
        job.key,
        (0.2 * np.sin(2 * np.pi * 220 * time) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * time))).astype("f4"),
    )
    yield Finished(job.key)


def _use(*steps):
    engine = Scripted(*steps)
    resident.install(engine=engine, worker_name="w1")
    return engine


@pytest.fixture(autouse=True)
def _leave_nothing_installed():
    yield
    resident.remove()


def _usage(person):
    counter = UsageCounter.objects.get(team=person.actor.team, user=None, api_key=None)
    return counter.used, counter.reserved


LONG = "The first sentence is about the river. " * 12


@pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus", "aac", "pcm"])
def test_a_request_becomes_a_file(worker, format):
    alice = factories.owner("Alice")
    request = factories.submit(alice, "Hello there, this is a test.", format=format, title="测试 ünï")
    jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.segments_done, request.error_code) == ("succeeded", 1, "")
    stored = storage.get(request.output.key)
    assert len(stored) == request.output.bytes
    assert 1 < request.output.seconds < 5
    assert request.engine_seconds > 0
    assert request.output.key.startswith(f"teams/{alice.actor.team.id}/requests/{request.id}/1/")
    assert _usage(alice) == (28, 0)


def test_nothing_to_do_is_no_error(worker):
    jobs.run_next()
    assert not Attempt.objects.exists()


def test_a_lost_attempt_is_resumed_and_not_started_again():
    alice = factories.owner("Alice")
    request = factories.submit(alice, LONG, format="wav")
    assert request.segments_total >= 3

    def die(job):
        raise SystemExit  # what a killed process leaves: no `except Exception` of ours runs
        yield

    engine = _use(_tone, _tone, die)
    with pytest.raises(SystemExit):
        jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.segments_done) == ("running", 2)
    assert dispatch.abandon(worker="w1") == 1
    engine = _use(_tone)
    jobs.run_next()
    request.refresh_from_db()
    assert request.status == "succeeded"
    assert len(engine.jobs) == request.segments_total - 2
    samples, rate = soundfile.read(io.BytesIO(storage.get(request.output.key)))
    spoken = sum(max(0.4, len(segment.text) / 15) for segment in request.segments.all())
    assert spoken * 0.9 < len(samples) / rate < spoken + 2 * request.segments_total
    assert _usage(alice) == (request.characters, 0)


def test_a_segment_that_comes_out_wrong_is_tried_with_other_seeds_then_fails_without_charge():
    alice = factories.owner("Alice")
    request = factories.submit(alice)

    def silence(job):
        yield Audio(job.key, np.zeros(24_000, np.float32))
        yield Finished(job.key)

    engine = _use(silence)
    jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.error_code) == ("failed", "segment_implausible")
    assert len({job.seed for job in engine.jobs}) == jobs.SEGMENT_TRIES
    assert _usage(alice) == (0, 0)


def test_one_bad_try_is_mended_by_the_next():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    _use(lambda job: iter([Audio(job.key, np.zeros(10, np.float32)), Finished(job.key)]), _tone)
    jobs.run_next()
    request.refresh_from_db()
    assert request.status == "succeeded"


def test_what_the_engine_refuses_is_told_to_the_user():
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    _use(lambda job: iter([Failed(job.key, "nothing_to_speak", "There is nothing to speak.")]))
    jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.error_code) == ("failed", "nothing_to_speak")
    assert Attempt.objects.get().outcome == "failed"


def test_a_broken_engine_returns_the_request_and_retires_the_child():
    alice = factories.owner("Alice")
    request = factories.submit(alice, "A secret sentence.")

    def break_(job):
        raise RuntimeError("CUDA error: device-side assert triggered")
        yield

    _use(break_)
    with pytest.raises(RuntimeError):
        jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.failures) == ("queued", 1)
    assert "CUDA" in Attempt.objects.get().detail
    assert "CUDA" not in request.error_message


def test_cancelling_while_it_is_spoken_stops_the_engine():
    alice = factories.owner("Alice")
    request = factories.submit(alice, LONG)

    def cancel_then_wait(job):
        dispatch.cancel(request.id)
        for _i in range(100):
            if job.cancelled():
                return
            import time

            time.sleep(0.1)
            yield Audio(job.key, np.zeros(2400, np.float32))
        raise AssertionError("nobody told the engine")

    engine = _use(cancel_then_wait)
    jobs.run_next()
    request.refresh_from_db()
    assert request.status == "canceled"
    assert len(engine.jobs) == 1
    assert _usage(alice) == (0, 0)


def test_a_voice_deleted_in_the_queue_fails_the_request_without_charge(worker):
    from django.utils import timezone

    alice = factories.owner("Alice")
    request = factories.submit(alice)
    type(request.voice).objects.update(deleted_at=timezone.now())
    jobs.run_next()
    request.refresh_from_db()
    assert (request.status, request.error_code) == ("failed", "voice_deleted")
    assert _usage(alice) == (0, 0)


def test_an_outage_of_storage_returns_the_request(worker, monkeypatch):
    alice = factories.owner("Alice")
    request = factories.submit(alice)

    def refuse(*_):
        raise storage.StorageUnavailable

    monkeypatch.setattr(storage, "put", refuse)
    for _i in range(5):
        jobs.run_next()
        request.refresh_from_db()
        assert (request.status, request.failures) == ("queued", 0)
        SynthesisRequest.objects.update(not_before=request.created_at)
    monkeypatch.undo()
    resident.install(engine=worker, worker_name="w1")
    jobs.run_next()
    request.refresh_from_db()
    assert request.status == "succeeded"


def test_the_log_line_has_the_times_and_never_the_text(worker, caplog):
    alice = factories.owner("Alice")
    factories.submit(alice, "The password is swordfish.")
    with caplog.at_level("INFO"):
        jobs.run_next()
    (record,) = [record for record in caplog.records if record.name == "gpu_worker.jobs"]
    assert record.audio_seconds > 0
    assert record.real_time_factor > 0
    assert record.engine_seconds > 0
    assert "swordfish" not in caplog.text + str(vars(record))


def test_an_engine_without_voices_of_its_own_clones_recorded_ones(settings):
    settings.CHORUS_ENGINE = "cosyvoice3"
    alice = factories.owner("Alice")
    seed_presets()
    request = factories.submit(alice, "Hello.", voice="Heart")
    engine = _use(_tone)
    engine.capabilities = capabilities("cosyvoice3")
    jobs.run_next()
    request.refresh_from_db()
    assert request.status == "succeeded"
    (job,) = engine.jobs
    assert job.voice.transcript == "Hello, I'm Heart. I can read your words aloud, in this voice."
    sound, rate = soundfile.read(io.BytesIO(job.voice.prompt_audio()))
    assert sound.ndim == 1
    assert 3 < len(sound) / rate < 8


class TestConversion:
    @pytest.fixture
    def request_and_engine(self, settings):
        settings.CHORUS_ENGINE = "cosyvoice3"
        alice = factories.owner("Alice")
        voice = factories.preset("Mei", engine="cosyvoice3", language="zh", preset="mei")
        audio = (SPEECH / "austen-0870.wav").read_bytes()
        planned = conversions.plan(actor=alice.actor, voice=str(voice.id), audio=audio)
        row = conversions.submit(actor=alice.actor, planned=planned)
        engine = _use(_echo)
        engine.capabilities = capabilities("cosyvoice3")
        return alice, planned, row, engine

    def test_the_engine_gets_the_recording_and_no_text(self, request_and_engine):
        alice, planned, row, engine = request_and_engine
        conversions.upload(actor=alice.actor, request=row, planned=planned)
        jobs.run_next()
        row.refresh_from_db()
        assert (row.status, row.error_code) == ("succeeded", "")
        assert [job.text for job in engine.jobs] == [""]
        assert row.output.seconds == pytest.approx(row.source_seconds, abs=0.2)
        assert _usage(alice) == (row.characters, 0)

    def test_a_recording_that_never_arrived_fails_without_charge(self, request_and_engine):
        alice, _planned, row, engine = request_and_engine
        SynthesisRequest.objects.update(not_before=timezone.now())
        jobs.run_next()
        row.refresh_from_db()
        assert (row.status, row.error_code) == ("failed", "source_missing")
        assert engine.jobs == []
        assert _usage(alice) == (0, 0)


def _echo(job):
    samples, _rate = soundfile.read(io.BytesIO(job.source_audio()), dtype="float32")
    yield Audio(job.key, samples)
    yield Finished(job.key)


def test_a_worker_that_stands_still_keeps_no_request_locked(settings):
    """Stopped within a transaction it would, for ever: then neither its lease's end nor another worker could help."""
    settings.CHORUS_LEASE_SECONDS = 1
    alice = factories.owner("Alice")
    request = factories.submit(alice)
    dispatch.claim(worker="still", engine="hibari")
    SynthesisRequest.objects.update(lease_until=timezone.now())
    still = connection.copy()
    still.connect()
    try:
        child.end_with_the_lease(still)
        still.set_autocommit(False)
        with still.cursor() as cursor:
            cursor.execute("SELECT FROM synthesis_synthesisrequest WHERE id = %s FOR UPDATE", [request.id])
        assert dispatch.expire() == 0
        end = time.monotonic() + 20
        while dispatch.expire() == 0:
            assert time.monotonic() < end, "it is locked"
            time.sleep(0.1)
    finally:
        still.close()
    request.refresh_from_db()
    assert request.status == "queued"
