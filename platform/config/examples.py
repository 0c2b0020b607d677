"""Bodies that the description shows for each route, by operation; a test sends every one of them."""

from __future__ import annotations

from typing import Any

#: JSON bodies. `Heart` is a preset; ids that stand for something are replaced in the test.
EXAMPLES: dict[str, dict[str, Any]] = {
    "change_a_voice": {"name": "Granny", "shared": True},
    "try_a_voice": {"text": "Good evening, everybody."},
    "submit_a_text": {"text": "Welcome to our house.", "voice": "Heart", "format": "mp3", "speed": 1.1},
    "speak_a_text": {"model": "tts-1", "voice": "Heart", "input": "Hello.", "response_format": "mp3"},
    "create_a_key": {
        "name": "The website",
        "scopes": ["syntheses:write", "syntheses:read", "voices:read"],
        "requests_per_minute": 60,
        "concurrent_requests": 2,
        "characters_per_month": 100000,
        "allowed_ips": ["203.0.113.0/24"],
    },
    "change_a_key": {"name": "The website's search", "requests_per_minute": 30, "expires_at": None},
    "rename_a_recorded_consent": {"name": "Granny agrees"},
    "speak_as_elevenlabs_does": {"text": "Hello.", "model_id": "eleven_multilingual_v2"},
    "stream_as_elevenlabs_does": {"text": "Hello."},
    "speak_with_timestamps_as_elevenlabs_does": {"text": "Hello."},
    "create_a_webhook": {
        "url": "https://hooks.example.org/chorus",
        "events": ["synthesis.succeeded", "synthesis.failed"],
    },
    "change_a_webhook": {"enabled": False},
}

#: What `curl` sends instead of JSON.
CURL_ONLY: dict[str, list[str]] = {
    "create_a_voice": [
        "-F name=Granny -F language=en-US -F consent=true",
        "-F audio=@granny.m4a",
    ],
    "record_a_voice_again": ["-F consent=true -F audio=@granny.m4a"],
    "import_a_voice": ["-F consent=true -F file=@granny.zip"],
    "create_a_voice_as_openai_does": [
        "-F name=Granny -F consent=CONSENT_ID",
        "-F audio_sample=@granny.m4a",
    ],
    "submit_a_batch": ["-F voice=Heart -F file=@lines.csv"],
    "say_a_recording_in_another_voice": ["-F voice=VOICE_ID -F audio=@speech.m4a"],
    "record_a_consent": ["-F name=Granny -F language=en-US -F recording=@consent.m4a"],
}


def show(result: dict[str, Any], **_others: Any) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: put the examples where programs and generated clients find them."""
    for methods in result["paths"].values():
        for operation in methods.values():
            body = EXAMPLES.get(operation["operationId"])
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None and content is not None:
                content["example"] = body
    return result
