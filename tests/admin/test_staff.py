"""Who has which access to the panel."""

from __future__ import annotations

import pytest

from accounts.errors import Conflict, InvalidInput, NotAllowed
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import staff as access
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db


def test_every_permission_of_every_role_exists():
    access.seed_roles()


def test_roles_are_given_and_taken_with_an_entry_in_the_log():
    root, alice = staff.person(), factories.owner("Alice").user
    by = Operator.person(root)
    access.set_access(by=by, user_id=alice.pk, roles=["billing", "support"])
    alice = type(alice).objects.get(pk=alice.pk)
    assert alice.is_staff
    assert alice.has_perm("accounts.add_grant")
    access.set_access(by=by, user_id=alice.pk, roles=[])
    alice = type(alice).objects.get(pk=alice.pk)
    assert not alice.is_staff
    assert not alice.has_perm("accounts.add_grant")
    entry = AuditEntry.objects.filter(action="staff.access_changed").latest("id")
    assert (entry.data["before"], entry.data["after"]) == (["billing", "support"], [])


def test_nobody_lifts_themselves_or_makes_administrators_without_being_one():
    root = staff.person()
    helper = staff.person("Helper", roles=["trust"])
    with pytest.raises(NotAllowed):
        access.set_access(by=Operator.person(helper), user_id=helper.pk, roles=["billing"])
    with pytest.raises(Conflict):
        access.set_access(by=Operator.person(root), user_id=root.pk, roles=[])


def test_one_administrator_remains():
    root = staff.person()
    with pytest.raises(Conflict) as caught:
        access.set_access(by=Operator.command(), user_id=root.pk, roles=["support"])
    assert caught.value.code == "last_administrator"
    staff.person("Second")
    access.set_access(by=Operator.command(), user_id=root.pk, roles=["support"])


def test_an_unknown_role_is_refused():
    with pytest.raises(InvalidInput):
        access.set_access(by=Operator.command(), user_id=staff.person().pk, roles=["king"])


def test_from_the_panel():
    client = staff.client_of(staff.person())
    alice = factories.owner("Alice").user
    address = f"/admin/accounts/user/{alice.pk}/do/access/"
    assert "support" in client.post(address, {"step": "ask", "roles": ["support"]}).content.decode()
    client.post(address, {"step": "do", "roles": ["support"]})
    alice.refresh_from_db()
    assert alice.is_staff
