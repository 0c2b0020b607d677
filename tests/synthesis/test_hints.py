"""Who waits hears of a change when it happens, and does not find it at the next look."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from accounts.redis import client as redis_client
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch
from tests import asgi, factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def streams(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve("tests.hints_only:application") as running:
        yield running


@pytest.fixture
def alice():
    redis_client().flushdb()
    factories.preset()
    return factories.owner("Alice")


def _until(look):
    end = time.monotonic() + 60
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def _listens():
    """Whether the process hears announcements by now."""
    return any(int(line["psub"]) for line in redis_client().client_list())


def test_speech_is_answered_when_the_worker_is_done(streams, alice):
    body = {"input": "Hello there.", "voice": "Hibari"}
    waiting = streams.begin("POST", "/v1/audio/speech", alice, json=body)
    row = _until(SynthesisRequest.objects.first)
    _until(_listens)
    assert not waiting.done()
    finished.succeed(row)
    assert waiting.result(60).content == finished.SOUND


def test_progress_is_told_when_there_is_some(streams, alice):
    claimed = finished.claim(factories.submit(alice))
    lines = []

    def read():
        url = f"{streams.url}/v1/syntheses/{claimed.id}/events"
        with httpx.stream("GET", url, headers=alice.headers, timeout=120) as response:
            lines.extend(response.iter_lines())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    _until(_listens)
    assert dispatch.save_segment(claimed, index=0, audio_key="k", seconds=1, engine_seconds=0.1)
    _until(lambda: any('"segments_done": 1' in line for line in lines))
    dispatch.cancel(claimed.id)
    reader.join(60)
    assert "event: end" in lines
