"""API keys on the team page."""

from __future__ import annotations

import re

import pytest

from accounts.models import ApiKey
from accounts.services import keys
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db


def test_create_shows_the_secret_once(sign_in, alice):
    client = sign_in(alice)
    answer = client.post("/team/keys/", {"name": "Website", "expires": "30"}, headers=HTMX)
    secret = re.search(r"chorus_\w{10}_\w{40}", answer.content.decode()).group(0)
    assert keys.authenticate(secret, ip="127.0.0.1").user == alice.user
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in client.get("/team/").content.decode()
    assert ApiKey.objects.get(name="Website").expires_at is not None


def test_the_example_works_as_it_is(sign_in, alice, hibari):
    page = (
        sign_in(alice).post("/team/keys/", {"name": "Website", "expires": ""}, headers=HTMX).content.decode()
    )
    assert "&quot;voice&quot;: &quot;Hibari&quot;" in page.replace('"', "&quot;")


def test_create_without_scripts(sign_in, alice):
    answer = sign_in(alice).post("/team/keys/", {"name": "Website", "expires": ""})
    assert re.search(r"chorus_\w{10}_\w{40}", answer.content.decode())
    assert "<html" in answer.content.decode()


def test_create_needs_a_name(sign_in, alice):
    answer = sign_in(alice).post("/team/keys/", {"name": " ", "expires": ""}, headers=HTMX)
    assert answer.status_code == 422
    assert "This field is required" in answer.content.decode()


def test_a_viewer_makes_none(sign_in, vera):
    answer = sign_in(vera).post("/team/keys/", {"name": "x", "expires": ""}, headers=HTMX)
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
