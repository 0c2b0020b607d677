"""API keys on the team page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import ApiKey
from accounts.services import keys
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db

NEW = {"name": "Website", "expires": "", "scopes": ["syntheses:write", "syntheses:read"]}


def test_create_shows_the_secret_once(sign_in, alice):
    client = sign_in(alice)
    answer = client.post("/team/keys/", NEW | {"expires": "30"}, headers=HTMX)
    secret = re.search(r"chorus_\w{10}_\w{40}", answer.content.decode()).group(0)
    assert keys.authenticate(secret, ip="127.0.0.1").user == alice.user
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in client.get("/team/").content.decode()
    assert ApiKey.objects.get(name="Website").expires_at is not None


def test_the_example_works_as_it_is(sign_in, alice, hibari):
    page = sign_in(alice).post("/team/keys/", NEW, headers=HTMX).content.decode()
    assert "&quot;voice&quot;: &quot;Hibari&quot;" in page.replace('"', "&quot;")


def test_create_without_scripts(sign_in, alice):
    answer = sign_in(alice).post("/team/keys/", NEW)
    assert re.search(r"chorus_\w{10}_\w{40}", answer.content.decode())
    assert "<html" in answer.content.decode()


def test_create_needs_a_name(sign_in, alice):
    answer = sign_in(alice).post("/team/keys/", NEW | {"name": " "}, headers=HTMX)
    assert answer.status_code == 422
    assert "This field is required" in answer.content.decode()


def test_create_needs_something_that_it_may_do(sign_in, alice):
    answer = sign_in(alice).post("/team/keys/", {"name": "Website", "expires": ""}, headers=HTMX)
    assert answer.status_code == 422
    assert "Choose at least one scope" in answer.content.decode()
    assert '<details class="key-more" open>' in answer.content.decode()
    assert not ApiKey.objects.filter(name="Website").exists()


def test_a_viewer_makes_none(sign_in, vera):
    answer = sign_in(vera).post("/team/keys/", NEW, headers=HTMX)
    assert answer.status_code == 422
    assert not ApiKey.objects.filter(user=vera.user).exists()


def test_revoke(sign_in, alice, bob, charlie):
    key, _secret = keys.create(actor=bob.actor, name="Bob's")
    path = f"/team/keys/{key.id}/revoke/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(alice).get(path).status_code == 405
    answer = sign_in(alice).post(path, headers=HTMX)
    assert "Revoked" in answer.content.decode()
    key.refresh_from_db()
    assert key.revoked_at is not None


def test_a_member_revokes_only_own_keys(sign_in, alice, bob):
    key, _secret = keys.create(actor=alice.actor, name="Alice's")
    assert sign_in(bob).post(f"/team/keys/{key.id}/revoke/").status_code == 404


class TestChange:
    def _post(self, client, key, headers=HTMX, **fields):
        sent = {
            "name": "Website",
            "allowed_ips": "127.0.0.1, 10.0.0.0/8",
            "requests_per_minute": "30",
            "scopes": key.scopes,
        } | fields
        return client.post(f"/team/keys/{key.id}/", sent, headers=headers)

    def test_name_limits_and_networks(self, sign_in, alice):
        key, secret = keys.create(actor=alice.actor, name="Old", characters_per_month=5)
        client = sign_in(alice)
        assert f'id="key-{key.id}-allowed_ips"' in client.get("/team/").content.decode()
        answer = self._post(client, key)
        assert answer.status_code == 200
        assert "30 requests a minute" in answer.content.decode()
        key = keys.authenticate(secret, ip="10.1.2.3").api_key
        assert (key.name, key.characters_per_month, key.requests_per_minute) == ("Website", None, 30)
        assert self._post(client, key, headers={}, name="Again").status_code == 302

    def test_what_it_may_do_and_until_when(self, sign_in, alice):
        key, secret = keys.create(
            actor=alice.actor, name="Old", expires_at=timezone.now() + timedelta(days=2)
        )
        until = key.expires_at
        client = sign_in(alice)
        day = timezone.localdate(until)
        assert self._post(client, key, scopes=["voices:read"], last_day=day.isoformat()).status_code == 200
        key = keys.authenticate(secret, ip="127.0.0.1").api_key
        assert (key.scopes, key.expires_at) == (["voices:read"], until)
        later = day + timedelta(days=30)
        self._post(client, key, scopes=["voices:read", "usage:read"], last_day=later.isoformat())
        key.refresh_from_db()
        assert sorted(key.scopes) == ["usage:read", "voices:read"]
        assert timezone.localdate(key.expires_at) == later
        self._post(client, key, last_day="")
        key.refresh_from_db()
        assert key.expires_at is None
        past = self._post(client, key, last_day="2020-01-01")
        assert (past.status_code, "lies in the past" in past.content.decode()) == (422, True)
        assert self._post(client, key, scopes=[]).status_code == 422
        assert self._post(client, key, last_day="9999-12-31").status_code == 200
        assert "9999-12-31" in client.get("/team/").content.decode(), "as far as a calendar goes"

    def test_nobody_gives_a_key_what_they_may_not_do(self, sign_in, alice, bob):
        key, _secret = keys.create(actor=bob.actor, name="Bob's")
        page = sign_in(bob).get("/team/").content.decode()
        assert 'value="team:write"' not in page
        assert self._post(sign_in(bob), key, scopes=[*key.scopes, "team:write"]).status_code == 422

    def test_what_is_wrong_is_said_beside_it(self, sign_in, alice):
        key, _secret = keys.create(actor=alice.actor, name="Old")
        answer = self._post(sign_in(alice), key, allowed_ips="home")
        assert answer.status_code == 422
        assert "neither an IP address nor a network" in answer.content.decode()
        assert '<details class="key-more" open>' in answer.content.decode()
        key.refresh_from_db()
        assert key.name == "Old"

    def test_whose(self, sign_in, alice, bob, charlie):
        key, _secret = keys.create(actor=alice.actor, name="Alice's")
        for person in (bob, charlie):
            assert self._post(sign_in(person), key).status_code == 404
