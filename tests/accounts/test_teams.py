"""Members, roles and invitations."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from accounts.errors import ChorusError, Conflict, InvalidInput, NotAllowed, NotFound
from accounts.models import AuditEntry, Invitation, Membership, Role, User
from accounts.services import keys, teams
from tests import factories

pytestmark = pytest.mark.django_db

URL = "http://chorus.test/invitations/{token}"


def _invite(person, email="dora@example.org", role=Role.MEMBER):
    invitation, link = teams.invite(actor=person.actor, email=email, role=role, accept_url=URL)
    return invitation, link.rsplit("/", 1)[1]


def test_an_invitation_brings_a_new_person_in(django_capture_on_commit_callbacks):
    alice = factories.owner("Alice")
    with django_capture_on_commit_callbacks(execute=True):
        invitation, token = _invite(alice, "Dora@Example.org")
    assert token in mail.outbox[0].body
    assert mail.outbox[0].to == ["dora@example.org"]
    assert token.encode() not in bytes(invitation.token_digest)
    membership = teams.accept(token=token, user=None, name="多拉", password=factories.PASSWORD)
    assert (membership.team, membership.role, membership.user.email) == (
        alice.actor.team,
        "member",
        "dora@example.org",
    )
    assert membership.user.check_password(factories.PASSWORD)
    with pytest.raises(NotFound):
        teams.accept(token=token, user=None, name="x", password=factories.PASSWORD)


def test_an_invitation_is_for_one_person():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    _invitation, token = _invite(alice, charlie.user.email)
    with pytest.raises(Conflict) as caught:
        teams.accept(token=token, user=None, name="x", password=factories.PASSWORD)
    assert caught.value.code == "account_exists"
    with pytest.raises(NotAllowed):
        teams.accept(token=token, user=alice.user)
    assert teams.accept(token=token, user=charlie.user).team == alice.actor.team


@pytest.mark.parametrize("end", ["expire", "withdraw", "replace"])
def test_an_invitation_ends(end):
    alice = factories.owner("Alice")
    invitation, token = _invite(alice)
    if end == "expire":
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "withdraw":
        teams.withdraw(actor=alice.actor, invitation_id=invitation.id)
    else:
        _invite(alice)
    with pytest.raises(NotFound):
        teams.find_invitation(token)


def test_a_weak_password_makes_no_account():
    alice = factories.owner("Alice")
    _invitation, token = _invite(alice)
    with pytest.raises(InvalidInput) as caught:
        teams.accept(token=token, user=None, name="x", password="12345678901")
    assert caught.value.code == "password_weak"
    assert not User.objects.filter(email="dora@example.org").exists()
    assert teams.find_invitation(token).is_open


@pytest.mark.parametrize(
    ("email", "role", "code"),
    [
        ("nonsense", "member", "email_invalid"),
        (f"{'x' * 243}@example.org", "member", "email_invalid"),
        ("d@example.org", "king", "role_unknown"),
        ("alice@example.org", "member", "already_member"),
    ],
)
def test_bad_invitations(email, role, code):
    alice = factories.owner("Alice")
    with pytest.raises(ChorusError) as caught:
        _invite(alice, email, role)
    assert caught.value.code == code


def test_who_may_invite():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    bob = factories.colleague(alice, "Bob")
    admin = factories.colleague(alice, "Ada", Role.ADMIN)
    with pytest.raises(NotAllowed):
        _invite(bob)
    with pytest.raises(NotAllowed):
        _invite(admin, role=Role.OWNER)
    invitation, _token = _invite(admin)
    with pytest.raises(NotFound):
        teams.withdraw(actor=charlie.actor, invitation_id=invitation.id)


def test_a_team_keeps_an_owner():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    mine = alice.actor.membership.id
    for attempt in (
        lambda: teams.change_role(actor=alice.actor, membership_id=mine, role=Role.MEMBER),
        lambda: teams.remove(actor=alice.actor, membership_id=mine),
    ):
        with pytest.raises(Conflict) as caught:
            attempt()
        assert caught.value.code == "last_owner"
    teams.change_role(actor=alice.actor, membership_id=bob.actor.membership.id, role=Role.OWNER)
    teams.remove(actor=alice.actor, membership_id=mine)
    assert Membership.objects.get(team=alice.actor.team).user == bob.user


def test_who_leaves_takes_no_key_along():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    bob = factories.colleague(alice, "Bob")
    with pytest.raises(NotFound):
        teams.remove(actor=charlie.actor, membership_id=bob.actor.membership.id)
    teams.remove(actor=bob.actor, membership_id=bob.actor.membership.id)
    with pytest.raises(ChorusError):
        keys.authenticate(bob.secret, ip="127.0.0.1")
    assert AuditEntry.objects.filter(action="member.removed", team_id=alice.actor.team.id).exists()


def test_an_admin_cannot_touch_an_owner():
    alice = factories.owner("Alice")
    ada = factories.colleague(alice, "Ada", Role.ADMIN)
    second = factories.colleague(alice, "Olga", Role.OWNER)
    for attempt in (
        lambda: teams.change_role(
            actor=ada.actor, membership_id=second.actor.membership.id, role=Role.VIEWER
        ),
        lambda: teams.remove(actor=ada.actor, membership_id=second.actor.membership.id),
    ):
        with pytest.raises(NotAllowed):
            attempt()


def test_sign_in_by_e_mail_in_any_case(client):
    factories.owner("Alice")
    assert client.login(username="ALICE@Example.ORG", password=factories.PASSWORD)
    assert re.fullmatch(r"argon2.*", User.objects.get().password)


def test_names_may_repeat_and_an_operator_is_told():
    one, other = factories.owner("Alice", team="Twin"), factories.owner("Bob", team="twin")
    assert teams.named(str(other.actor.team.id)) == other.actor.team
    assert teams.named("nobody") is None
    with pytest.raises(InvalidInput) as caught:
        teams.named("TWIN")
    assert caught.value.code == "team_ambiguous"
    assert one.actor.team != other.actor.team
