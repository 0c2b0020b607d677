"""OpenAI's official client for Node, unmodified, against running servers."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import MemberQuota, TeamQuota
from accounts.services import keys
from synthesis.audio import decode
from synthesis.models import SynthesisRequest
from tests import factories
from tests.ops import tools
from tests.synthesis import finished
from tests.synthesis.clients import SPEECH, TEXT

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = Path(__file__).with_name("openai_client.mjs")


@pytest.fixture
def start(running, alice, tmp_path):
    """A program in Node that plays a scenario; its answer comes from `_ended`."""

    def begin(scenario, *, secret=alice.secret, body=None, **options):
        given = {
            "baseURL": f"{running.url}/v1",
            "apiKey": secret,
            "body": {"model": "tts-1", "voice": "Hibari", "input": TEXT} | (body or {}),
            "file": str(tmp_path / "out"),
            **options,
        }
        return subprocess.Popen(
            [tools.node() / "bin" / "node", SCRIPT, tools.openai_node(), scenario, json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.fixture
def node(start):
    """The same, to its end."""
    return lambda *arguments, **options: _ended(start(*arguments, **options))


def _ended(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


def _until(look, within=15.0):
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _meanwhile(work):
    """A thread that does `work` and leaves no connection behind."""

    def run():
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class TestSpeech:
    @pytest.mark.parametrize(
        ("format", "type"),
        [
            ("mp3", "audio/mpeg"),
            ("opus", "audio/ogg"),
            ("aac", "audio/aac"),
            ("flac", "audio/flac"),
            ("wav", "audio/wav"),
        ],
    )
    def test_in_each_format(self, node, worker, tmp_path, format, type):
        answer = node("speech", body={"response_format": format, "speed": 1.1})
        assert answer["type"].startswith(type)
        assert answer["requestId"]
        clip = decode.decode((tmp_path / "out").read_bytes())
        assert 2 < len(clip.samples) / clip.rate < 8

    def test_streamed_to_a_file(self, node, worker, tmp_path):
        answer = node("stream", body={"input": TEXT * 6})
        assert answer["pieces"] > 1
        clip = decode.decode((tmp_path / "out").read_bytes())
        assert 15 < len(clip.samples) / clip.rate < 45

    def test_events(self, node, worker):
        answer = node("sse", body={"model": "gpt-4o-mini-tts"})
        assert set(answer["types"][:-1]) == {"speech.audio.delta"}
        assert answer["types"][-1] == "speech.audio.done"
        assert answer["usage"]["input_tokens"] > 0

    def test_models(self, node):
        answer = node("models")
        assert (answer["ids"][:2], answer["one"]) == (["hibari", "tts-1"], "model")

    def test_a_voice_of_ones_own(self, node, worker):
        answer = node(
            "voice",
            consent=str(SPEECH / "austen-0870.wav"),
            sample=str(SPEECH / "austen-0880.wav"),
        )
        assert "error" not in answer, answer
        assert (answer["consent"], answer["voice"]) == ("audio.voice_consent", "audio.voice")
        assert answer["bytes"] > 10_000
        assert answer["deleted"] is True


class TestErrors:
    @pytest.mark.parametrize(
        ("body", "code", "param"),
        [
            ({"voice": "alloy"}, "voice_not_found", "voice"),
            ({"input": ""}, "text_empty", "input"),
            ({"model": "gpt-5"}, "model_not_found", "model"),
            ({"response_format": "ogg"}, "format_unknown", "response_format"),
            ({"speed": 4.0}, "speed_out_of_range", "speed"),
        ],
    )
    def test_bad_input(self, node, body, code, param):
        error = node("speech", body=body)
        assert (error["error"], error["status"]) == ("BadRequestError", 400)
        assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
        assert error["requestID"]

    def test_a_wrong_key_and_one_that_may_not(self, node, alice):
        error = node("speech", secret="sk-wrong")
        assert (error["error"], error["code"]) == ("AuthenticationError", "invalid_api_key")
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        error = node("speech", secret=secret)
        assert (error["error"], error["code"]) == ("PermissionDeniedError", "insufficient_scope")

    def test_a_strangers_voice(self, node, alice):
        charlie = factories.owner("Charlie")
        theirs = factories.Voice.objects.create(
            team=alice.actor.team, kind="cloned", name="Secret", language="en-US"
        )
        error = node("speech", secret=charlie.secret, body={"voice": {"id": str(theirs.id)}})
        assert (error["error"], error["code"]) == ("BadRequestError", "voice_not_found")


class TestRetries:
    def test_a_quota_is_not_tried_again(self, node, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        begun = time.monotonic()
        error = node("speech", maxRetries=5)
        assert (error["error"], error["code"]) == ("RateLimitError", "quota_exceeded")
        assert time.monotonic() - begun < 5

    def test_a_full_queue_is_tried_again_after_the_time_that_we_say(self, node, alice, tmp_path):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=1)
        first = factories.submit(alice)

        def end_it():
            time.sleep(2)
            finished.succeed(first)
            _until(SynthesisRequest.objects.filter(status="queued").exists, 30)
            finished.succeed(SynthesisRequest.objects.get(status="queued"))

        thread = _meanwhile(end_it)
        begun = time.monotonic()
        answer = node("speech", maxRetries=1)
        thread.join()
        assert "error" not in answer
        assert (tmp_path / "out").read_bytes() == finished.SOUND
        # Retry-After says 10 s; without reading it the client would come back after half a second, in vain.
        assert 9 < time.monotonic() - begun < 30

    def test_too_many_in_a_minute(self, node, alice):
        MemberQuota.objects.create(membership=alice.actor.membership, requests_per_minute=0)
        error = node("speech")
        assert (error["error"], error["code"]) == ("RateLimitError", "rate_limit_exceeded")

    def test_a_failure_of_ours_is_not_tried_again(self, node):
        def fail():
            _until(SynthesisRequest.objects.exists)
            finished.fail(SynthesisRequest.objects.get())

        thread = _meanwhile(fail)
        error = node("speech", maxRetries=2)
        thread.join()
        assert (error["error"], error["code"]) == ("InternalServerError", "engine_error")
        assert SynthesisRequest.objects.count() == 1

    @pytest.mark.parametrize(
        ("scenario", "options", "name"),
        [
            ("speech", {"timeout": 1_000}, "APIConnectionTimeoutError"),
            ("abort", {"after": 1_000}, "APIUserAbortError"),
        ],
    )
    def test_a_caller_who_leaves_leaves_nothing_behind(self, node, scenario, options, name):
        assert node(scenario, **options)["error"] == name
        _until(lambda: SynthesisRequest.objects.get().status == "canceled", 5)
