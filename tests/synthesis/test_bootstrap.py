"""What a fresh installation is given, once, and what is said of it later."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command

from accounts.models import Team, User
from accounts.services import keys
from synthesis.management.commands import bootstrap


@pytest.fixture
def state(db, tmp_path):
    """The file of a first start."""
    file = tmp_path / "bootstrap.json"
    call_command("bootstrap", state=file)
    return file


def read(file):
    return json.loads(file.read_text())


def again(file):
    call_command("bootstrap", state=file)
    return read(file)


def test_a_first_start(state):
    made = read(state)
    assert state.stat().st_mode & 0o777 == 0o600
    assert keys.authenticate(made["api_key"], ip="127.0.0.1").team.name == bootstrap.DEMO_TEAM
    assert User.objects.get(email=made["email"]).check_password(made["password"])
    admin = User.objects.get(email=made["admin_email"])
    assert admin.is_superuser
    assert admin.check_password(made["admin_password"])


def test_a_second_start_changes_nothing(state):
    before = read(state)
    assert again(state) == before


def test_without_a_file_nothing_is_made(db):
    call_command("bootstrap")
    assert not User.objects.exists()


def test_a_changed_password_is_not_told(state):
    user = User.objects.get(email=bootstrap.ADMIN_EMAIL)
    user.set_password("another one")
    user.save()
    assert set(again(state)) == {"email", "password", "api_key"}
    user.refresh_from_db()
    assert user.check_password("another one")


def test_a_restored_installation_is_given_no_administrator(state):
    """The accounts are another installation's, and the file is of the one that was there before."""
    Team.objects.all().delete()
    User.objects.all().delete()
    User.objects.create_user("alice@example.org", "her password", name="Alice")
    assert again(state) == {}
    assert again(state) == {}
    assert [user.email for user in User.objects.all()] == ["alice@example.org"]


def test_an_empty_database_is_given_accounts_again(state):
    before = read(state)
    Team.objects.all().delete()
    User.objects.all().delete()
    made = again(state)
    assert set(made) == set(before)
    assert made["password"] != before["password"]


def test_a_file_that_was_not_finished_is_written_again(state):
    state.write_text("")
    made = again(state)
    assert User.objects.get(email=made["email"]).check_password(made["password"])
