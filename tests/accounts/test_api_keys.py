"""`/v1/keys`: list, create, show, change, revoke."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import ApiKey, AuditEntry, Role, TeamQuota
from accounts.services import keys
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]

URL = "/v1/keys"


def _headers(secret):
    return {"authorization": f"Bearer {secret}"}


def _post(client, headers, **fields):
    return client.post(URL, {"name": "New"} | fields, content_type="application/json", headers=headers)


def _error(response):
    return response.status_code, response.json()["error"]["code"], response.json()["error"]["param"]


def test_create_use_show_and_revoke(client, alice):
    expires = timezone.now() + timedelta(days=1)
    response = _post(
        client,
        alice.headers,
        scopes=["usage:read"],
        expires_at=expires.isoformat(),
        characters_per_month=1000,
        allowed_ips=["127.0.0.1", "::1"],
    )
    assert response.status_code == 201
    body = response.json()
    secret = body.pop("secret")
    assert (body["name"], body["owner"], body["status"]) == ("New", "alice@example.org", "active")
    assert (body["scopes"], body["characters_per_month"]) == (["usage:read"], 1000)
    assert body["allowed_ips"] == ["127.0.0.1", "::1"]
    assert secret.startswith(body["hint"].rstrip("…"))
    assert client.get("/v1/quota", headers=_headers(secret)).json()["characters_limit"] == 1000
    shown = client.get(f"{URL}/{body['id']}", headers=alice.headers).json()
    assert "secret" not in shown
    assert shown["last_used_at"] is not None
    assert client.delete(f"{URL}/{body['id']}", headers=alice.headers).status_code == 204
    assert client.get("/v1/quota", headers=_headers(secret)).status_code == 401
    assert client.get(f"{URL}/{body['id']}", headers=alice.headers).json()["status"] == "revoked"


class TestLimits:
    def _key(self, client, alice, **limits):
        response = _post(client, alice.headers, scopes=["usage:read", "syntheses:write"], **limits)
        assert response.status_code == 201, response.content
        return response.json(), _headers(response.json()["secret"])

    def test_shown_with_the_key_and_in_its_quota(self, client, alice):
        body, headers = self._key(client, alice, requests_per_minute=7, concurrent_requests=1)
        assert (body["requests_per_minute"], body["concurrent_requests"]) == (7, 1)
        quota = client.get("/v1/quota", headers=headers).json()
        assert (quota["requests_per_minute"], quota["concurrent_limit"]) == (7, 1)
        plain = client.get("/v1/quota", headers=alice.headers).json()
        assert (plain["requests_per_minute"], plain["concurrent_limit"]) == (600, 4)

    def test_never_above_its_owners(self, client, alice):
        _body, headers = self._key(client, alice, requests_per_minute=10_000, concurrent_requests=100)
        quota = client.get("/v1/quota", headers=headers).json()
        assert (quota["requests_per_minute"], quota["concurrent_limit"]) == (600, 4)

    def test_headers_say_which_limit_holds(self, client, alice):
        factories.preset()
        _body, headers = self._key(client, alice, requests_per_minute=2, concurrent_requests=3)

        def submit():
            return client.post(
                "/v1/syntheses",
                {"text": "Hello there.", "voice": "Hibari"},
                content_type="application/json",
                headers=headers,
            )

        first, _second, third = submit(), submit(), submit()
        assert first.status_code == 201, first.content
        policy = '"burst";q=2;w=60, "slots";q=3;qu="concurrent-requests"'
        assert first.headers["RateLimit-Policy"] == policy
        assert first.headers["RateLimit"].startswith('"burst";r=1;t=')
        assert first.headers["x-ratelimit-limit-requests"] == "2"
        assert first.headers["x-ratelimit-remaining-requests"] == "1"
        assert _error(third)[:2] == (429, "rate_limit_exceeded")
        assert third.headers["RateLimit"].startswith('"burst";r=0;t=')
        assert 1 <= int(third.headers["Retry-After"]) <= 61

    def test_networks(self, client, alice):
        body, headers = self._key(client, alice, allowed_ips=["10.9.8.7/8", "2001:db8::/32", "10.0.0.0/8"])
        assert body["allowed_ips"] == ["10.0.0.0/8", "2001:db8::/32"]
        assert client.get(f"{URL}/{body['id']}", headers=alice.headers).json()["allowed_ips"] == [
            "10.0.0.0/8",
            "2001:db8::/32",
        ]
        for address, status in [
            ("10.1.2.3", 200),
            ("::ffff:10.1.2.3", 200),
            ("2001:db8::5", 200),
            ("11.0.0.1", 403),
            ("::1", 403),
            ("", 403),
        ]:
            response = client.get("/v1/quota", headers=headers, REMOTE_ADDR=address)
            assert response.status_code == status, address
        assert response.json()["error"]["code"] == "address_not_allowed"


def test_scopes_when_nobody_chose(client, alice):
    scopes = _post(client, alice.headers).json()["scopes"]
    assert "syntheses:write" in scopes
    assert "keys:write" not in scopes


def test_an_expired_one_is_shown_as_such(client, alice):
    key, _secret = keys.create(actor=alice.actor, name="old")
    ApiKey.objects.filter(id=key.id).update(expires_at=timezone.now() - timedelta(1))
    assert client.get(f"{URL}/{key.id}", headers=alice.headers).json()["status"] == "expired"


class TestList:
    def _names(self, client, person, **query):
        response = client.get(URL, query, headers=person.headers)
        assert response.status_code == 200
        return [key["name"] for key in response.json()["results"]]

    def test_ones_own_or_the_teams(self, client, alice, charlie):
        bob = factories.colleague(alice, "Bob")
        keys.create(actor=alice.actor, name="Alice's second")
        assert self._names(client, bob) == ["test key"]
        assert self._names(client, alice) == ["Alice's second", "test key", "test key"]
        assert self._names(client, charlie) == ["test key"]

    def test_pages(self, client, alice):
        for number in range(3):
            keys.create(actor=alice.actor, name=f"Number {number}")
        first = client.get(URL, {"limit": 2}, headers=alice.headers).json()
        second = client.get(first["next"], headers=alice.headers).json()
        names = [key["name"] for key in first["results"] + second["results"]]
        assert names == ["Number 2", "Number 1", "Number 0", "test key"]


class TestNeverMoreThanTheKeyItself:
    def _narrow(self, alice, **bounds):
        _key, secret = keys.create(actor=alice.actor, name="narrow", **{"scopes": ["keys:write"]} | bounds)
        return _headers(secret)

    def test_scopes(self, client, alice):
        headers = self._narrow(alice)
        assert _error(_post(client, headers, scopes=["voices:read"])) == (403, "permission_denied", "scopes")

    def test_an_expiry(self, client, alice):
        soon = timezone.now() + timedelta(hours=1)
        headers = self._narrow(alice, expires_at=soon)
        for later in ({}, {"expires_at": (soon + timedelta(hours=1)).isoformat()}):
            response = _post(client, headers, scopes=["keys:write"], **later)
            assert _error(response) == (403, "permission_denied", "expires_at")
        response = _post(client, headers, scopes=["keys:write"], expires_at=soon.isoformat())
        assert response.status_code == 201

    def test_addresses(self, client, alice):
        headers = self._narrow(alice, allowed_ips=["127.0.0.1"])
        for wider in ([], ["127.0.0.1", "10.0.0.1"]):
            response = _post(client, headers, scopes=["keys:write"], allowed_ips=wider)
            assert _error(response) == (403, "permission_denied", "allowed_ips")
        assert _post(client, headers, scopes=["keys:write"], allowed_ips=["127.0.0.1"]).status_code == 201

    def test_networks(self, client, alice):
        headers = self._narrow(alice, allowed_ips=["127.0.0.0/8", "2001:db8::/32"])
        for wider in (["127.0.0.0/7"], ["0.0.0.0/0"], ["127.0.0.1", "::/0"], ["2001:db9::1"], []):
            response = _post(client, headers, scopes=["keys:write"], allowed_ips=wider)
            assert _error(response) == (403, "permission_denied", "allowed_ips")
        inside = ["127.0.0.1", "127.16.0.0/12", "2001:db8:1::/48"]
        assert _post(client, headers, scopes=["keys:write"], allowed_ips=inside).status_code == 201

    @pytest.mark.parametrize("limit", ["characters_per_month", "requests_per_minute", "concurrent_requests"])
    def test_a_cap(self, client, alice, limit):
        headers = self._narrow(alice, **{limit: 10})
        response = _post(client, headers, scopes=["keys:write"], **{limit: 10})
        assert _error(response) == (403, "permission_denied", limit)


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"name": None}, "missing_field", "name"),
        ({"name": ""}, "invalid_value", "name"),
        ({"name": "x" * 101}, "name_invalid", "name"),
        ({"name": "a\x00"}, "invalid_value", "name"),
        ({"scopes": ["everything"]}, "scope_unknown", "scopes"),
        ({"scopes": []}, "scope_missing", "scopes"),
        ({"scopes": "voices:read"}, "invalid_value", "scopes"),
        ({"expires_at": "tomorrow"}, "invalid_value", "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expiry_past", "expires_at"),
        ({"characters_per_month": 0}, "invalid_value", "characters_per_month"),
        ({"characters_per_month": 2**63}, "invalid_value", "characters_per_month"),
        ({"requests_per_minute": 0}, "invalid_value", "requests_per_minute"),
        ({"requests_per_minute": 2**31}, "invalid_value", "requests_per_minute"),
        ({"concurrent_requests": 1.5}, "invalid_value", "concurrent_requests"),
        ({"allowed_ips": ["localhost"]}, "address_invalid", "allowed_ips"),
        ({"allowed_ips": ["10.0.0.0/33"]}, "address_invalid", "allowed_ips"),
        ({"allowed_ips": ["10.0.0.1%eth0"]}, "address_invalid", "allowed_ips"),
        ({"allowed_ips": [5]}, "invalid_value", "allowed_ips.0"),
    ],
)
def test_a_wrong_field_is_named(client, alice, fields, code, param):
    before = ApiKey.objects.count()
    assert _error(_post(client, alice.headers, **fields)) == (400, code, param)
    assert ApiKey.objects.count() == before


def test_too_many_in_a_minute(client, alice):
    TeamQuota.objects.create(team=alice.actor.team, requests_per_minute=1)
    assert _post(client, alice.headers).status_code == 201
    assert _error(_post(client, alice.headers))[:2] == (429, "rate_limit_exceeded")


class TestChange:
    def _key(self, alice, **fields):
        key, secret = keys.create(actor=alice.actor, **({"name": "Old", "scopes": ["usage:read"]} | fields))
        return f"{URL}/{key.id}", _headers(secret)

    def _patch(self, client, url, headers, **fields):
        return client.patch(url, fields, content_type="application/json", headers=headers)

    def test_it_holds_at_once_and_the_log_says_what_it_was(self, client, alice):
        url, headers = self._key(alice, requests_per_minute=7)
        expires = (timezone.now() + timedelta(days=1)).isoformat()
        changed = {
            "name": "Newer",
            "scopes": ["usage:read", "voices:read"],
            "characters_per_month": 900,
            "requests_per_minute": None,
            "concurrent_requests": 1,
            "expires_at": expires,
        }
        assert client.get("/v1/voices", headers=headers).status_code == 403
        response = self._patch(client, url, alice.headers, **changed)
        assert response.status_code == 200, response.content
        body = response.json()
        assert {name: body[name] for name in changed if name != "expires_at"} == {
            name: value for name, value in changed.items() if name != "expires_at"
        }
        assert "RateLimit" in response.headers
        assert client.get("/v1/voices", headers=headers).status_code == 200
        quota = client.get("/v1/quota", headers=headers).json()
        assert (quota["characters_limit"], quota["requests_per_minute"]) == (900, 600)
        entry = AuditEntry.objects.get(action="key.updated")
        assert set(entry.data["before"]) == set(entry.data["after"]) == set(changed)
        assert (entry.data["before"]["requests_per_minute"], entry.data["after"]["name"]) == (7, "Newer")
        assert self._patch(client, url, alice.headers, allowed_ips=["192.0.2.1"]).status_code == 200
        assert _error(client.get("/v1/quota", headers=headers))[:2] == (403, "address_not_allowed")

    def test_nothing_given_or_nothing_new_changes_nothing(self, client, alice):
        url, _secret = self._key(alice)
        for fields in ({}, {"name": " Old "}):
            assert self._patch(client, url, alice.headers, **fields).status_code == 200
        assert not AuditEntry.objects.filter(action="key.updated").exists()

    @pytest.mark.parametrize(
        ("fields", "code", "param"),
        [
            ({"unknown": 1}, "unknown_field", "unknown"),
            ({"name": ""}, "invalid_value", "name"),
            ({"name": None}, "invalid_value", "name"),
            ({"scopes": []}, "scope_missing", "scopes"),
            ({"scopes": ["everything"]}, "scope_unknown", "scopes"),
            ({"expires_at": "2020-01-01T00:00:00Z"}, "expiry_past", "expires_at"),
            ({"characters_per_month": 0}, "invalid_value", "characters_per_month"),
            ({"requests_per_minute": "7"}, "invalid_value", "requests_per_minute"),
            ({"allowed_ips": ["home"]}, "address_invalid", "allowed_ips"),
        ],
    )
    def test_a_wrong_field_is_named(self, client, alice, fields, code, param):
        url, _secret = self._key(alice)
        assert _error(self._patch(client, url, alice.headers, **fields)) == (400, code, param)

    def test_a_revoked_one(self, client, alice):
        url, _secret = self._key(alice)
        client.delete(url, headers=alice.headers)
        assert _error(self._patch(client, url, alice.headers, name="x"))[:2] == (409, "api_key_revoked")

    def test_a_bound_key_frees_none_and_may_narrow_any(self, client, alice):
        soon, later = (timezone.now() + timedelta(days=days) for days in (1, 9))
        bounds = {
            "scopes": ["keys:write", "usage:read"],
            "characters_per_month": 10,
            "expires_at": soon,
            "allowed_ips": ["127.0.0.0/8"],
        }
        own, bound = self._key(alice, **bounds)
        other, _secret = self._key(alice, **bounds | {"characters_per_month": 5})
        free, _secret = self._key(alice)
        wider = [
            {"scopes": ["keys:write", "usage:read", "voices:read"]},
            {"characters_per_month": 11},
            {"characters_per_month": None},
            {"expires_at": later.isoformat()},
            {"expires_at": None},
            {"allowed_ips": []},
            {"allowed_ips": ["0.0.0.0/0"]},
        ]
        for url in (own, other):
            for fields in wider:
                response = self._patch(client, url, bound, **fields)
                assert _error(response) == (403, "permission_denied", next(iter(fields)))
        for url in (free, other, own):
            narrower = {"characters_per_month": 4, "allowed_ips": ["127.0.0.1"], "scopes": ["usage:read"]}
            if url == free:
                narrower["expires_at"] = later.isoformat()
            assert self._patch(client, url, bound, **narrower).status_code == 200
        # It has just taken the scope from itself.
        assert _error(self._patch(client, other, bound, name="x"))[:2] == (403, "insufficient_scope")


class TestWhoMay:
    @pytest.mark.parametrize("method", ["get", "delete", "patch"])
    def test_a_strangers_and_a_colleagues(self, client, alice, charlie, method):
        bob = factories.colleague(alice, "Bob")
        url = f"{URL}/{alice.by_key.api_key.id}"
        for person in (bob, charlie):
            answer = getattr(client, method)(url, content_type="application/json", headers=person.headers)
            assert answer.status_code == 404
        assert client.get("/v1/quota", headers=alice.headers).status_code == 200

    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense"])
    def test_what_does_not_exist(self, client, alice, identifier):
        assert client.get(f"{URL}/{identifier}", headers=alice.headers).status_code == 404
        assert client.delete(f"{URL}/{identifier}", headers=alice.headers).status_code == 404

    def test_no_key_wrong_method_no_scope_viewer(self, client, alice):
        one = f"{URL}/{alice.by_key.api_key.id}"
        for url in (URL, one):
            assert client.get(url).status_code == 401
            assert client.put(url, headers=alice.headers).status_code == 405
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        assert _error(_post(client, _headers(secret)))[:2] == (403, "insufficient_scope")
        bob = factories.colleague(alice, "Bob")
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert _error(_post(client, bob.headers))[:2] == (403, "permission_denied")


@pytest.mark.parametrize(
    ("fields", "param", "near"),
    [
        ({"scope": ["voices:read"]}, "scope", "“scopes”"),
        ({"expires": "2030-01-01T00:00:00Z"}, "expires", "“expires_at”"),
        ({"ips": ["192.0.2.1"]}, "ips", "“allowed_ips”"),
        ({"colour": None}, "colour", "concurrent_requests"),
    ],
)
def test_what_is_misspelt_is_not_ignored(client, alice, fields, param, near):
    before = ApiKey.objects.count()
    response = _post(client, alice.headers, **fields)
    assert _error(response) == (400, "unknown_field", param)
    assert near in response.json()["error"]["message"]
    assert ApiKey.objects.count() == before
    listed = client.get(f"{URL}?limits=3", headers=alice.headers)
    assert _error(listed) == (400, "unknown_field", "limits")
    assert client.delete(f"{URL}?limit=0", headers=alice.headers).status_code == 405
    assert "“limit”" in listed.json()["error"]["message"]


def test_an_idempotency_key_is_refused_since_the_secret_is_kept_nowhere(client, alice):
    response = _post(client, alice.headers | {"idempotency-key": "k"})
    assert _error(response) == (400, "idempotency_not_supported", "Idempotency-Key")
