"""The official `elevenlabs` package, unmodified, against running servers."""

from __future__ import annotations

import base64

import httpx
import pytest
from elevenlabs.client import AsyncElevenLabs, ElevenLabs
from elevenlabs.core.api_error import ApiError
from elevenlabs.errors import UnprocessableEntityError
from elevenlabs.types import VoiceSettings

from accounts.models import TeamQuota
from synthesis.audio import decode
from tests.synthesis.clients import TEXT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connect(running):
    """A client with a key; the package itself never closes its connections."""
    with httpx.Client(timeout=30) as connections:
        yield lambda key: ElevenLabs(base_url=running.url, api_key=key, httpx_client=connections)


@pytest.fixture
def api(connect, alice):
    return connect(alice.secret)


def _check(data: bytes) -> None:
    clip = decode.decode(data)
    assert clip.rate == 44100
    assert 2 < len(clip.samples) / clip.rate < 8


def test_convert(api, voice, worker):
    sound = api.text_to_speech.convert(
        str(voice.id),
        text=TEXT,
        model_id="eleven_multilingual_v2",
        output_format="mp3_44100_128",
        voice_settings=VoiceSettings(stability=0.5, speed=1.1),
    )
    _check(b"".join(sound))


def test_stream(api, voice, worker):
    _check(b"".join(api.text_to_speech.stream(str(voice.id), text=TEXT)))


async def test_the_asynchronous_client(running, alice, voice, worker):
    async with httpx.AsyncClient(timeout=30) as connections:
        client = AsyncElevenLabs(base_url=running.url, api_key=alice.secret, httpx_client=connections)
        _check(b"".join([data async for data in client.text_to_speech.convert(str(voice.id), text=TEXT)]))


def test_with_timestamps(api, voice, worker):
    answer = api.text_to_speech.convert_with_timestamps(str(voice.id), text=TEXT)
    _check(base64.b64decode(answer.audio_base_64))
    assert "".join(answer.alignment.characters) == TEXT


def test_voices(api, voice):
    (found,) = api.voices.get_all().voices
    assert (found.voice_id, found.name, found.category) == (str(voice.id), "Hibari", "premade")
    assert api.voices.get(str(voice.id)).name == "Hibari"
    (found,) = api.voices.search(search="Hibari", page_size=5).voices
    assert found.voice_id == str(voice.id)


def test_models(api):
    assert [model.model_id for model in api.models.list()] == ["hibari"]


def test_subscription(api):
    subscription = api.user.subscription.get()
    assert (subscription.character_count, subscription.tier) == (0, "Test")


def test_history(api, voice, worker):
    b"".join(api.text_to_speech.convert(str(voice.id), text=TEXT))
    page = api.history.list(page_size=10)
    (item,) = page.history
    assert (item.text, item.voice_name, page.has_more) == (TEXT, "Hibari", False)
    assert api.history.get(item.history_item_id).character_count_change_to == len(TEXT)
    assert len(b"".join(api.history.get_audio(item.history_item_id))) > 10_000
    api.history.delete(item.history_item_id)
    assert api.history.list().history == []


class TestErrors:
    def _raised(self, api, voice, **fields):
        with pytest.raises(ApiError) as caught:
            b"".join(api.text_to_speech.convert(str(voice), **({"text": TEXT} | fields)))
        return caught.value

    def test_a_wrong_key(self, connect, voice):
        error = self._raised(connect("wrong"), voice.id)
        assert (error.status_code, error.body["detail"]["status"]) == (401, "invalid_api_key")

    def test_an_unknown_voice(self, api):
        error = self._raised(api, "21m00Tcm4TlvDq8ikWAM")
        assert (error.status_code, error.body["detail"]["status"]) == (404, "voice_not_found")

    def test_an_empty_text(self, api, voice):
        error = self._raised(api, voice.id, text="")
        assert (error.status_code, error.body["detail"]["status"]) == (400, "text_empty")

    def test_a_quota(self, api, alice, voice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        error = self._raised(api, voice.id)
        assert (error.status_code, error.body["detail"]["status"]) == (429, "quota_exceeded")

    def test_a_body_of_the_wrong_shape(self, api, voice):
        with pytest.raises(UnprocessableEntityError):
            b"".join(api.text_to_speech.convert(str(voice.id), text=TEXT, seed=-1))
