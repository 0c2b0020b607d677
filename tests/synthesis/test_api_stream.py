"""`POST /v1/audio/speech` with `stream_format`: heard while it is spoken."""

from __future__ import annotations

import base64
import io
import json
import threading
import time

import httpx
import numpy as np
import pytest
import soundfile
from django.db import connection

from accounts.models import UsageCounter
from accounts.redis import client as redis_client
from gpu_worker import jobs, resident
from gpu_worker.engines import load_engine
from gpu_worker.engines.base import Audio, Failed, Finished
from synthesis import storage
from synthesis import streams as sound_streams
from synthesis.audio import decode
from synthesis.engines import capabilities
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch
from tests import asgi, factories

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/v1/audio/speech"
#: Four segments of the scripted engine.
TEXT = " ".join(f"This is sentence number {n}, which is as long as all of the others are." for n in range(10))


@pytest.fixture(scope="module")
def _streams(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as running:
        yield running


@pytest.fixture
def streams(_streams):
    redis_client().flushdb()
    yield _streams
    resident.remove()


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


class Engine:
    """Speaks a tone in chunks of 0.1 s; `hook(job, number)` is called before each chunk."""

    capabilities = capabilities("hibari")

    def __init__(self, hook=lambda job, number: None):
        self.hook = hook

    def synthesise(self, jobs):
        (job,) = jobs
        time_ = np.arange(int(max(0.5, len(job.text) / 15) * 24_000)) / 24_000
        level = 0.2 * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * time_))
        samples = (level * np.sin(2 * np.pi * 220 * time_)).astype("f4")
        for number, start in enumerate(range(0, len(samples), 2400)):
            if job.cancelled():
                return
            failed = self.hook(job, number)
            if failed:
                yield failed
                return
            yield Audio(job.key, samples[start : start + 2400])
        yield Finished(job.key)

    def free_memory(self):
        pass


class Worker(threading.Thread):
    """Takes what is queued, as often as is asked, in a thread of this process."""

    def __init__(self, engine, times=1):
        super().__init__(daemon=True)
        resident.install(engine=engine, worker_name="w1")
        self.times = times
        self.start()

    def run(self):
        try:
            end = time.monotonic() + 20
            while self.times and time.monotonic() < end:
                self.times -= jobs.run_next()
                time.sleep(0.02)
        finally:
            connection.close()


def _body(**fields):
    return {"input": TEXT, "voice": "Hibari", "stream_format": "audio", "response_format": "pcm"} | fields


def _whole():
    """The finished request's own file."""
    end = time.monotonic() + 10
    while not SynthesisRequest.objects.filter(status="succeeded").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    row = SynthesisRequest.objects.get()
    return row, storage.get(row.output.key)


def _open(streams, alice, **fields):
    return httpx.stream("POST", streams.url + URL, json=_body(**fields), headers=alice.headers, timeout=30)


def test_the_stream_has_the_very_samples_of_the_file(streams, alice):
    worker = Worker(Engine())
    response = streams.request("POST", URL, alice, json=_body())
    worker.join()
    assert response.status_code == 200
    assert response.headers["content-type"] == "audio/pcm; rate=24000; channels=1"
    assert "content-length" not in response.headers
    row, file = _whole()
    assert row.streamed
    heard, stored = np.frombuffer(response.content, "<i2"), np.frombuffer(file, "<i2")
    assert len(heard) == len(stored) == round(row.output.seconds * 24000)
    # Stored segments are rounded to 16 bits once more.
    assert np.abs(heard.astype(int) - stored.astype(int)).max() <= 1


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_a_stream_that_has_ended_is_stored_and_charged(streams, alice, monkeypatch, stream_format):
    put = storage.put

    def slowly(key, *args, **kwargs):
        if "/audio." in key:
            time.sleep(0.5)
        return put(key, *args, **kwargs)

    monkeypatch.setattr(storage, "put", slowly)
    worker = Worker(Engine())
    response = streams.request("POST", URL, alice, json=_body(stream_format=stream_format))
    assert response.status_code == 200
    assert SynthesisRequest.objects.get().status == "succeeded"
    assert UsageCounter.objects.filter(reserved__gt=0).count() == 0
    worker.join()


@pytest.mark.parametrize("format", ["mp3", "opus", "aac", "flac", "wav"])
def test_each_format_can_be_played(streams, alice, format):
    worker = Worker(Engine())
    response = streams.request("POST", URL, alice, json=_body(response_format=format))
    worker.join()
    row, _file = _whole()
    clip = decode.decode(response.content)
    assert abs(len(clip.samples) / clip.rate - row.output.seconds) < 0.2
    assert np.abs(clip.samples).max() > 0.1


def test_the_first_bytes_come_while_the_rest_is_not_spoken_yet(streams, alice):
    go_on = threading.Event()
    worker = Worker(Engine(lambda job, number: number == 3 and not go_on.wait(10)))
    with _open(streams, alice) as response:
        content = response.iter_bytes()
        heard = next(content)
        assert response.headers["x-synthesis-id"] == str(SynthesisRequest.objects.get().id)
        assert SynthesisRequest.objects.get().segments_done == 0
        assert 0 < len(heard) <= 3 * 4800
        go_on.set()
        heard += b"".join(content)
    worker.join()
    assert len(heard) == len(_whole()[1])


def test_sse(streams, alice):
    worker = Worker(Engine())
    response = streams.request("POST", URL, alice, json=_body(stream_format="sse"))
    worker.join()
    assert response.headers["content-type"] == "text/event-stream"
    assert all(line.startswith("data: ") for line in response.text.split("\n\n") if line)
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    sound = b"".join(base64.b64decode(event["audio"]) for event in deltas)
    row, file = _whole()
    assert len(sound) == len(file)
    tokens = round(row.output.seconds * 25)
    assert done == {
        "type": "speech.audio.done",
        "usage": {
            "input_tokens": len(TEXT),
            "output_tokens": tokens,
            "total_tokens": len(TEXT) + tokens,
        },
    }


def test_what_redis_lost_comes_from_storage(streams, alice):
    def forget(job, number):
        if number == 5:
            redis_client().delete(*redis_client().keys("speech:*"))

    worker = Worker(Engine(forget))
    response = streams.request("POST", URL, alice, json=_body())
    worker.join()
    assert len(response.content) == len(_whole()[1])


def test_a_listener_who_is_slower_than_redis_remembers(streams, alice, monkeypatch):
    monkeypatch.setattr(sound_streams, "_ENTRIES", 5)
    worker = Worker(Engine())
    with _open(streams, alice) as response:
        content = response.iter_bytes()
        heard = next(content)
        worker.join()
        heard += b"".join(content)
    assert len(heard) == len(_whole()[1])


def test_another_worker_that_begins_a_segment_again_is_not_heard_twice(streams, alice):
    lost = threading.Event()

    def lose(job, number):
        if number == 4 and not lost.is_set():
            lost.set()
            dispatch.abandon(worker="w1")
            time.sleep(1.5)  # until the lease is seen to be lost

    worker = Worker(Engine(lose), times=2)
    response = streams.request("POST", URL, alice, json=_body())
    worker.join()
    row, file = _whole()
    assert row.attempt == 2
    assert len(response.content) == len(file)


def test_a_failure_before_the_first_sound_is_an_error(streams, alice):
    worker = Worker(Engine(lambda job, number: Failed(job.key, "cannot_pronounce", "No.")))
    response = streams.request("POST", URL, alice, json=_body())
    worker.join()
    assert (response.status_code, response.json()["error"]["code"]) == (422, "cannot_pronounce")


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_a_failure_after_the_first_sound_does_not_look_complete(streams, alice, stream_format):
    def fail(job, number):
        return Failed(job.key, "cannot_pronounce", "No.") if number == 9 else None

    worker = Worker(Engine(fail))
    if stream_format == "audio":
        with pytest.raises(httpx.RemoteProtocolError):
            streams.request("POST", URL, alice, json=_body())
    else:
        response = streams.request("POST", URL, alice, json=_body(stream_format="sse"))
        last = json.loads(response.text.strip().split("\n\n")[-1].removeprefix("data: "))
        assert last == {
            "type": "speech.audio.error",
            "error": {"message": "No.", "code": "cannot_pronounce"},
        }
    worker.join()
    assert not UsageCounter.objects.filter(used__gt=0).exists()


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_a_listener_who_leaves_cancels_the_request(streams, alice, stream_format):
    spoken = []

    def slow(job, number):
        spoken.append(number)
        time.sleep(0.1)

    worker = Worker(Engine(slow))
    with _open(streams, alice, stream_format=stream_format) as response:
        next(response.iter_bytes())
    left = time.monotonic()
    while not SynthesisRequest.objects.filter(status="canceled").exists():
        assert time.monotonic() < left + 3, "it went on"
        time.sleep(0.02)
    worker.join()
    assert len(spoken) < 60
    assert not UsageCounter.objects.exclude(used=0, reserved=0).exists()


def test_one_who_hears_it_to_the_end_pays(streams, alice):
    worker = Worker(Engine())
    streams.request("POST", URL, alice, json=_body())
    worker.join()
    _whole()
    counter = UsageCounter.objects.get(user=None, api_key=None)
    assert (counter.used, counter.reserved) == (len(TEXT), 0)


def test_listeners_hold_neither_threads_nor_connections(streams, alice):
    go_on = threading.Event()
    worker = Worker(Engine(lambda job, number: number == 3 and not go_on.wait(20)))
    streams.request("GET", "/v1/quota", alice)
    before = streams.threads
    # One is heard; the others wait for a worker.
    waiting = [streams.begin("POST", URL, alice, json=_body()) for _i in range(30)]
    end = time.monotonic() + 20
    while SynthesisRequest.objects.count() < 30:
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(1)
    assert streams.threads <= before + 8
    go_on.set()
    worker.join()
    for future in waiting:
        future.cancel()
    while SynthesisRequest.objects.filter(status="queued").exists():
        assert time.monotonic() < end + 10
        time.sleep(0.05)


def test_the_real_engine(streams, alice):
    worker = Worker(load_engine("hibari"))
    response = streams.request(
        "POST", URL, alice, json=_body(response_format="wav", input="One. Two. Three.")
    )
    worker.join()
    # A stream does not know its length: the header declares the most.
    assert response.content[:4] == b"RIFF"
    assert response.content[4:8] == b"\xff\xff\xff\xff"
    row, file = _whole()
    samples, rate = soundfile.read(io.BytesIO(file))
    assert len(response.content) == pytest.approx(len(file), abs=200)
    assert row.output.seconds == pytest.approx(len(samples) / rate, abs=0.01)


@pytest.mark.parametrize("fields", [{"stream_format": "x"}, {"stream_format": ["sse"]}, {"input": ""}])
def test_bad_input(streams, alice, fields):
    response = streams.request("POST", URL, alice, json=_body(**fields))
    assert (response.status_code, response.json()["error"]["param"]) == (400, next(iter(fields)))
    assert not SynthesisRequest.objects.exists()


def test_a_strangers_voice(streams, alice):
    charlie = factories.owner("Charlie")
    hers = factories.Voice.objects.create(team=alice.actor.team, kind="cloned", name="Hers", language="en-US")
    response = streams.request("POST", URL, charlie, json=_body(voice=str(hers.id)))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "voice_not_found")
