"""Joining a team by a link."""

from __future__ import annotations

import pytest

from accounts.models import Membership, User
from accounts.services import teams
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db


@pytest.fixture
def link(alice):
    _made, link = teams.invite(
        actor=alice.actor, email="dora@example.org", role="member", accept_url="/invitations/{token}/"
    )
    return link


def test_a_new_person_joins(client, alice, link):
    assert "Join Harbour Audio" in client.get(link).content.decode()
    answer = client.post(link, {"name": "Dora", "password": PASSWORD})
    assert answer.url == "/"
    assert Membership.objects.filter(team=alice.actor.team, user__email="dora@example.org").exists()
    assert "Welcome to Harbour Audio" in client.get("/").content.decode()
    assert client.get(link).status_code == 404


def test_a_weak_password_keeps_the_form(client, link):
    answer = client.post(link, {"name": "Dora", "password": "short"})
    assert answer.status_code == 422
    assert "too short" in answer.content.decode()
    assert not User.objects.filter(email="dora@example.org").exists()


def test_who_has_an_account_signs_in_first(client, sign_in, alice, charlie):
    _made, link = teams.invite(
        actor=alice.actor, email=charlie.user.email, role="member", accept_url="/invitations/{token}/"
    )
    assert "You already have an account" in client.get(link).content.decode()
    assert client.post(link, {"name": "x", "password": PASSWORD}).status_code == 422
    charlies = sign_in(charlie)
    assert charlies.post(link).url == "/"
    assert "Harbour Audio" in charlies.get("/team/").content.decode()


def test_somebody_else_cannot_use_it(sign_in, bob, link):
    answer = sign_in(bob).post(link)
    assert answer.status_code == 403
    assert "This invitation is for dora@example.org" in answer.content.decode()


def test_a_link_that_is_none(client, db):
    assert client.get("/invitations/nothing/").status_code == 404
