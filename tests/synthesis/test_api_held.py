"""Held answers in the streams process: a wait costs neither a thread nor a database connection."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from django.db import connection

from accounts.models import UsageCounter
from accounts.redis import client as redis_client
from synthesis.models import SynthesisRequest
from tests import asgi, factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)

SPEECH = "/v1/audio/speech"
SYNTHESES = "/v1/syntheses"
BODY = {"model": "tts-1", "input": "Hello there.", "voice": "Hibari"}
OURS = {"text": "Hello there.", "voice": "Hibari"}


@pytest.fixture(scope="module")
def _streams(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as running:
        yield running


@pytest.fixture
def streams(_streams):
    redis_client().flushdb()
    return _streams


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


def _until(look: Callable[[], object], within: float = 10) -> None:
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def _one() -> SynthesisRequest:
    """The one request, as soon as it is there."""
    _until(SynthesisRequest.objects.exists)
    return SynthesisRequest.objects.get()


def test_speech_waits_for_the_worker(streams, alice):
    waiting = streams.begin("POST", SPEECH, alice, json=BODY)
    row = _one()
    time.sleep(0.3)
    assert not waiting.done()
    finished.succeed(row)
    response = waiting.result(20)
    assert (response.status_code, response.content) == (200, finished.SOUND)
    assert response.headers["content-length"] == str(len(finished.SOUND))
    assert response.headers["x-ratelimit-remaining-requests"] == "599"


def test_a_failure(streams, alice):
    waiting = streams.begin("POST", SPEECH, alice, json=BODY)
    finished.fail(_one())
    response = waiting.result(30)
    assert (response.status_code, response.json()["error"]["code"]) == (500, "engine_error")


@pytest.mark.parametrize("prepare", [lambda row: row, finished.claim], ids=["queued", "running"])
def test_hanging_up_cancels_speech(streams, alice, prepare):
    waiting = streams.begin("POST", SPEECH, alice, json=BODY)
    prepare(_one())
    time.sleep(0.2)
    waiting.cancel()
    _until(lambda: SynthesisRequest.objects.filter(status="canceled").exists(), within=3)
    assert not UsageCounter.objects.filter(reserved__gt=0).exists()


def test_hanging_up_leaves_a_synthesis_alone(streams, alice):
    waiting = streams.begin("POST", SYNTHESES, alice, json=OURS, headers={"prefer": "wait"})
    row = _one()
    waiting.cancel()
    time.sleep(0.5)
    row.refresh_from_db()
    assert row.status == "queued"


def test_prefer_wait(streams, alice):
    waiting = streams.begin("POST", SYNTHESES, alice, json=OURS, headers={"prefer": "wait=20"})
    finished.succeed(_one())
    response = waiting.result(30)
    assert (response.status_code, response.json()["status"]) == (201, "succeeded")
    begun = time.monotonic()
    response = streams.request("POST", SYNTHESES, alice, json=OURS, headers={"prefer": "wait=1"})
    assert 0.9 < time.monotonic() - begun < 15
    assert (response.status_code, response.json()["status"]) == (201, "queued")


def _connections() -> int:
    """Database connections other than this test's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


def test_many_wait_for_next_to_nothing(streams, alice):
    count = 60
    streams.request("GET", "/v1/quota", alice)
    before = streams.threads
    waiting = [streams.begin("POST", SPEECH, alice, json=BODY) for _i in range(count)]
    _until(lambda: SynthesisRequest.objects.count() == count, within=90)
    time.sleep(1)
    # asyncio's own pool for short jobs is all that may have grown.
    assert streams.threads <= before + 8
    assert _connections() <= asgi.POOL
    assert len([1 for line in redis_client().client_list() if int(line["psub"])]) == 1
    for row in SynthesisRequest.objects.order_by("created_at"):
        finished.succeed(row)
    responses = [future.result(90) for future in waiting]
    assert [response.status_code for response in responses] == [200] * count
    assert all(response.content == finished.SOUND for response in responses)


def test_it_hears_of_the_end_when_redis_forgot_everybody(streams, alice):
    waiting = streams.begin("POST", SPEECH, alice, json=BODY)
    row = _one()
    time.sleep(0.2)
    redis_client().client_kill_filter(_type="pubsub")
    finished.succeed(row)
    assert waiting.result(30).content == finished.SOUND


def test_a_wrong_request_is_not_held(streams, alice):
    response = streams.request("POST", SPEECH, alice, json=BODY | {"input": ""})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "input")
    assert streams.request("GET", SPEECH, alice).status_code == 405
    assert streams.request("POST", SPEECH, json=BODY).status_code == 401


def test_bodies_are_bounded_before_they_are_read(streams, alice):
    async def endless():
        for _i in range(50):
            yield b"x" * 1000

    response = streams.request("POST", SPEECH, alice, content=b"x" * (2**20 + 1))
    assert (response.status_code, response.json()["error"]["code"]) == (413, "payload_too_large")
    response = streams.request("POST", SPEECH, alice, content=endless())
    assert (response.status_code, response.json()["error"]["code"]) == (411, "length_required")


def test_who_waits_is_answered_when_the_process_is_told_to_end(alice):
    """Speech is given up, and may be asked for again at once; who only waited for a request learns its id."""
    redis_client().flushdb()
    with asgi.serve() as streams:
        waiting = [
            streams.begin("POST", SPEECH, alice, json=BODY),
            streams.begin("POST", SPEECH, alice, json=BODY | {"stream_format": "audio"}),
            streams.begin("POST", SYNTHESES, alice, json=OURS, headers={"prefer": "wait=60"}),
        ]
        _until(lambda: SynthesisRequest.objects.count() == 3)
        time.sleep(0.5)
        streams.process.terminate()
        *speech, request = [one.result(20) for one in waiting]
        for answer in speech:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
            assert answer.headers["retry-after"] == "2"
        assert (request.status_code, request.json()["status"]) == (201, "queued")
    assert sorted(SynthesisRequest.objects.values_list("status", flat=True)) == [
        "canceled",
        "canceled",
        "queued",
    ]
