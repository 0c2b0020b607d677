"""One's own profile, password and language."""

from __future__ import annotations

import pytest

from accounts.models import AuditEntry, User
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db


def test_profile(sign_in, alice):
    client = sign_in(alice)
    assert (
        client.post("/account/", {"form": "profile", "name": "Alice M.", "language": "zh-hans"}).url
        == "/account/"
    )
    user = User.objects.get(id=alice.user.id)
    assert (user.name, user.language) == ("Alice M.", "zh-hans")
    assert '<html lang="zh-Hans"' in client.get("/account/").content.decode()


def test_password(sign_in, alice):
    client = sign_in(alice)
    wrong = {
        "form": "password",
        "old_password": "no",
        "new_password1": "x y z 1 2 3",
        "new_password2": "x y z 1 2 3",
    }
    assert client.post("/account/", wrong).status_code == 422
    right = {**wrong, "old_password": PASSWORD}
    assert client.post("/account/", right).url == "/account/"
    assert client.get("/account/").status_code == 200, "the session that changed it stays signed in"
    assert User.objects.get(id=alice.user.id).check_password("x y z 1 2 3")
    assert AuditEntry.objects.filter(action="user.password_changed").count() == 1


@pytest.mark.parametrize(
    ("sent", "target"), [("/history/", "/history/"), ("https://evil.example/", "/"), ("//evil.example", "/")]
)
def test_set_language_goes_back_to_the_page(sign_in, alice, sent, target):
    client = sign_in(alice)
    assert client.post("/language/", {"language": "zh-hans", "next": sent}).url == target
    assert User.objects.get(id=alice.user.id).language == "zh-hans"
    assert '<html lang="zh-Hans"' in client.get("/").content.decode()
    client.post("/language/", {"language": "tlh"})
    assert User.objects.get(id=alice.user.id).language == "zh-hans"


def test_set_language_of_a_visitor(client, db):
    client.post("/language/", {"language": "zh-hans"})
    assert '<html lang="zh-Hans"' in client.get("/sign-in/").content.decode()
    assert client.get("/language/").status_code == 405
