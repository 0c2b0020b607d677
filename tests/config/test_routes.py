"""The routes of the API, each with the test in which a stranger tries it.

A route that is not in this table fails here, and so does a line whose test is gone. A stranger is somebody of another
team with a key that may do everything there: they must find nothing of Alice's, which is an answer of 404, a list
without it, or, where a route has only the caller's own, their own.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

TESTS = Path(__file__).resolve().parents[1]

#: Name of the route → where a stranger tries it: file below `tests`, and the test in it.
STRANGERS: dict[str, str] = {
    "api_keys": "accounts/test_api_keys.py::TestList::test_ones_own_or_the_teams",
    "api_key": "accounts/test_api_keys.py::TestWhoMay::test_a_strangers_and_a_colleagues",
    "api_audit": "accounts/test_api_audit.py::test_who_may",
    "api_quota": "accounts/test_api_quota.py::test_a_strangers_use_is_apart",
    "api_usage": "synthesis/test_api_usage.py::test_who_may",
    "api_webhooks": "synthesis/test_api_webhooks.py::test_list",
    "api_webhook": "synthesis/test_api_webhooks.py::TestWhoMay::test_a_strangers",
    "api_webhook_test": "synthesis/test_api_webhooks.py::TestWhoMay::test_a_strangers",
    "api_signing_secret": "synthesis/test_callbacks.py::TestWhoMay::test_a_strangers",
    "api_synthesis_deliveries": "synthesis/test_callbacks.py::TestWhoMay::test_a_strangers",
    "api_batch_deliveries": "synthesis/test_callbacks.py::TestWhoMay::test_a_strangers",
    "api_deliveries": "synthesis/test_api_webhooks.py::TestWhoMay::test_a_strangers",
    "api_redeliver": "synthesis/test_api_webhooks.py::TestWhoMay::test_a_strangers",
    "api_speech": "synthesis/test_api_speech.py::TestWhoMay::test_a_strangers_voice",
    "api_audio_voices": "synthesis/test_api_openai_voices.py::TestVoices::test_list",
    "api_audio_voice": "synthesis/test_api_openai_voices.py::TestWhoMay::test_a_strangers",
    "api_voice_consents": "synthesis/test_api_openai_voices.py::TestConsents::test_list",
    "api_voice_consent": "synthesis/test_api_openai_voices.py::TestWhoMay::test_a_strangers",
    "api_voices": "synthesis/test_api_voices.py::TestList::test_a_strangers_voices_are_not_there",
    "api_voices_v2": "synthesis/test_api_elevenlabs.py::TestVoices::test_page_by_page_and_no_strangers",
    "api_voice": "synthesis/test_api_voices.py::TestWhoMay::test_a_strangers_voice",
    "api_voice_sample": "synthesis/test_api_voices.py::TestWhoMay::test_a_strangers_voice",
    "api_voice_import": "synthesis/test_api_voice_files.py::TestWhoMay::test_a_strangers_file_is_ones_own_voice",
    "api_voice_export": "synthesis/test_api_voice_files.py::TestWhoMay::test_a_strangers_a_presets_a_private_and_none",
    "api_voice_versions": "synthesis/test_api_voice_versions.py::TestWhoMay::test_a_strangers_voice",
    "api_voice_preview": "synthesis/test_api_voice_versions.py::TestWhoMay::test_a_strangers_voice",
    "api_conversions": "synthesis/test_api_conversions.py::TestBadInput::test_another_teams_voice_and_request",
    "api_syntheses": "synthesis/test_api_syntheses.py::TestList::test_a_strangers_requests_are_not_there",
    "api_synthesis": "synthesis/test_api_synthesis.py::TestWhoMay::test_a_strangers_request",
    "api_synthesis_cancel": "synthesis/test_api_synthesis.py::TestWhoMay::test_a_strangers_request",
    "api_synthesis_audio": "synthesis/test_api_synthesis.py::TestWhoMay::test_a_strangers_request",
    "api_synthesis_peaks": "synthesis/test_api_peaks.py::test_who_may",
    "api_synthesis_events": "synthesis/test_api_events.py::test_who_may",
    "api_batches": "synthesis/test_api_batch.py::TestListAndRows::test_list",
    "api_batch": "synthesis/test_api_batch.py::TestWhoMay::test_a_strangers",
    "api_batch_rows": "synthesis/test_api_batch.py::TestWhoMay::test_a_strangers",
    "api_batch_cancel": "synthesis/test_api_batch.py::TestWhoMay::test_a_strangers",
    "api_batch_retry": "synthesis/test_api_batch.py::TestWhoMay::test_a_strangers",
    "api_batch_zip": "synthesis/test_api_batch.py::TestWhoMay::test_a_strangers",
    "api_text_to_speech": "synthesis/test_api_elevenlabs.py::TestWhoMay::test_a_strangers",
    "api_text_to_speech_stream": "synthesis/test_api_elevenlabs.py::TestWhoMay::test_a_strangers",
    "api_text_to_speech_with_timestamps": "synthesis/test_api_elevenlabs.py::TestWhoMay::test_a_strangers",
    "api_subscription": "synthesis/test_api_elevenlabs.py::TestLibrary::test_subscription",
    "api_history": "synthesis/test_api_elevenlabs.py::TestLibrary::test_history",
    "api_history_item": "synthesis/test_api_elevenlabs.py::TestWhoMay::test_a_strangers",
    "api_history_audio": "synthesis/test_api_elevenlabs.py::TestWhoMay::test_a_strangers",
}
#: The same for everybody, with a key or without: there is nothing of anybody's in it.
PUBLIC = {"api_schema", "api_models", "api_model", "api_instructions"}


def _routes(patterns, prefix=""):
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern) and address.startswith(("v1/", "v2/")):
            yield pattern.name, address


ROUTES = dict(_routes(get_resolver().url_patterns))


def test_every_route_has_its_strangers_test():
    assert set(ROUTES) - PUBLIC == set(STRANGERS)


@pytest.mark.parametrize("name", sorted(STRANGERS))
def test_it_is_there(name):
    file, *names = STRANGERS[name].split("::")
    inside = ast.parse((TESTS / file).read_text()).body
    for part in names:
        found = next((node for node in inside if getattr(node, "name", "") == part), None)
        assert found is not None, f"{STRANGERS[name]}: there is no {part}"
        inside = found.body
    assert names[-1].startswith("test_")
