"""What holds for every operation of the panel: done once, as shown, and only what was touched."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from accounts.errors import InvalidInput, NotAllowed
from accounts.models import AuditEntry, Grant, Invitation, QuotaChange, TeamQuota
from accounts.operators import Operator
from accounts.services import (
    grants,
    operator_settings,
    people,
    personal,
    quotas,
    suspension,
    teams,
    two_factor,
)
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def client():
    return staff.client_of(staff.person())


def hidden(page: str) -> dict[str, str]:
    """What the form of an operation carries along by itself."""
    return {
        name: value.replace("&quot;", '"')
        for name, value in re.findall(
            r'<input type="hidden" name="(step|once|was|seen)" value="([^"]*)"', page
        )
    }


def test_what_is_sent_twice_is_done_once(client, alice):
    address = f"/admin/accounts/team/{alice.actor.team.pk}/do/grant/"
    values = {"characters": "500", "expires_at": "", "reason": "Launch"}
    asked = client.post(address, {**hidden(client.get(address).content.decode()), **values})
    carried = hidden(asked.content.decode())
    assert carried["step"] == "do"
    client.post(address, {**carried, **values})
    again = client.post(address, {**carried, **values}, follow=True)
    assert "sent twice" in again.content.decode()
    assert Grant.objects.count() == 1


def test_what_was_refused_may_be_sent_again(client, alice):
    address = f"/admin/accounts/team/{alice.actor.team.pk}/do/adjust/"
    carried = {**hidden(client.get(address).content.decode()), "step": "do"}
    assert client.post(address, {**carried, "characters": "5", "reason": " . "[:1]}).status_code == 422
    assert client.post(address, {**carried, "characters": "5", "reason": "Asked"}).status_code == 302


def test_a_preview_that_no_longer_holds_is_shown_again(client, alice):
    team = alice.actor.team
    address = f"/admin/accounts/team/{team.pk}/do/limits/"
    values = {"plan": str(team.plan_id), "stored_voices": "7", "reason": ""}
    asked = client.post(address, {**hidden(client.get(address).content.decode()), **values})
    quotas.change(by=BY, targets=[team], values={"stored_voices": 9})
    late = client.post(address, {**hidden(asked.content.decode()), **values})
    assert "Somebody else changed this" in late.content.decode()
    assert TeamQuota.objects.get().stored_voices == 9
    client.post(address, {**hidden(late.content.decode()), **values})
    assert TeamQuota.objects.get().stored_voices == 7


def test_only_what_was_touched_is_changed_or_planned(client, alice):
    team = alice.actor.team
    address = f"/admin/accounts/team/{team.pk}/do/limits/"
    opened = hidden(client.get(address).content.decode())
    quotas.change(by=BY, targets=[team], values={"concurrent_requests": 2})
    values = {"plan": str(team.plan_id), "stored_voices": "7", "next_period": "1", "reason": ""}
    asked = client.post(address, {**opened, **values}).content.decode()
    assert "requests spoken at once" not in asked
    client.post(address, {**hidden(asked), **values})
    assert QuotaChange.objects.get(applied_at=None).after == {"stored_voices": 7}


def test_settings_of_somebody_else_stay(client):
    address = reverse("admin:settings")
    opened = hidden(client.get(address).content.decode())
    operator_settings.change(by=BY, key="announcement", value="We move on Friday.")
    before = {"sign_up": "invitation", "announcement": "", "announcement_kind": "info"}
    client.post(address, {**opened, **before, "currency": "USD"})
    operator_settings.forget()
    assert operator_settings.get("currency") == "USD"
    assert operator_settings.get("announcement") == "We move on Friday."


def test_an_undo_shows_every_change_and_refuses_before_it_asks(client, alice):
    bob = factories.owner("Bob", team="Night Radio")
    made = quotas.change(by=BY, targets=[alice.actor.team, bob.actor.team], values={"stored_voices": 3})
    address = "/admin/accounts/quotachange/"
    chosen = {"action": "undo", "_selected_action": [str(one.pk) for one in made], "index": "0"}
    page = client.post(address, chosen).content.decode()
    assert hidden(page)["step"] == "do"  # there was nothing to ask
    listed = client.get(address).content.decode()
    assert not re.search(
        r'<a href="[^"]*"></?a', listed
    )  # a link in a link: the change itself could not be reached
    assert page.count('data-label="Then"') == 2
    quotas.change(by=BY, targets=[bob.actor.team], values={"stored_voices": 4})
    late = client.get(f"{address}{made[1].pk}/do/undo/")
    assert late.status_code == 422
    assert "changed again since" in late.content.decode()


def test_a_row_that_cannot_exist_is_no_error_of_ours(client, alice):
    chosen = {"action": "suspend", "_selected_action": ["zz"], "index": "0"}
    assert client.post("/admin/accounts/team/", chosen).status_code == 400


def test_no_role_reaches_an_administrator(alice):
    root = staff.person()
    trust = Operator.person(staff.person("Trudy", roles=["trust"]))
    for forbidden in (
        suspension.suspend_user,
        suspension.restore_user,
        people.end_access,
        two_factor.reset,
    ):
        with pytest.raises(NotAllowed):
            forbidden(by=trust, user_id=root.pk)
    people.end_access(by=trust, user_id=alice.user.pk)


def test_nobody_is_restored_who_was_erased(client, alice):
    bob = factories.colleague(alice, "Bob")
    personal.erase(by=BY, user_id=bob.user.pk)
    address = f"/admin/accounts/user/{bob.user.pk}/"
    page = client.get(address).content.decode()
    assert "do/restore/" not in page
    assert "do/access/" not in page
    assert client.post(f"{address}do/restore/", {"step": "do"}).status_code == 302
    bob.user.refresh_from_db()
    assert not bob.user.is_active


def test_an_invitation_is_withdrawn_and_its_link_is_over(client, alice):
    made, _link = teams.invite(
        actor=alice.actor, email="dora@example.org", role="member", accept_url="https://c.example/{token}/"
    )
    address = f"/admin/accounts/invitation/{made.pk}/do/withdraw/"
    assert client.post(address, {"step": "do"}).status_code == 302
    assert not Invitation.objects.exists()
    assert AuditEntry.objects.get(action="invitation.withdrawn").data["email"] == "dora@example.org"


def test_a_correction_is_shown_from_where_the_month_really_is(client, alice):
    team = alice.actor.team
    limit = team.plan.characters_per_month
    grants.adjust(by=BY, team=team, characters=-limit - 1_000, reason="Too much")
    address = f"/admin/accounts/team/{team.pk}/do/grant/"
    shown = client.post(address, {"step": "ask", "characters": "400", "expires_at": "", "reason": "x"})
    assert "0, 0 left" in re.findall(r'data-label="Then"><strong>([^<]*)', shown.content.decode())
    assert (
        client.post(
            address, {"step": "ask", "characters": "400", "expires_at": "2020-01-01", "reason": "x"}
        ).status_code
        == 422
    )


def test_domains_of_every_script_and_mistakes_lead_back_to_the_panel(client):
    operator_settings.change(by=BY, key="allowed_email_domains", value="例子.中国, example.org")
    for address in ("li@例子.中国", "li@xn--fsqu00a.xn--fiqs8s", "li@Example.org"):
        operator_settings.check_email(address)
    with pytest.raises(InvalidInput):
        operator_settings.check_email("li@例子.org")
    assert 'href="/admin/">' in client.get("/admin/failures/?hours=5").content.decode()


def test_an_id_is_found_by_its_beginning_as_pages_show_it(client, alice):
    whole = str(alice.actor.team.pk)
    for shown in (whole, f"{whole[:23]}…", whole[:23]):
        page = client.get("/admin/accounts/team/", {"q": shown}).content.decode()
        assert "Harbour Audio" in page
    assert "Nothing matches" in client.get("/admin/accounts/team/", {"q": "ffffffff-ffff…"}).content.decode()
