"""Joining a team by a link."""

from __future__ import annotations

import pytest
from django.test import Client

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


def test_a_used_link_leads_into_the_team_for_who_used_it(client, sign_in, alice, bob, link):
    client.post(link, {"name": "Dora", "password": PASSWORD})
    dora = Membership.objects.get(team=alice.actor.team, user__email="dora@example.org")
    for answer in (client.get(link), client.post(link)):
        assert answer.url == "/"
    assert "You are in Harbour Audio already" in client.get("/").content.decode()
    assert sign_in(bob).get(link).status_code == Client().get(link).status_code == 404
    teams.remove(actor=alice.actor, membership_id=dora.id)
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
