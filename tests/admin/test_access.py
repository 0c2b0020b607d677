"""Who gets into the panel, and what those see there who may not see something: nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import resolve, reverse

from accounts.models import User
from accounts.panel.site import panel
from accounts.services import quotas, teams
from accounts.services.staff import ROLES
from synthesis.models import Voice
from tests import factories
from tests.admin import scene, staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def things():
    """One row of everything, with names to look for."""
    played = scene.play()
    alice = played.alice
    quotas.change(by=scene.BY, targets=[played.bob.actor.membership], values={"characters_per_month": 10_000})
    teams.invite(
        actor=alice.actor,
        email="dora@example.org",
        role="member",
        accept_url="https://chorus.example/{token}/",
    )
    return alice


def registered() -> list[tuple[Any, Any]]:
    """(model, its admin) of every list."""
    return list(panel()._registry.items())


def pages() -> list[str]:
    """Every page of the panel: lists, objects, operations, pages of their own."""
    found = [reverse("admin:index"), "/admin/rq/", "/admin/rq/queues/0/", "/admin/rq/stats.json"]
    for model, model_admin in registered():
        found.append(model_admin.url("changelist"))
        obj = model.objects.first()
        if obj is not None:
            found.append(model_admin.url("change", quote(obj.pk)))
        for operation in model_admin.operations:
            if operation.alone:
                found.append(model_admin.url("many", operation.name))
            elif obj is not None and operation.applies(obj):
                found.append(model_admin.url("do", quote(obj.pk), operation.name))
    ids = {"user_id": User.objects.order_by("pk").first(), "voice_id": Voice.objects.first()}
    for page in panel()._pages:
        names = re.findall(r"<uuid:(\w+)>", page.route)
        found.append(reverse(f"admin:{page.name}", kwargs={name: ids[name].pk for name in names}))
    return found


def test_the_table_of_pages_is_complete(things):
    """Every address below /admin/ is one of `pages`, or of those that sign people in."""
    for model, _model_admin in registered():
        assert model.objects.exists(), model
    known = set()
    for page in pages():
        match = resolve(page)
        known.add(match.view_name if "rq" not in match.view_name else "rq")
    # What concerns nobody but oneself, and where Django sends strangers.
    known |= {f"admin:{name}" for name in ("login", "logout", "two_factor", "recovery_codes", "jsi18n")}
    patterns = {
        f"admin:{pattern.name}"
        for entry in panel().get_urls()
        for pattern in getattr(entry, "url_patterns", [entry])
        if getattr(pattern, "name", None)
    }
    # Addresses of operations that a table does not have.
    assert {name for name in patterns - known if not name.endswith(("_many", "_do"))} == set()


def test_strangers_are_sent_to_sign_in_and_back(things):
    for page in pages():
        answer = Client().get(page)
        assert answer.status_code == 302, page
        assert answer.headers["Location"].startswith("/admin/login/"), page
    answer = Client().get("/admin/login/?next=/admin/accounts/team/")
    assert answer.headers["Location"] == "/sign-in/?next=/admin/accounts/team/"


def test_a_user_who_is_no_staff_gets_nothing(things):
    client = Client()
    client.force_login(things.user)
    for page in pages():
        answer = client.get(page, follow=True)
        assert answer.status_code == 403, page
        assert b"Harbour Audio" not in answer.content, page


def test_staff_without_a_second_factor_is_sent_to_it(things):
    client = Client()
    client.force_login(staff.person())
    for page in pages():
        answer = client.get(page, follow=True)
        assert answer.redirect_chain[-1][0].startswith("/admin/two-factor/"), page
        assert b"Harbour Audio" not in answer.content, page


def test_staff_without_a_permission_gets_nothing_on_each_page(things):
    client = staff.client_of(staff.person("Newcomer", superuser=False))
    for page in pages():
        answer = client.get(page)
        assert answer.status_code == (200 if page == "/admin/" else 403), page
        for word in (b"Harbour Audio", b"alice@example.org", b"CUDA out of memory"):
            assert word not in answer.getvalue(), (page, word)


def test_staff_without_a_permission_can_do_nothing_by_post(things):
    client = staff.client_of(staff.person("Newcomer", superuser=False))
    for page in pages():
        if "/do/" in page or "/rq/" in page:
            assert client.post(page, {"step": "do"}).status_code == 403, page


def test_the_navigation_shows_only_what_is_allowed(things):
    newcomer = staff.client_of(staff.person("Newcomer", superuser=False)).get("/admin/").content.decode()
    assert "/admin/accounts/team/" not in newcomer
    support = staff.client_of(staff.person("Helper", roles=["support"])).get("/admin/").content.decode()
    assert "/admin/accounts/team/" in support
    assert "/admin/accounts/ledgerentry/" not in support


def test_an_administrator_sees_every_page(things):
    client = staff.client_of(staff.person())
    for page in pages():
        # The export of a person's data is a POST; a sample is there for presets that have one.
        expected = {405} if page.endswith("/export/") and "/people/" in page else {200}
        assert client.get(page).status_code in expected, page


def test_each_role_sees_its_own_pages_and_nothing_of_the_others(things):
    """What a role may see is written in ROLES; each page says by its permission whether that is enough."""
    for role, (_label, permissions) in ROLES.items():
        client = staff.client_of(staff.person(role.capitalize(), roles=[role]))
        for model, model_admin in registered():
            view = f"{model._meta.app_label}.view_{model._meta.model_name}"
            change = f"{model._meta.app_label}.change_{model._meta.model_name}"
            expected = 200 if {view, change} & set(permissions) else 403
            obj = model.objects.order_by("pk").first()
            for address in (model_admin.url("changelist"), model_admin.url("change", quote(obj.pk))):
                answer = client.get(address)
                assert answer.status_code == expected, (role, address)
                if expected == 403:
                    assert b"Harbour Audio" not in answer.content, (role, address)
            for operation in model_admin.operations:
                if not operation.alone and operation.applies(obj):
                    address = model_admin.url("do", quote(obj.pk), operation.name)
                    may = expected == 200 and operation.permission in permissions
                    assert client.get(address).status_code == (200 if may else 403), (role, address)
        for page in panel()._pages:
            if "<" not in page.route:
                may = not page.permission or page.permission in permissions
                address = reverse(f"admin:{page.name}")
                assert (client.get(address).status_code == 200) == may, (role, address)


@pytest.mark.parametrize(
    "query", ["alice", "Harbour", "01890000-0000-7000-8000-000000000000", "%27%22<b>", "  "]
)
def test_every_list_can_be_searched(things, query):
    client = staff.client_of(staff.person())
    for _model, model_admin in registered():
        assert client.get(model_admin.url("changelist"), {"q": query}).status_code == 200, model_admin


def test_a_request_is_found_by_its_id_in_requests_and_ledger(things):
    client = staff.client_of(staff.person())
    request = factories.submit(things)
    for name in ("synthesis_synthesisrequest", "accounts_ledgerentry"):
        answer = client.get(reverse(f"admin:{name}_changelist"), {"q": str(request.pk)})
        assert answer.context["cl"].result_count == 1, name


def test_texts_and_secrets_are_not_shown(things):
    client = staff.client_of(staff.person())
    request = factories.submit(things, text="Meet me at the harbour at nine.")
    for page in pages():
        content = client.get(page).getvalue().decode(errors="replace")
        assert "Meet me at the harbour" not in content, page
        assert things.secret.rsplit("_", 1)[1] not in content, page
    shown = client.get(reverse("admin:synthesis_synthesisrequest_change", args=[request.pk])).content.decode()
    assert "Meet me" not in shown


def test_an_unknown_object_or_operation_is_not_found(things):
    client = staff.client_of(staff.person())
    assert client.get("/admin/accounts/team/01890000-0000-7000-8000-000000000000/").status_code == 404
    assert client.get("/admin/accounts/team/nonsense/").status_code == 404
    assert client.get(f"/admin/accounts/team/{things.actor.team.pk}/do/fly/").status_code == 404


def test_lists_need_few_queries_however_long(things, django_assert_max_num_queries):
    client = staff.client_of(staff.person())
    for _i in range(30):
        factories.submit(things)
    for _model, model_admin in registered():
        with django_assert_max_num_queries(24):
            client.get(model_admin.url("changelist"))


def test_a_strict_policy_holds_for_the_panel(things):
    answer = staff.client_of(staff.person()).get("/admin/accounts/team/")
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "<style" not in answer.content.decode()
