"""One request: its page, card, cancel, delete and sound."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import LedgerEntry
from synthesis import storage
from synthesis.models import SynthesisRequest, Worker
from synthesis.services import dispatch
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db

SOUND = bytes(range(256)) * 8


@pytest.fixture
def queued(alice, hibari):
    return factories.submit(alice, "What shall be said here is not long.")


@pytest.fixture
def done(queued):
    """A request that has been spoken, its file in real storage."""
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    key = storage.output_key(claimed, "mp3")
    storage.put(key, SOUND, "audio/mpeg")
    dispatch.complete(claimed, dispatch.Made(key, "audio/mpeg", len(SOUND), "0" * 64, 2.5, 24_000))
    return SynthesisRequest.objects.get(id=claimed.id)


def worker():
    now = timezone.now()
    return Worker.objects.create(
        name="w", engine="hibari", host="h", pid=1, state="busy", started_at=now, last_seen=now
    )


def test_card_while_it_waits(sign_in, alice, bob, queued):
    path = f"/requests/{queued.id}/card/"
    card = sign_in(bob).get(path, headers=HTMX).content.decode()
    assert "Next in line · waiting for a worker to come back" in card
    assert "data-live" in card
    first = worker()
    Worker.objects.update(state="loading")
    assert "a worker is starting" in sign_in(bob).get(path, headers=HTMX).content.decode()
    Worker.objects.filter(name=first.name).update(state="busy")
    assert "Next in line · ready in" in sign_in(bob).get(path, headers=HTMX).content.decode()
    factories.submit(alice, "Another one before nobody.")
    second = SynthesisRequest.objects.latest("id")
    assert "1 ahead, from your team" in sign_in(bob).get(f"/requests/{second.id}/card/").content.decode()
    assert "1 ahead, yours" in sign_in(alice).get(f"/requests/{second.id}/card/").content.decode()


def test_card_while_it_runs(sign_in, alice, queued):
    worker()
    dispatch.claim(worker="w", engine="hibari")
    SynthesisRequest.objects.filter(id=queued.id).update(segments_total=5, segments_done=2)
    card = sign_in(alice).get(f"/requests/{queued.id}/card/", headers=HTMX).content.decode()
    assert "Speaking part 3 of 5" in card
    assert 'max="5" value="2"' in card


def test_card_when_it_is_done(sign_in, alice, done):
    card = sign_in(alice).get(f"/requests/{done.id}/card/", headers=HTMX).content.decode()
    assert f'src="/requests/{done.id}/audio/?v=' in card
    assert "data-live" not in card


def test_card_when_it_failed(sign_in, alice, queued):
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    dispatch.fail(claimed, code="segment_failed", message="It could not be spoken.", retryable=False)
    card = sign_in(alice).get(f"/requests/{queued.id}/card/", headers=HTMX).content.decode()
    assert "It could not be spoken." in card
    assert "Nothing was charged." in card


def test_detail(sign_in, alice, bob, charlie, done):
    path = f"/requests/{done.id}/"
    page = sign_in(bob).get(path).content.decode()
    assert "What shall be said here is not long." in page
    assert str(done.seed) in page
    assert sign_in(charlie).get(path).status_code == 404
    assert sign_in(alice).get(f"/requests/{uuid.uuid4()}/").status_code == 404


def test_cancel(sign_in, alice, charlie, vera, queued):
    path = f"/requests/{queued.id}/cancel/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(vera).post(path).status_code == 403
    assert sign_in(alice).get(path).status_code == 405
    card = sign_in(alice).post(path, headers=HTMX).content.decode()
    assert "Cancelled. Nothing was charged." in card
    assert LedgerEntry.objects.filter(request_id=queued.id, kind="release").exists()
    assert sign_in(alice).post(path).url == f"/requests/{queued.id}/", "a second time changes nothing"


def test_delete(sign_in, alice, charlie, vera, done):
    path = f"/requests/{done.id}/delete/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(vera).post(path).status_code == 403
    assert sign_in(alice).get(path).status_code == 405
    assert sign_in(alice).post(path, headers=HTMX).headers["HX-Redirect"] == "/history/"
    assert sign_in(alice).get(f"/requests/{done.id}/").status_code == 404


def body(answer):
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_audio(sign_in, alice, bob, charlie, done):
    path = f"/requests/{done.id}/audio/"
    answer = sign_in(bob).get(path)
    assert (answer.status_code, body(answer)) == (200, SOUND)
    assert answer.headers["Content-Type"] == "audio/mpeg"
    assert "attachment" not in answer.headers["Content-Disposition"]
    assert sign_in(charlie).get(path).status_code == 404
    head = sign_in(alice).head(path)
    assert (head.headers["Content-Length"], head.content) == (str(len(SOUND)), b"")


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-", 0, 2047),
        ("bytes=10-19", 10, 19),
        ("bytes=2040-9999", 2040, 2047),
        (f"Bytes=2040-{'9' * 40}", 2040, 2047),
        ("bytes=-8", 2040, 2047),
    ],
)
def test_audio_in_ranges(sign_in, alice, done, header, start, end):
    answer = sign_in(alice).get(f"/requests/{done.id}/audio/", headers={"Range": header})
    assert answer.status_code == 206
    assert answer.headers["Content-Range"] == f"bytes {start}-{end}/2048"
    assert body(answer) == SOUND[start : end + 1]


@pytest.mark.parametrize("header", ["bytes=2048-", "bytes=-0", f"bytes={'9' * 40}-"])
def test_audio_outside_of_the_file(sign_in, alice, done, header):
    answer = sign_in(alice).get(f"/requests/{done.id}/audio/", headers={"Range": header})
    assert (answer.status_code, answer.headers["Content-Range"]) == (416, "bytes */2048")
    assert "2048 bytes" in answer.content.decode()


@pytest.mark.parametrize("header", ["bytes=1-2,4-5", "lines=1-2", "bytes=-", "bytes=9-3"])
def test_audio_with_a_range_that_is_none(sign_in, alice, done, header):
    answer = sign_in(alice).get(f"/requests/{done.id}/audio/", headers={"Range": header})
    assert (answer.status_code, body(answer)) == (200, SOUND)


def test_download_has_a_chinese_name(sign_in, alice, done):
    SynthesisRequest.objects.filter(id=done.id).update(title="第一章：海港")
    answer = sign_in(alice).get(f"/requests/{done.id}/audio/?download=1")
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=utf-8''%E7%AC%AC")


def test_audio_before_there_is_any(sign_in, alice, queued):
    answer = sign_in(alice).get(f"/requests/{queued.id}/audio/")
    assert answer.status_code == 409


def test_audio_after_its_time(sign_in, alice, done):
    done.output.delete()
    SynthesisRequest.objects.filter(id=done.id).update(completed_at=timezone.now() - timedelta(days=90))
    assert sign_in(alice).get(f"/requests/{done.id}/audio/").status_code == 409
    assert "deleted when its time was over" in sign_in(alice).get(f"/requests/{done.id}/").content.decode()


def test_a_presigned_address(sign_in, alice, done, settings):
    settings.S3_PUBLIC_URL = "https://files.example"
    storage._public_client.cache_clear()
    answer = sign_in(alice).get(f"/requests/{done.id}/audio/")
    storage._public_client.cache_clear()
    assert answer.status_code == 302
    assert answer.url.startswith(f"https://files.example/chorus/teams/{done.team_id}/")
