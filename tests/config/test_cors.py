"""Pages of other origins: none by default, those that an operator names, and never with cookies."""

from __future__ import annotations

import pytest

from tests import factories

pytestmark = pytest.mark.django_db

ORIGIN = "https://app.example.org"
ASK = {
    "origin": ORIGIN,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
}


@pytest.fixture
def named(settings):
    """What `config.settings` makes of CHORUS_CORS_ORIGINS."""
    settings.CORS_ALLOWED_ORIGINS = [ORIGIN]
    settings.CORS_URLS_REGEX = r"^/v1/"


def _cors(response):
    return {name for name in response.headers if name.lower().startswith("access-control")}


class TestOff:
    def test_a_preflight_is_a_request_without_a_key(self, client):
        response = client.options("/v1/voices", headers=ASK)
        assert (response.status_code, _cors(response)) == (401, set())

    def test_an_answer_says_nothing_of_origins(self, client):
        response = client.get("/v1/voices", headers=factories.owner("Alice").headers | {"origin": ORIGIN})
        assert (response.status_code, _cors(response)) == (200, set())
        assert "origin" not in response.headers["Vary"].lower()


class TestOn:
    def test_a_preflight(self, client, named):
        response = client.options("/v1/audio/speech", headers=ASK)
        assert response.status_code == 200
        assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        allowed = response.headers["Access-Control-Allow-Headers"]
        for name in ("authorization", "xi-api-key", "idempotency-key", "x-stainless-os", "prefer"):
            assert name in allowed
        assert "Access-Control-Allow-Credentials" not in response.headers

    def test_an_answer_and_an_error_can_be_read_with_their_headers(self, client, named):
        alice = factories.owner("Alice")
        for headers, status in ((alice.headers, 200), ({}, 401)):
            response = client.get("/v1/voices", headers=headers | {"origin": ORIGIN})
            assert response.status_code == status
            assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
            exposed = response.headers["Access-Control-Expose-Headers"]
            for name in ("x-request-id", "retry-after", "ratelimit", "etag", "location"):
                assert name in exposed
            assert "origin" in response.headers["Vary"].lower()

    def test_another_origin_and_pages(self, client, named):
        stranger = ASK | {"origin": "https://evil.example"}
        assert _cors(client.options("/v1/voices", headers=stranger)) == set()
        response = client.get("/v1/voices", headers={"origin": "https://evil.example"})
        assert _cors(response) == set()
        assert _cors(client.get("/docs/", headers={"origin": ORIGIN})) == set()
