"""The official `openai` package, unmodified, against running servers."""

from __future__ import annotations

import threading
import time

import openai
import pytest
from django.db import connection

from accounts.models import TeamQuota
from accounts.services import keys
from synthesis.audio import decode
from synthesis.models import SynthesisRequest
from tests import factories
from tests.synthesis import finished
from tests.synthesis.clients import SPEECH, TEXT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(running, alice):
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key=alice.secret, max_retries=0) as client:
        yield client


@pytest.mark.parametrize("format", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
def test_speech_in_each_format(api, worker, format):
    answer = api.audio.speech.create(
        model="tts-1", voice="Hibari", input=TEXT, response_format=format, speed=1.1
    )
    if format != "pcm":
        clip = decode.decode(answer.content)
        assert 2 < len(clip.samples) / clip.rate < 8
    else:
        assert 2 < len(answer.content) / 48000 < 8


def test_stream_to_a_file(api, worker, tmp_path):
    file = tmp_path / "speech.mp3"
    with api.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="Hibari", input=TEXT, extra_body={"stream_format": "audio"}
    ) as answer:
        answer.stream_to_file(file)
    clip = decode.decode(file.read_bytes())
    assert 2 < len(clip.samples) / clip.rate < 8


def test_sse(api, worker):
    with api.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="Hibari", input=TEXT, stream_format="sse"
    ) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert all(line.startswith("data: {") for line in lines)
    assert '"speech.audio.done"' in lines[-1]


async def test_the_asynchronous_client(running, alice, worker):
    async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=alice.secret) as client:
        answer = await client.audio.speech.create(model="tts-1", voice="Hibari", input=TEXT)
    assert len(answer.content) > 10_000


def test_models(api):
    assert [model.id for model in api.models.list()][:2] == ["hibari", "tts-1"]
    assert api.models.retrieve("tts-1").object == "model"
    with pytest.raises(openai.NotFoundError):
        api.models.retrieve("gpt-5")


def test_a_voice_of_ones_own(api, worker):
    with (SPEECH / "austen-0870.wav").open("rb") as recording:
        consent = api.audio.voice_consents.create(name="Yes", language="en-US", recording=recording)
    assert consent.object == "audio.voice_consent"
    assert [item.id for item in api.audio.voice_consents.list(limit=1)] == [consent.id]
    assert api.audio.voice_consents.retrieve(consent.id).name == "Yes"
    assert api.audio.voice_consents.update(consent.id, name="Yes, sure").name == "Yes, sure"
    with (SPEECH / "austen-0880.wav").open("rb") as sample:
        # A client whose voices are hard-coded: the team calls one of its own as OpenAI does.
        voice = api.audio.voices.create(name="alloy", audio_sample=sample, consent=consent.id)
    assert (voice.object, voice.type) == ("audio.voice", "audio_sample")
    for name in ("alloy", {"id": voice.id}):
        answer = api.audio.speech.create(model="tts-1", voice=name, input=TEXT)
        assert len(answer.content) > 10_000
    assert {str(row.voice_id) for row in SynthesisRequest.objects.all()} == {voice.id}
    with pytest.raises(openai.ConflictError):
        api.audio.voice_consents.delete(consent.id)
    assert api.audio.voices.delete(voice.id).deleted
    assert api.audio.voice_consents.delete(consent.id).deleted


class TestErrors:
    def _speak(self, api, **fields):
        return api.audio.speech.create(**({"model": "tts-1", "voice": "Hibari", "input": TEXT} | fields))

    def test_a_wrong_key(self, running, alice):
        with (
            openai.OpenAI(base_url=f"{running.url}/v1", api_key="sk-wrong") as client,
            pytest.raises(openai.AuthenticationError) as caught,
        ):
            self._speak(client)
        assert caught.value.code == "invalid_api_key"
        assert caught.value.request_id

    @pytest.mark.parametrize(
        ("fields", "code", "param"),
        [
            ({"voice": "alloy"}, "voice_not_found", "voice"),
            ({"input": ""}, "text_empty", "input"),
            ({"model": "gpt-5"}, "model_not_found", "model"),
            ({"response_format": "ogg"}, "format_unknown", "response_format"),
            ({"speed": 4.0}, "speed_out_of_range", "speed"),
        ],
    )
    def test_bad_input(self, api, fields, code, param):
        with pytest.raises(openai.BadRequestError) as caught:
            self._speak(api, **fields)
        assert (caught.value.code, caught.value.param) == (code, param)
        assert caught.value.type == "invalid_request_error"
        if code == "voice_not_found":
            # Never another voice instead: the client is told which there are.
            assert "“alloy”. There are: Hibari" in caught.value.message

    def test_a_key_that_may_not(self, running, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        with (
            openai.OpenAI(base_url=f"{running.url}/v1", api_key=secret) as client,
            pytest.raises(openai.PermissionDeniedError),
        ):
            self._speak(client)

    def test_a_quota_is_not_tried_again(self, running, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        begun = time.monotonic()
        with (
            openai.OpenAI(base_url=f"{running.url}/v1", api_key=alice.secret, max_retries=5) as client,
            pytest.raises(openai.RateLimitError) as caught,
        ):
            self._speak(client)
        assert caught.value.code == "quota_exceeded"
        # Five more tries would take some fifteen seconds.
        assert time.monotonic() - begun < 8

    def test_a_full_queue_is_tried_again_after_the_time_that_we_say(self, running, alice, monkeypatch):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=1)
        first = factories.submit(alice)

        def end_it():
            try:
                time.sleep(1)
                finished.succeed(first)
                deadline = time.monotonic() + 20
                while not SynthesisRequest.objects.filter(status="queued").exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
                finished.succeed(SynthesisRequest.objects.get(status="queued"))
            finally:
                connection.close()

        thread = threading.Thread(target=end_it)
        thread.start()
        begun = time.monotonic()
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key=alice.secret, max_retries=1) as client:
            assert self._speak(client).content == finished.SOUND
        thread.join()
        # Retry-After says 10 s; without reading it the client would come back after half a second.
        assert 9 < time.monotonic() - begun < 20

    def test_a_failure_of_ours_is_not_tried_again(self, running, alice):
        def fail():
            try:
                deadline = time.monotonic() + 10
                while not SynthesisRequest.objects.exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                finished.fail(SynthesisRequest.objects.get())
            finally:
                connection.close()

        thread = threading.Thread(target=fail)
        thread.start()
        with (
            openai.OpenAI(base_url=f"{running.url}/v1", api_key=alice.secret, max_retries=2) as client,
            pytest.raises(openai.InternalServerError) as caught,
        ):
            self._speak(client)
        thread.join()
        assert caught.value.code == "engine_error"
        assert SynthesisRequest.objects.count() == 1

    def test_a_caller_whose_patience_ends_leaves_nothing_behind(self, running, alice):
        with (
            openai.OpenAI(
                base_url=f"{running.url}/v1", api_key=alice.secret, timeout=1, max_retries=0
            ) as client,
            pytest.raises(openai.APITimeoutError),
        ):
            self._speak(client)
        deadline = time.monotonic() + 5
        while SynthesisRequest.objects.get().status != "canceled":
            assert time.monotonic() < deadline
            time.sleep(0.05)
