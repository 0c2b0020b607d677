"""`/docs/api`: every route, in both languages, from the description that programs read; and its examples work."""

from __future__ import annotations

import json
import re

import pytest
from django.utils import translation

from accounts import outgoing
from accounts.redis import client as redis_client
from config import examples, reference
from synthesis.models import VoiceConsent
from tests import factories
from tests.synthesis.voicing import own as own_voice

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _fresh():
    redis_client().flushdb()


def _operations():
    return [
        (path, method, operation)
        for path, methods in reference.schema()["paths"].items()
        for method, operation in methods.items()
    ]


class TestPage:
    @pytest.mark.parametrize("language", ["en", "zh-hans"])
    def test_every_route_is_there(self, client, language):
        response = client.get("/docs/api", headers={"accept-language": language})
        assert response.status_code == 200
        html = response.content.decode()
        for path, method, operation in _operations():
            assert f'id="{operation["operationId"]}"' in html
            assert f'<code class="api-path">{path}</code>' in html
            assert method.upper() in html
        assert html.count('class="api-route"') == len(_operations())
        assert ("全部路由" in html) == (language == "zh-hans")

    def test_it_needs_nothing_from_elsewhere_and_no_script_of_its_own(self, client):
        response = client.get("/docs/api")
        html = response.content.decode()
        assert not re.search(r'(?:src|href)="(?:https?:)?//', html)
        assert " style=" not in html
        assert "script-src 'self'" in response.headers["Content-Security-Policy"]

    def test_what_a_route_takes_and_answers(self, client):
        html = client.get("/docs/api").content.decode()
        route = html.partition('id="submit_a_text"')[2].partition('class="api-route"')[0]
        for word in (
            "Idempotency-Key",
            "<code>text</code>",
            "metrics.queue_seconds",
            ">429<",
            "$CHORUS_API_KEY",
        ):
            assert word in route
        assert "* `" not in html
        assert "`" not in html
        assert "<code>wait=n</code>" in route

    def test_wrong_method_and_the_link_to_it(self, client):
        assert client.post("/docs/api").status_code == 405
        assert 'href="/docs/api"' in client.get("/docs/").content.decode()


def test_every_word_is_translated():
    """`manage.py messages` collects them with the others, so that `test_translations` fails for what is missing."""
    from django.conf import settings

    from accounts.management.commands import messages

    found = messages.before_ids(messages.collect(settings.BASE_DIR))
    assert set(reference.words()) <= found


def test_choices_are_told_by_the_kind():
    with translation.override("en"):
        fields = {
            (one.id, field.name): field
            for group in reference.groups("en")
            for one in group.operations
            for field in (*one.body, *one.parameters)
        }
    assert fields["list_voices", "kind"].kind == "preset | cloned"
    assert fields["create_a_key", "scopes"].kind == "array of string"
    assert fields["submit_a_text", "text"].required


class TestExamples:
    def test_each_belongs_to_a_route(self):
        known = {operation["operationId"]: operation for _path, _method, operation in _operations()}
        for name in examples.EXAMPLES:
            content = known[name]["requestBody"]["content"]["application/json"]
            assert content["example"] == examples.EXAMPLES[name]
        for name in examples.CURL_ONLY:
            assert "requestBody" in known[name]

    def test_each_route_with_a_body_has_one(self):
        with_body = {one["operationId"] for _path, _method, one in _operations() if "requestBody" in one}
        assert with_body == {*examples.EXAMPLES, *examples.CURL_ONLY}

    @pytest.mark.parametrize("name", sorted(examples.EXAMPLES))
    def test_it_works(self, client, monkeypatch, name):
        monkeypatch.setattr(outgoing, "_resolve", lambda host, port, internal: "203.0.113.1")
        alice = factories.owner("Alice")
        preset = factories.preset("Heart")
        path, method = next(
            (path, method) for path, method, one in _operations() if one["operationId"] == name
        )
        own = own_voice(alice)
        consent = VoiceConsent.objects.create(
            team=alice.actor.team, name="Agreed", language="en-US", recording_key="x"
        )
        voice = preset if name == "try_a_voice" or "elevenlabs" in name else own
        path = path.replace("{voice_id}", str(voice.id)).replace("{consent_id}", str(consent.id))
        path = path.replace("{key_id}", str(alice.by_key.api_key.id))
        if "{webhook_id}" in path:
            made = client.post(
                "/v1/webhooks",
                examples.EXAMPLES["create_a_webhook"],
                content_type="application/json",
                headers=alice.headers,
            )
            path = path.replace("{webhook_id}", made.json()["id"])
        if name in {"speak_a_text"} or "elevenlabs" in name:
            # The sound itself is for the tests of these routes; here, that it is queued.
            monkeypatch.setattr("synthesis.api.held._wait", lambda request_id, seconds: False)
        response = client.generic(
            method.upper(),
            path,
            json.dumps(examples.EXAMPLES[name]),
            content_type="application/json",
            headers=alice.headers,
        )
        expected = {200, 201} if "speak" not in name and "stream" not in name else {504}
        assert response.status_code in expected, response.content
