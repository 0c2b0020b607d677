"""Acting as somebody else: told, limited, audited."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from accounts.errors import Conflict, InvalidInput, NotAllowed
from accounts.models import ApiKey, AuditEntry, User
from accounts.operators import Operator
from accounts.services import impersonation
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def acting(alice, django_capture_on_commit_callbacks) -> Client:
    """A browser of the administrator, who acts as Alice."""
    client = staff.client_of(staff.person())
    with django_capture_on_commit_callbacks(execute=True):
        answer = client.post(
            f"/admin/accounts/user/{alice.user.pk}/do/act/", {"step": "do", "reason": "Cannot hear it"}
        )
    assert answer.headers["Location"] == "/"
    return client


def test_the_person_is_told_and_the_log_of_their_team_says_so(acting, alice):
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"]
    assert "root@chorus.example" in message.body
    assert "Cannot hear it" in message.body
    entry = AuditEntry.objects.get(action="user.acted_as", team_id=alice.actor.team.pk)
    assert entry.actor_name == "root@chorus.example"


def test_every_page_says_it_and_one_press_ends_it(acting):
    page = acting.get("/").content.decode()
    assert "act as alice@example.org" in page
    assert acting.post("/acting/end/").status_code == 302
    assert "alice@example.org" not in acting.get("/admin/", follow=True).content.decode()
    # Oneself again, and asked for the second factor.
    assert acting.get("/admin/", follow=True).redirect_chain[-1][0].startswith("/admin/two-factor/")
    assert AuditEntry.objects.filter(action="user.acted_as_ended").count() == 1


def test_the_audit_log_names_the_operator(acting, alice):
    invited = acting.post("/team/invitations/", {"email": "new@example.org", "role": "member"})
    assert invited.status_code in (200, 302)
    entry = AuditEntry.objects.get(action="member.invited")
    assert (entry.actor_name, entry.data["acting_by"]) == ("alice@example.org", "root@chorus.example")


def test_what_is_the_persons_alone_is_refused(acting, alice):
    before = User.objects.get(pk=alice.user.pk).password
    sent = {
        "form": "password",
        "old_password": factories.PASSWORD,
        "new_password1": "x" * 12,
        "new_password2": "x" * 12,
    }
    assert acting.post("/account/", sent).status_code == 403
    assert acting.post("/team/keys/", {"name": "mine", "expires": ""}).status_code == 403
    assert User.objects.get(pk=alice.user.pk).password == before
    assert ApiKey.objects.count() == 1
    assert acting.get("/account/").status_code == 200


def test_the_panel_is_closed_meanwhile(acting):
    assert acting.get("/admin/", follow=True).status_code == 403


def test_it_ends_by_itself(acting):
    session = acting.session
    kept = session[impersonation.SESSION]
    session[impersonation.SESSION] = kept | {"until": 1.0}
    session.save()
    assert acting.get("/").headers["Location"] == "/sign-in/"
    assert acting.get("/").status_code == 302


def test_whom_one_cannot_act_as(rf, alice):
    by = Operator.person(staff.person())
    other = staff.person("Other")
    with pytest.raises(Conflict):
        impersonation.begin(rf.get("/"), by=by, user_id=other.pk, reason="x")
    with pytest.raises(InvalidInput):
        impersonation.begin(rf.get("/"), by=by, user_id=alice.user.pk, reason=" ")
    alice.user.is_active = False
    alice.user.save()
    with pytest.raises(Conflict):
        impersonation.begin(rf.get("/"), by=by, user_id=alice.user.pk, reason="x")
    with pytest.raises(NotAllowed):
        impersonation.begin(
            rf.get("/"),
            by=Operator.person(staff.person("Helper", roles=["support"])),
            user_id=alice.user.pk,
            reason="x",
        )


def test_nobody_ends_what_they_did_not_begin(alice):
    client = Client()
    client.force_login(alice.user)
    assert client.post("/acting/end/").status_code == 403
    assert Client().post("/acting/end/").status_code == 403
