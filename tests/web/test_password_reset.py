"""A new password by e-mail."""

from __future__ import annotations

import re

import pytest
from django.core import mail

from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db


def test_the_way_to_a_new_password(client, alice):
    assert client.post("/password/reset/", {"email": "Alice@example.org"}).url == "/password/reset/sent/"
    assert mail.outbox[0].subject == "Set a new password for Chorus"
    link = re.search(r"https?://[^/]+(/password/reset/\S+)", mail.outbox[0].body).group(1)
    form = client.get(link, follow=True)
    answer = client.post(
        form.redirect_chain[-1][0],
        {"new_password1": "a quite new phrase", "new_password2": "a quite new phrase"},
    )
    assert answer.url == "/password/reset/done/"
    assert client.login(username="alice@example.org", password="a quite new phrase")
    assert not client.login(username="alice@example.org", password=PASSWORD)
    assert "used before or has expired" in client.get(link, follow=True).content.decode()


def test_an_unknown_address_looks_the_same(client, db):
    assert client.post("/password/reset/", {"email": "nobody@example.org"}).url == "/password/reset/sent/"
    assert mail.outbox == []


def test_a_weak_password_is_refused(client, alice):
    client.post("/password/reset/", {"email": "alice@example.org"})
    link = re.search(r"https?://[^/]+(/password/reset/\S+)", mail.outbox[0].body).group(1)
    form = client.get(link, follow=True)
    answer = client.post(form.redirect_chain[-1][0], {"new_password1": "short", "new_password2": "short"})
    assert "too short" in answer.content.decode()
    assert client.login(username="alice@example.org", password=PASSWORD)
