"""The sweep mends what a killed process left behind, and deletes what is no longer kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.errors import NotFound
from synthesis import doorbell, storage
from synthesis.models import Output, SynthesisRequest, Voice
from synthesis.services import dispatch, housekeeping
from tests import factories

pytestmark = pytest.mark.django_db


def _spoken(person):
    """A finished request with its objects."""
    request = factories.submit(person)
    (request,) = dispatch.claim(worker="w", engine="hibari")
    segment = storage.segment_key(request, 0)
    key = storage.output_key(request, "mp3")
    storage.put(segment, b"segment", "audio/flac")
    storage.put(key, b"sound", "audio/mpeg")
    dispatch.save_segment(request, index=0, audio_key=segment, seconds=1, engine_seconds=1)
    made = dispatch.Made(key=key, content_type="audio/mpeg", bytes=5, sha256="", seconds=1, sample_rate=24000)
    assert dispatch.complete(request, made)
    return request, [segment, key]


def _gone(keys):
    for key in keys:
        with pytest.raises(NotFound):
            storage.get(key)
    return True


def test_expired_outputs_go_and_the_request_stays():
    alice = factories.owner("Alice")
    request, keys = _spoken(alice)
    _kept, kept_keys = _spoken(alice)
    assert housekeeping.delete_expired_outputs() == 0
    Output.objects.filter(request=request).update(expires_at=timezone.now())
    assert housekeeping.delete_expired_outputs() == 1
    assert _gone(keys)
    assert storage.get(kept_keys[1]) == b"sound"
    request.refresh_from_db()
    assert (request.status, request.segments.exclude(audio_key="").count()) == ("succeeded", 0)
    assert housekeeping.delete_expired_outputs() == 0


def test_objects_of_what_ended_badly_go_after_a_while():
    alice = factories.owner("Alice")
    factories.submit(alice)
    (request,) = dispatch.claim(worker="w", engine="hibari")
    key = storage.segment_key(request, 0)
    storage.put(key, b"segment", "audio/flac")
    dispatch.cancel(request.id)
    assert housekeeping.delete_orphans() == 0
    SynthesisRequest.objects.update(completed_at=timezone.now() - timedelta(hours=1))
    assert housekeeping.delete_orphans() == 1
    assert _gone([key])
    assert housekeeping.delete_orphans() == 0


def test_a_voice_whose_upload_died_goes():
    alice = factories.owner("Alice")
    voice = Voice.objects.create(
        team=alice.actor.team,
        kind=Voice.Kind.CLONED,
        name="unfinished",
        language="en-US",
        deleted_at=timezone.now() - timedelta(hours=1),
    )
    key = storage.voice_prefix(alice.actor.team.id, voice.id) + "x/original"
    storage.put(key, b"clip", "audio/wav")
    assert housekeeping.delete_orphans() == 1
    assert _gone([key])


def test_lost_doorbells_are_rung_again_and_not_too_often():
    alice = factories.owner("Alice")
    doorbell.queue().empty()
    assert housekeeping.ring_for_waiting() == 0
    for _i in range(3):
        factories.submit(alice)
    assert housekeeping.ring_for_waiting() == 3
    assert housekeeping.ring_for_waiting() == 0
    doorbell.queue().empty()
    assert housekeeping.ring_for_waiting() == 3
    doorbell.queue().empty()
    SynthesisRequest.objects.update(not_before=timezone.now() + timedelta(minutes=1))
    assert housekeeping.ring_for_waiting() == 0


def test_expired_leases_return():
    alice = factories.owner("Alice")
    factories.submit(alice)
    dispatch.claim(worker="w", engine="hibari")
    SynthesisRequest.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert housekeeping.return_expired_leases() == 1
    assert SynthesisRequest.objects.get().status == "queued"


@pytest.mark.django_db(transaction=True)
def test_the_command_runs_until_told_to_stop_and_survives_an_absent_server():
    from django.db import connection

    alice = factories.owner("Alice")
    factories.submit(alice)
    dispatch.claim(worker="w", engine="hibari")
    SynthesisRequest.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    database = connection.settings_dict
    environment = os.environ | {
        "DATABASE_URL": (
            f"postgres://{database['USER']}:{database['PASSWORD']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
        ),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "CHORUS_SWEEP_SECONDS": "1",
    }
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, str(root / "manage.py"), "sweep"], env=environment)
    try:
        end = time.monotonic() + 20
        while SynthesisRequest.objects.get().status != "queued":
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
