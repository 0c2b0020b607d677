"""Signing in and out."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts import redis
from accounts.models import AuditEntry, User
from accounts.services import rates
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db


def test_pages_ask_to_sign_in_and_come_back(client, alice):
    answer = client.get(reverse("history"))
    assert answer.status_code == 302
    assert answer.url == "/sign-in/?next=/history/"
    answer = client.post(
        answer.url, {"username": " ALICE@example.org ", "password": PASSWORD, "next": "/history/"}
    )
    assert (answer.status_code, answer.url) == (302, "/history/")
    assert AuditEntry.objects.filter(action="user.signed_in", actor_id=alice.user.id).count() == 1


def test_htmx_is_told_to_leave_the_page(client):
    answer = client.get(reverse("history"), headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/sign-in/"


def test_a_wrong_password_says_what_to_do(client, alice):
    answer = client.post("/sign-in/", {"username": "alice@example.org", "password": "wrong"})
    assert "Address and password do not match" in answer.content.decode()
    assert "_auth_user_id" not in client.session


def test_an_account_that_is_switched_off(client, alice):
    User.objects.filter(id=alice.user.id).update(is_active=False)
    answer = client.post("/sign-in/", {"username": "alice@example.org", "password": PASSWORD})
    assert answer.status_code == 200
    assert "_auth_user_id" not in client.session


def test_never_sends_to_another_site(client, alice):
    answer = client.post(
        "/sign-in/", {"username": "alice@example.org", "password": PASSWORD, "next": "https://evil.example/"}
    )
    assert answer.url == "/"


def test_speaks_the_language_that_was_chosen_before(client, alice):
    User.objects.filter(id=alice.user.id).update(language="zh-hans")
    client.post("/sign-in/", {"username": "alice@example.org", "password": PASSWORD})
    assert '<html lang="zh-Hans"' in client.get("/").content.decode()


def test_somebody_of_the_staff_without_a_team_is_sent_to_the_panel(client, db):
    client.force_login(User.objects.create_superuser("admin@example.org", PASSWORD))
    assert client.get("/").url == "/admin/"


def test_sign_out(sign_in, alice):
    client = sign_in(alice)
    assert client.get(reverse("sign_out")).status_code == 405
    assert client.post(reverse("sign_out")).url == "/sign-in/"
    assert client.get("/").status_code == 302


def test_somebody_without_a_team_is_told_so(client, alice):
    lonely = User.objects.create_user("lonely@example.org", PASSWORD)
    client.force_login(lonely)
    answer = client.get("/")
    assert answer.status_code == 200
    assert "You are in no team yet" in answer.content.decode()
    assert client.get("/history/").url == client.post("/team/invitations/").url == "/"
    assert client.get("/history/", headers={"HX-Request": "true"}).headers["HX-Redirect"] == "/"


def test_who_has_left_their_team_keeps_their_account(sign_in, alice, bob):
    client = sign_in(bob)
    page = client.post(reverse("team_leave"), follow=True)
    assert page.status_code == 200
    assert "You have left the team “Harbour Audio”" in page.content.decode()
    for name in ("account", "second_factor", "account_end"):
        page = client.get(reverse(name))
        assert page.status_code == 200
        assert "Harbour Audio" not in page.content.decode()
        assert f'action="{reverse("sign_out")}"' in page.content.decode()
    assert client.post(reverse("account"), {"form": "profile", "name": "Robert"}).status_code == 302
    assert User.objects.get(pk=bob.user.pk).name == "Robert"
    assert (
        "signed out" not in client.post(reverse("sign_out_elsewhere"), follow=True).content.decode().lower()
    )
    assert client.post(reverse("account_end"), {"password": PASSWORD}).status_code == 200
    assert not User.objects.get(pk=bob.user.pk).is_active


def test_without_a_team_one_can_sign_out(client, db):
    client.force_login(User.objects.create_user("lonely@example.org", PASSWORD))
    assert client.post(reverse("sign_out")).url == "/sign-in/"
    assert client.get(reverse("account")).url == "/sign-in/?next=/account/"


def test_a_form_from_before_somebody_signed_in_says_so(alice):
    client = Client(enforce_csrf_checks=True)
    client.get("/sign-in/")
    page = client.post(
        "/sign-in/",
        {"username": "alice@example.org", "password": PASSWORD, "csrfmiddlewaretoken": "x" * 64},
        headers={"Referer": "http://testserver/sign-in/?next=/voices/", "Accept-Language": "zh-hans"},
    )
    words = page.content.decode()
    assert page.status_code == 403
    assert 'href="/sign-in/?next=/voices/"' in words
    assert 'lang="zh-Hans"' in words
    assert "<style" not in words


def test_a_page_from_before_somebody_signed_in_anew_offers_to_be_loaded_again(alice):
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)
    for elsewhere in ("http://testserver/?voice=1#requests", "https://evil.example/?voice=1"):
        page = client.post(
            "/studio/outline/",
            {"text": "Hello"},
            headers={"HX-Request": "true", "HX-Current-URL": elsewhere, "X-CSRFToken": "x" * 64},
        )
        words = page.content.decode()
        assert page.status_code == 403
        assert "data-toast" in words
        assert "out of date" in words
        assert ('href="/?voice=1"' in words) == ("testserver" in elsewhere)
        assert "evil" not in words


def test_passwords_cannot_be_tried_out(client, alice):
    redis.client().flushdb()
    wrong = {"username": "Alice@example.org", "password": "wrong horse battery"}
    for _i in range(rates.SIGN_INS_OF_ACCOUNT):
        assert client.post("/sign-in/", wrong).status_code == 200
    answer = client.post("/sign-in/", {"username": "alice@example.org", "password": PASSWORD})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert "Too many attempts" in answer.content.decode()
    assert "_auth_user_id" not in client.session


def test_a_right_password_forgives_the_wrong_ones(client, alice):
    redis.client().flushdb()
    for _i in range(3):
        for _j in range(rates.SIGN_INS_OF_ACCOUNT - 2):
            client.post("/sign-in/", {"username": "alice@example.org", "password": "wrong"})
        assert (
            client.post("/sign-in/", {"username": "alice@example.org", "password": PASSWORD}).status_code
            == 302
        )
        client.post("/sign-out/")
