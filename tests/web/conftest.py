"""Alice owns a team, Bob is in it, Vera may only look, Charlie is a stranger with a team of his own."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Role
from synthesis import transcription
from tests import factories

HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def _no_speech_recognition(monkeypatch):
    """A suggested transcript takes seconds, and longer on a busy machine; it is tested with the service."""
    monkeypatch.setattr(transcription, "available", lambda: False)


@pytest.fixture
def alice(db):
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def bob(alice):
    return factories.colleague(alice, "Bob")


@pytest.fixture
def vera(alice):
    return factories.colleague(alice, "Vera", Role.VIEWER)


@pytest.fixture
def charlie(db):
    return factories.owner("Charlie")


@pytest.fixture
def sign_in():
    """A client in which somebody is signed in: `sign_in(alice).get(...)`."""

    def signed_in(person: factories.Person) -> Client:
        client = Client()
        client.force_login(person.user)
        return client

    return signed_in


@pytest.fixture
def hibari(db):
    return factories.preset()
