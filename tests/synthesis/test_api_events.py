"""`/v1/syntheses/{id}/events`: a request as it goes on."""

from __future__ import annotations

import json
import threading
import time
import uuid

import httpx
import pytest
from django.db import connection

from accounts.redis import client as redis_client
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch, requests, workers
from tests import asgi, factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def running(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as streams:
        yield streams


@pytest.fixture
def alice():
    redis_client().flushdb()
    workers.beat(name="w1", engine="hibari", host="h", pid=1, state="idle")
    return factories.owner("Alice")


def _url(row):
    return f"/v1/syntheses/{getattr(row, 'id', row)}/events"


class Listener:
    """Reads events in a thread, each with the time at which it came."""

    def __init__(self, running, person, row):
        self.events = []
        self.ended = threading.Event()
        self._arguments = (f"{running.url}{_url(row)}", person.headers)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        url, headers = self._arguments
        with httpx.stream("GET", url, headers=headers, timeout=30) as response:
            assert response.headers["content-type"] == "text/event-stream"
            name = ""
            for line in response.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    self.events.append((name, json.loads(line.removeprefix("data: "))))
        self.ended.set()

    def wait_for(self, test, within=8):
        end = time.monotonic() + within
        while not any(test(*event) for event in self.events):
            assert time.monotonic() < end, self.events
            time.sleep(0.02)


def test_from_the_queue_to_the_end(running, alice):
    first, second = factories.submit(alice), factories.submit(alice)
    listener = Listener(running, alice, second)
    listener.wait_for(lambda name, data: data["queue_position"] == 2)
    assert listener.events[0][0] == "progress"
    assert listener.events[0][1]["ahead"] == 1
    assert listener.events[0][1]["eta_seconds"] >= 1
    finished.succeed(first)
    # Nothing of this request has changed but its place.
    listener.wait_for(lambda name, data: data["queue_position"] == 1)
    claimed = finished.claim(second)
    listener.wait_for(lambda name, data: data["status"] == "running" and data["queue_position"] is None)
    assert dispatch.save_segment(claimed, index=0, audio_key="k", seconds=1, engine_seconds=0.1)
    listener.wait_for(lambda name, data: data["segments_done"] == 1)
    assert dispatch.fail(claimed, code="engine_error", message="It broke.", retryable=False)
    assert listener.ended.wait(5)
    name, data = listener.events[-1]
    assert (name, data["status"], data["error"]["code"]) == ("end", "failed", "engine_error")
    assert data["urls"]["events"].startswith(running.url)


def test_one_that_has_ended_is_told_at_once(running, alice):
    row = finished.succeed(factories.submit(alice))
    listener = Listener(running, alice, row)
    assert listener.ended.wait(5)
    assert [(name, data["status"]) for name, data in listener.events] == [("end", "succeeded")]
    assert listener.events[0][1]["output"]["bytes"] == len(finished.SOUND)


def test_one_that_is_deleted(running, alice):
    row = factories.submit(alice)
    listener = Listener(running, alice, row)
    listener.wait_for(lambda name, data: name == "progress")
    requests.delete(actor=alice.actor, request_id=row.id)
    assert listener.ended.wait(5)
    assert listener.events[-1] == ("end", {"id": str(row.id), "status": "canceled"})


def test_leaving_does_not_cancel(running, alice):
    row = factories.submit(alice)
    with httpx.stream("GET", f"{running.url}{_url(row)}", headers=alice.headers) as response:
        next(response.iter_lines())
    time.sleep(0.5)
    row.refresh_from_db()
    assert row.status == "queued"


def test_followers_hold_no_threads(running, alice):
    row = factories.submit(alice)
    running.request("GET", "/v1/quota", alice)
    before = running.threads
    listeners = [Listener(running, alice, row) for _i in range(30)]
    for listener in listeners:
        listener.wait_for(lambda name, data: True)
    time.sleep(1)
    assert running.threads <= before + 8
    dispatch.cancel(row.id)
    assert all(listener.ended.wait(10) for listener in listeners)


def test_where_nothing_may_wait_it_tells_what_is_true_now(client, alice):
    row = factories.submit(alice)
    response = client.get(_url(row), headers=alice.headers)
    text = response.getvalue().decode()
    assert text.startswith("retry: 2000\n\nevent: progress\ndata: {")
    assert text.count("event:") == 1


def test_who_may(client, alice):
    charlie = factories.owner("Charlie")
    row = factories.submit(alice)
    assert client.get(_url(row)).status_code == 401
    assert client.get(_url(row), headers=charlie.headers).status_code == 404
    assert client.get(_url(uuid.uuid4()), headers=alice.headers).status_code == 404
    assert client.post(_url(row), headers=alice.headers).status_code == 405
    assert SynthesisRequest.objects.filter(status="queued").exists()
    connection.close()
