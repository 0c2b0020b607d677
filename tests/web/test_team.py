"""The team page: usage, members, invitations."""

from __future__ import annotations

import pytest
from django.core import mail

from accounts.models import Invitation, Membership
from accounts.services import teams
from tests import factories
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db


def test_shows_usage_members_and_keys(sign_in, alice, bob, hibari):
    factories.submit(alice, "twelve chars")
    page = sign_in(alice).get("/team/").content.decode()
    assert "Harbour Audio" in page
    assert "bob@example.org" in page
    assert "999,988" in page
    assert "test key" in page


def test_a_member_sees_no_management(sign_in, bob):
    page = sign_in(bob).get("/team/").content.decode()
    assert "Invite by e-mail" not in page
    assert "Name of the new key" in page


def test_a_viewer_makes_no_keys(sign_in, vera):
    assert "Name of the new key" not in sign_in(vera).get("/team/").content.decode()


def test_a_stranger_sees_his_own_team(sign_in, alice, charlie):
    page = sign_in(charlie).get("/team/").content.decode()
    assert "Harbour Audio" not in page
    assert "alice@example.org" not in page


def test_switch(sign_in, alice, charlie):
    Membership.objects.create(team=charlie.actor.team, user=alice.user, role="viewer")
    client = sign_in(alice)
    assert client.post("/team/switch/", {"team": str(charlie.actor.team.id)}).url == "/"
    assert "Charlie&#x27;s team" in client.get("/team/").content.decode()


def test_teams_of_the_same_name_are_told_apart(sign_in, alice, charlie):
    """Names may repeat, as they do elsewhere: the owner is named, and where that is the same the day."""
    twin = factories.owner("Dora", team="Harbour audio")
    Membership.objects.create(team=twin.actor.team, user=alice.user, role="viewer")
    page = sign_in(alice).get("/team/").content.decode()
    assert page.count('class="team-detail small quiet"') == 2
    assert "dora@example.org</span>" in page
    third = teams.create(owner=twin.user, name="Harbour Audio", plan=factories.plan())
    Membership.objects.create(team=third.team, user=alice.user, role="viewer")
    page = sign_in(alice).get("/team/").content.decode()
    assert f"dora@example.org · since {third.team.created_at:%b}" in page
    assert third.team.id.hex[-4:] in page
    assert 'class="team-detail small quiet"' not in sign_in(charlie).get("/team/").content.decode()


def test_no_switch_to_a_strangers_team(sign_in, alice, charlie):
    client = sign_in(alice)
    assert client.post("/team/switch/", {"team": str(charlie.actor.team.id)}).status_code == 404
    assert client.post("/team/switch/", {"team": "nonsense"}).status_code == 404
    assert client.get("/team/switch/").status_code == 405


def test_invite(sign_in, alice, settings, django_capture_on_commit_callbacks):
    settings.CHORUS_BASE_URL = "https://chorus.example"
    with django_capture_on_commit_callbacks(execute=True):
        answer = sign_in(alice).post(
            "/team/invitations/", {"email": "dora@example.org", "role": "viewer"}, headers=HTMX
        )
    assert "https://chorus.example/invitations/" in answer.content.decode()
    assert mail.outbox[0].to == ["dora@example.org"]
    assert Invitation.objects.get().role == "viewer"


@pytest.mark.parametrize(
    ("email", "message"),
    [("nonsense", "valid email"), ("bob@example.org", "already in the team"), ("", "required")],
)
def test_invite_refuses(sign_in, alice, bob, email, message):
    answer = sign_in(alice).post("/team/invitations/", {"email": email, "role": "member"}, headers=HTMX)
    assert (answer.status_code, answer.headers["HX-Reswap"]) == (422, "outerHTML")
    assert message in answer.content.decode()
    assert not Invitation.objects.exists()


def test_invite_is_not_for_members(sign_in, bob):
    answer = sign_in(bob).post(
        "/team/invitations/", {"email": "dora@example.org", "role": "member"}, headers=HTMX
    )
    assert answer.status_code == 422
    assert not Invitation.objects.exists()


def test_withdraw(sign_in, alice, charlie):
    made, _link = teams.invite(actor=alice.actor, email="d@example.org", role="member", accept_url="{token}")
    path = f"/team/invitations/{made.id}/withdraw/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(alice).post(path).url == "/team/"
    assert not Invitation.objects.exists()


def test_role(sign_in, alice, bob, charlie):
    path = f"/team/members/{bob.actor.membership.id}/role/"
    assert sign_in(charlie).post(path, {"role": "admin"}).status_code == 404
    assert sign_in(bob).post(path, {"role": "owner"}).status_code == 403
    answer = sign_in(alice).post(path, {"role": "admin"}, headers=HTMX)
    assert answer.status_code == 200
    assert Membership.objects.get(user=bob.user).role == "admin"


def test_remove(sign_in, alice, bob, charlie):
    path = f"/team/members/{bob.actor.membership.id}/remove/"
    assert sign_in(charlie).post(path).status_code == 404
    assert sign_in(alice).get(path).status_code == 405
    assert sign_in(alice).post(path, headers=HTMX).status_code == 200
    assert not Membership.objects.filter(user=bob.user).exists()


def test_the_last_owner_stays(sign_in, alice):
    answer = sign_in(alice).post(f"/team/members/{alice.actor.membership.id}/remove/", headers=HTMX)
    assert answer.status_code == 409
    assert "A team needs an owner" in answer.content.decode()
    assert "data-toast" in answer.content.decode()
