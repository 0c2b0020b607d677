"""What operators do for people and teams."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from accounts.errors import InvalidInput, NotAllowed, NotAuthenticated
from accounts.models import AuditEntry, Role, Team
from accounts.operators import Operator
from accounts.services import keys, people, teams
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture
def alice():
    return factories.owner("Alice")


def test_a_key_is_revoked_at_once(alice):
    people.revoke_key(by=BY, key_id=alice.by_key.api_key.pk, reason="Leaked")
    with pytest.raises(NotAuthenticated):
        keys.authenticate(alice.secret, ip="127.0.0.1")
    assert AuditEntry.objects.get(action="key.revoked").data["reason"] == "Leaked"


def test_sessions_and_keys_of_one_person_end(alice):
    charlie = factories.owner("Charlie")
    browsers = {person: Client() for person in (alice, charlie)}
    for person, browser in browsers.items():
        browser.force_login(person.user)
    second = Client()
    second.force_login(alice.user)
    assert people.end_access(by=BY, user_id=alice.user.pk) == (2, 1)
    assert browsers[alice].get("/").status_code == 302
    assert second.get("/").status_code == 302
    assert browsers[charlie].get("/").status_code == 200
    keys.authenticate(charlie.secret, ip="127.0.0.1")


def test_a_team_for_somebody_new_is_owned_by_invitation(django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        team, link = people.create_team(
            by=BY,
            name="  New   Wave ",
            plan=factories.plan(),
            owner_email="Dana@Example.org",
            time_zone="Asia/Tokyo",
        )
    assert (team.name, team.time_zone) == ("New Wave", "Asia/Tokyo")
    assert mail.outbox[0].to == ["dana@example.org"]
    assert link in mail.outbox[0].body
    token = link.rstrip("/").rsplit("/", 1)[1]
    membership = teams.accept(token=token, user=None, name="Dana", password=factories.PASSWORD)
    assert (membership.team, membership.role) == (team, Role.OWNER)


def test_a_team_for_somebody_known_is_theirs_at_once(alice):
    team, link = people.create_team(by=BY, name="Second", plan=factories.plan(), owner_email=alice.user.email)
    assert link == ""
    assert team.memberships.get().user == alice.user


def test_name_and_time_zone(alice):
    people.change_team(by=BY, team_id=alice.actor.team.pk, name="Other", time_zone="Asia/Shanghai")
    entry = AuditEntry.objects.get(action="team.changed")
    assert entry.data["before"] == {"name": "Alice's team", "time_zone": "UTC"}
    for wrong in ({"name": " ", "time_zone": "UTC"}, {"name": "A", "time_zone": "Mars/Base"}):
        with pytest.raises(InvalidInput):
            people.change_team(by=BY, team_id=alice.actor.team.pk, **wrong)


def test_without_the_right_nothing_happens(alice):
    nobody = Operator.person(staff.person("Newcomer", superuser=False))
    with pytest.raises(NotAllowed):
        people.revoke_key(by=nobody, key_id=alice.by_key.api_key.pk)
    with pytest.raises(NotAllowed):
        people.end_access(by=nobody, user_id=alice.user.pk)
    with pytest.raises(NotAllowed):
        people.create_team(by=nobody, name="X", plan=factories.plan(), owner_email="x@example.org")


def test_from_the_panel(alice):
    client = staff.client_of(staff.person())
    key = alice.by_key.api_key
    client.post(f"/admin/accounts/apikey/{key.pk}/do/revoke/", {"step": "do", "reason": ""})
    key.refresh_from_db()
    assert key.revoked_at is not None
    sent = {"name": "Third", "plan": str(factories.plan().pk), "owner": "eve@example.org", "time_zone": "UTC"}
    assert client.post("/admin/accounts/team/do/new/", {"step": "do", **sent}).status_code == 302
    team = Team.objects.get(name="Third")
    sent = {"name": "Fourth", "time_zone": "Europe/Paris"}
    client.post(f"/admin/accounts/team/{team.pk}/do/change/", {"step": "do", **sent})
    team.refresh_from_db()
    assert (team.name, team.time_zone) == ("Fourth", "Europe/Paris")
    client.post(f"/admin/accounts/user/{alice.user.pk}/do/end-access/", {"step": "do", "reason": ""})
    assert AuditEntry.objects.filter(action="user.access_ended").exists()
