"""`/v1/quota`, and what every route by key has in common."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.utils import timezone

from accounts.models import MemberQuota, Membership, TeamQuota
from accounts.services import keys
from tests import factories

pytestmark = pytest.mark.django_db

URL = "/v1/quota"


def _code(response):
    return response.json()["error"]["code"]


def test_it_shows_flat_whole_numbers(client, alice):
    factories.submit(alice, "Ten chars.")
    TeamQuota.objects.create(team=alice.actor.team, characters_per_month=1000, concurrent_requests=3)
    response = client.get(URL, headers=alice.headers)
    assert response.status_code == 200
    body = response.json()
    start, end = body.pop("period_start"), body.pop("period_end")
    assert start < timezone.now().isoformat() < end
    assert body == {
        "plan": "Test",
        "characters_limit": 1000,
        "characters_used": 0,
        "characters_reserved": 10,
        "characters_remaining": 990,
        "characters_per_request": 20000,
        "concurrent_limit": 3,
        "queued_limit": 1000,
        "requests_per_minute": 600,
        "voices_limit": 100,
    }


def test_the_tightest_limit_counts(client, alice):
    MemberQuota.objects.create(
        membership=alice.actor.membership,
        characters_per_month=50,
        concurrent_requests=1,
        requests_per_minute=7,
    )
    body = client.get(URL, headers=alice.headers).json()
    assert (body["characters_limit"], body["characters_remaining"]) == (50, 50)
    assert (body["concurrent_limit"], body["requests_per_minute"]) == (1, 7)


def test_a_strangers_use_is_apart(client, alice):
    charlie = factories.owner("Charlie")
    factories.submit(alice, "Ten chars.")
    assert client.get(URL, headers=charlie.headers).json()["characters_reserved"] == 0


def test_wrong_method(client, alice):
    response = client.post(URL, headers=alice.headers)
    assert (response.status_code, _code(response)) == (405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD"


def test_the_key_may_come_as_xi_api_key(client, alice):
    assert client.get(URL, headers={"xi-api-key": alice.secret}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer nonsense"},
        {"authorization": "Bearer chorus_aaaaaaaaaa_bbbb"},
        {"authorization": "Bearer chorus_\x00_b"},
        {"authorization": "Basic YWxpY2U6c2VjcmV0"},
        {"xi-api-key": ""},
        {"xi-api-key": "chorus_ü_ü"},
    ],
)
def test_no_key_or_a_wrong_one(client, alice, headers):
    response = client.get(URL, headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["error"]["type"] == "authentication_error"
    assert _code(response) == "invalid_api_key"


def test_a_right_prefix_with_a_wrong_secret(client, alice):
    response = client.get(URL, headers={"authorization": f"Bearer {alice.secret[:-1]}!"})
    assert (response.status_code, _code(response)) == (401, "invalid_api_key")


def test_a_revoked_key(client, alice):
    keys.revoke(actor=alice.actor, key_id=alice.by_key.api_key.id)
    response = client.get(URL, headers=alice.headers)
    assert (response.status_code, _code(response)) == (401, "api_key_revoked")


def test_an_expired_key(client, alice):
    key = alice.by_key.api_key
    key.expires_at = timezone.now() - timedelta(seconds=1)
    key.save()
    response = client.get(URL, headers=alice.headers)
    assert (response.status_code, _code(response)) == (401, "api_key_expired")


def test_the_key_of_somebody_who_left(client, alice):
    bob = factories.colleague(alice, "Bob")
    Membership.objects.filter(id=bob.actor.membership.id).delete()
    response = client.get(URL, headers=bob.headers)
    assert (response.status_code, _code(response)) == (401, "api_key_orphaned")


def test_a_suspended_team(client, alice):
    alice.actor.team.suspended_at = timezone.now()
    alice.actor.team.save()
    response = client.get(URL, headers=alice.headers)
    assert (response.status_code, _code(response)) == (403, "team_suspended")


def test_a_key_without_the_scope(client, alice):
    _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
    response = client.get(URL, headers={"authorization": f"Bearer {secret}"})
    assert (response.status_code, _code(response)) == (403, "insufficient_scope")
    assert response.json()["error"]["required_scope"] == "usage:read"


class TestAllowedAddresses:
    @pytest.fixture(autouse=True)
    def _key(self, alice):
        _key, self.secret = keys.create(actor=alice.actor, name="bound", allowed_ips=["203.0.113.7"])

    def _get(self, client, **extra):
        return client.get(
            URL, headers={"authorization": f"Bearer {self.secret}"} | extra.pop("headers", {}), **extra
        )

    def test_from_there_and_from_elsewhere(self, client):
        assert self._get(client, REMOTE_ADDR="203.0.113.7").status_code == 200
        response = self._get(client, REMOTE_ADDR="203.0.113.8")
        assert (response.status_code, _code(response)) == (403, "address_not_allowed")

    def test_nobody_but_our_proxy_is_believed(self, client, settings):
        claimed = {"headers": {"x-forwarded-for": "203.0.113.7"}, "REMOTE_ADDR": "198.51.100.1"}
        assert self._get(client, **claimed).status_code == 403
        settings.CHORUS_TRUSTED_PROXIES = [ip_network("198.51.100.0/24")]
        assert self._get(client, **claimed).status_code == 200

    def test_only_what_our_proxy_added_counts(self, client, settings):
        settings.CHORUS_TRUSTED_PROXIES = [ip_network("127.0.0.1"), ip_network("10.0.0.1")]
        forged = {"x-forwarded-for": "203.0.113.7, 198.51.100.1"}
        assert self._get(client, headers=forged).status_code == 403
        through_two = {"x-forwarded-for": "1.2.3.4, 203.0.113.7, 10.0.0.1"}
        assert self._get(client, headers=through_two).status_code == 200
        assert self._get(client, headers={"x-forwarded-for": "203.0.113.7, nonsense"}).status_code == 403

    def test_over_a_unix_socket_there_is_only_our_proxy(self, client):
        claimed = {"x-forwarded-for": "198.51.100.1, 203.0.113.7"}
        assert self._get(client, headers=claimed, REMOTE_ADDR="").status_code == 200
        assert self._get(client, headers={}, REMOTE_ADDR="").status_code == 403


def test_every_answer_carries_the_id_of_the_request(client, alice):
    assert (
        client.get(URL, headers=alice.headers | {"x-request-id": "my-id.1"}).headers["x-request-id"]
        == "my-id.1"
    )
    assert len(client.get(URL).headers["x-request-id"]) == 32


def test_an_unknown_address_is_json_too(client, alice):
    response = client.get("/v1/nothing", headers=alice.headers)
    assert (response.status_code, _code(response)) == (404, "not_found")


def test_the_message_follows_the_callers_language(client, alice):
    response = client.get(URL, headers={"accept-language": "en"})
    assert "valid API key" in response.json()["error"]["message"]
