"""Making an account oneself, where the operator allows it; and what every page says on top."""

from __future__ import annotations

import re

import pytest
from django.core import mail
from django.test import Client

from accounts.models import Membership, User
from accounts.operators import Operator
from accounts.services import operator_settings, quotas, sign_up
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


def change(**values):
    for key, value in values.items():
        operator_settings.change(by=BY, key=key, value=value)


def link() -> str:
    found = re.search(r"http://\S+?(/sign-up/\S+/)", str(mail.outbox[-1].body))
    assert found is not None
    return found[1]


def test_closed_by_default():
    client = Client()
    assert client.get("/sign-up/").status_code == 404
    assert client.post("/sign-up/", {"email": "new@example.org"}).status_code == 404
    assert "/sign-up/" not in client.get("/sign-in/").content.decode()
    assert mail.outbox == []


def test_from_the_address_to_the_studio():
    change(sign_up="open")
    plan = quotas.create_plan(by=BY, name="Free", values={"characters_per_month": 500})
    change(default_plan=str(plan.pk))
    client = Client()
    assert "/sign-up/" in client.get("/sign-in/").content.decode()
    assert "new@example.org" in client.post("/sign-up/", {"email": "New@Example.org"}).content.decode()
    sent = {"name": "Nina", "team": " New  Wave ", "password": factories.PASSWORD}
    assert client.get(link()).status_code == 200
    assert client.post(link(), sent).headers["Location"] == "/"
    user = User.objects.get(email="new@example.org")
    membership = Membership.objects.select_related("team__plan").get(user=user)
    assert (membership.role, membership.team.name, membership.team.plan) == ("owner", "New Wave", plan)
    assert client.get("/").status_code == 200
    assert Client().post(link(), sent).status_code == 422  # a link makes one account


def test_an_address_that_has_an_account_gets_a_mail_that_says_so():
    alice = factories.owner("Alice")
    change(sign_up="open")
    answer = Client().post("/sign-up/", {"email": alice.user.email})
    assert answer.status_code == 200  # says nothing about who has an account
    assert "already" in mail.outbox[-1].subject


def test_links_that_do_not_work(monkeypatch):
    change(sign_up="open")
    client = Client()
    assert client.get("/sign-up/nonsense/").status_code == 404
    client.post("/sign-up/", {"email": "new@example.org"})
    path = link()
    assert client.post(path, {"name": "N", "team": "T", "password": "short"}).status_code == 422
    assert client.post(path, {"name": "N", "team": " ", "password": factories.PASSWORD}).status_code == 422
    change(allowed_email_domains="other.example")
    assert client.post(path, {"name": "N", "team": "T", "password": factories.PASSWORD}).status_code == 422
    change(allowed_email_domains="")
    monkeypatch.setattr(sign_up, "GOOD_FOR", sign_up.GOOD_FOR * -1)
    assert client.get(path).status_code == 404
    change(sign_up="invitation")
    assert client.get(path).status_code == 404


def test_only_allowed_domains():
    change(sign_up="open", allowed_email_domains="acme.example")
    assert Client().post("/sign-up/", {"email": "x@other.example"}).status_code == 422
    assert Client().post("/sign-up/", {"email": "nonsense"}).status_code == 422
    assert mail.outbox == []


def test_announcements_and_maintenance_are_on_every_page():
    alice = factories.owner("Alice")
    client = Client()
    client.force_login(alice.user)
    assert "notice-flat" not in client.get("/").content.decode()
    change(announcement="We <b>move</b> house.", announcement_kind="warn")
    page = client.get("/").content.decode()
    assert "We &lt;b&gt;move&lt;/b&gt; house." in page
    assert "notice-warn" in page
    assert "move" in Client().get("/sign-in/").content.decode()
    change(announcement="", maintenance=True)
    assert "being worked on" in client.get("/").content.decode()


def test_an_administrator_without_a_team_comes_to_the_panel():
    root = staff.person()
    answer = Client().post("/sign-in/", {"username": root.email, "password": factories.PASSWORD}, follow=True)
    assert ("/admin/", 302) in answer.redirect_chain
