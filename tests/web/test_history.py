"""The history: search, filter, pages."""

from __future__ import annotations

import pytest

from synthesis.services import dispatch
from synthesis.web.history import PAGE
from tests import factories

pytestmark = pytest.mark.django_db


def test_shows_the_teams_requests(sign_in, alice, bob, charlie, hibari):
    factories.submit(alice, "A text of Alice.")
    factories.submit(bob, "A text of Bob.")
    factories.submit(charlie, "A text of Charlie.")
    page = sign_in(bob).get("/history/").content.decode()
    assert "A text of Alice." in page
    assert "A text of Bob." in page
    assert "A text of Charlie." not in page


def test_search(sign_in, alice, hibari):
    factories.submit(alice, "The lighthouse keeper slept.")
    factories.submit(alice, "The baker was up early.", title="Morning 早晨")
    client = sign_in(alice)
    found = client.get("/history/?q=LIGHTHOUSE").content.decode()
    assert "lighthouse keeper" in found
    assert "baker" not in found
    assert "Morning 早晨" in client.get("/history/?q=早晨").content.decode()
    assert "No request matches" in client.get("/history/?q=%25").content.decode(), (
        "a percent sign is a percent sign"
    )
    assert client.get("/history/?q=a%00b").status_code == 200


def test_state(sign_in, alice, hibari):
    factories.submit(alice, "This one waits.")
    gone = factories.submit(alice, "This one was cancelled.")
    dispatch.cancel(gone.id)
    client = sign_in(alice)
    assert "was cancelled" not in client.get("/history/?state=open").content.decode()
    page = client.get("/history/?state=canceled").content.decode()
    assert "was cancelled" in page
    assert "This one waits" not in page
    assert client.get("/history/?state=nonsense").status_code == 200


def test_pages(sign_in, alice, hibari):
    for number in range(PAGE + 1):
        factories.submit(alice, f"Text number {number} of many.")
    client = sign_in(alice)
    first = client.get("/history/?q=many").content.decode()
    assert f"Text number {PAGE} of many." in first
    assert "Text number 0 of many." not in first
    assert 'href="?q=many&amp;page=2"' in first
    assert "Text number 0 of many." in client.get("/history/?q=many&page=2").content.decode()
    assert client.get("/history/?page=999").status_code == 200
    assert client.get("/history/?page=x").status_code == 200


def test_empty(sign_in, alice):
    assert "Nothing here yet" in sign_in(alice).get("/history/").content.decode()


def test_post(sign_in, alice):
    assert sign_in(alice).post("/history/").status_code == 405
