"""What comes back says what was asked for, all of it, and nobody else's."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from tests import asr
from tests.live import stack

ENGLISH = "The committee will meet on Tuesday at half past nine, and every member has received the agenda."
MANDARIN = "今天的天气非常好，我们打算下午去公园散步，然后在附近的餐厅吃晚饭。"


def _speak(client, text, **fields):
    made = stack.wait(client, stack.submit(client, text, format="wav", **fields)["id"])
    assert made["status"] == "succeeded", made
    audio = client.get(f"/v1/syntheses/{made['id']}/audio")
    assert audio.status_code == 200
    samples, rate = soundfile.read(io.BytesIO(audio.content), dtype="float32")
    assert abs(len(samples) / rate - made["output"]["seconds"]) < 0.05
    assert 0.02 < float(np.abs(samples).max()) <= 1.0
    return samples, rate


def _heard(client, text, language, **fields):
    samples, rate = _speak(client, text, **fields)
    return asr.transcribe(samples, rate, language)


def test_english_and_mandarin_are_understood(kokoro):
    with kokoro.client() as client:
        voices = {voice["language"]: voice["id"] for voice in client.get("/v1/voices").json()["results"]}
        heard = _heard(client, ENGLISH, "en", voice=voices["en-US"])
        assert asr.wer(ENGLISH, heard) <= 0.10, heard
        heard = _heard(client, MANDARIN, "zh", voice=voices["zh"])
        assert asr.cer(MANDARIN, heard) <= 0.10, heard


def test_a_text_of_3000_characters_loses_no_segment(hibari):
    animals = [
        "tiger",
        "rabbit",
        "monkey",
        "horse",
        "chicken",
        "donkey",
        "camel",
        "spider",
        "pigeon",
        "turtle",
    ]
    places = [
        "garden",
        "kitchen",
        "harbor",
        "castle",
        "market",
        "forest",
        "village",
        "office",
        "station",
        "river",
    ]
    sentences = [
        f"On the way to the {place}, a small {animal} was sleeping under the table."
        for place in places
        for animal in animals
    ]
    text = ""
    for sentence in sentences:
        if len(text) + len(sentence) + 1 > 3000:
            break
        text += f"{sentence} "
    text = text.strip()
    assert len(text) > 2900
    with hibari.client() as client:
        samples, rate = _speak(client, text, voice=hibari.voice)
    heard = asr.transcribe(samples, rate, "en")
    assert asr.wer(text, heard) <= 0.10


def test_two_requests_at_once_never_share_bytes(hibari):
    texts = [
        f"This is the recording with the number {number}."
        for number in ("one", "two", "three", "four", "five", "six")
    ]
    heard: dict[int, str] = {}
    sounds: dict[int, bytes] = {}

    def work(index):
        with hibari.client() as client:
            answer = client.post(
                "/v1/audio/speech",
                json={
                    "model": "tts-1",
                    "voice": hibari.voice,
                    "input": texts[index],
                    "response_format": "wav",
                },
            )
            assert answer.status_code == 200, answer.text
            sounds[index] = answer.content

    stack.in_threads(len(texts), work)
    assert len(set(sounds.values())) == len(texts)
    for index, sound in sounds.items():
        samples, rate = soundfile.read(io.BytesIO(sound), dtype="float32")
        heard[index] = asr.transcribe(samples, rate, "en")
        assert asr.wer(texts[index], heard[index]) <= 0.15, heard[index]


@pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus", "aac", "pcm"])
def test_every_format_holds_the_same_sound(hibari, format):
    text = "Every format holds the very same sentence."
    with hibari.client() as client:
        made = stack.wait(client, stack.submit(client, text, voice=hibari.voice, format=format)["id"])
        audio = client.get(f"/v1/syntheses/{made['id']}/audio")
    assert audio.headers["content-type"] == made["output"]["content_type"]
    from synthesis.audio import decode

    if format == "pcm":
        samples, rate = (np.frombuffer(audio.content, "<i2") / 32768).astype(np.float32), 24_000
    else:
        clip = decode.decode(audio.content)
        samples, rate = clip.samples, clip.rate
    assert abs(len(samples) / rate - made["output"]["seconds"]) < 0.15
    assert asr.wer(text, asr.transcribe(samples, rate, "en")) == 0.0
