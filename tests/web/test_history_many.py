"""Finding requests again, and doing something with many at once."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta

import pytest
from django.utils import timezone

from synthesis.models import Favourite, SynthesisRequest
from tests import factories
from tests.web.conftest import HTMX
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db


def shown(client, query: str) -> int:
    return client.get(f"/history/?{query}").content.decode().count("<article")


def test_filters(sign_in, alice, bob, hibari):
    aki = factories.preset("Aki", gender="male")
    old = factories.submit(alice, "An old one.")
    SynthesisRequest.objects.filter(id=old.id).update(created_at=timezone.now() - timedelta(days=40))
    factories.submit(bob, "One of Bob's.", voice=str(aki.id))
    factories.submit(alice, "A new one.")
    client = sign_in(alice)
    assert shown(client, "") == 3
    assert shown(client, f"voice={aki.id}") == 1
    assert shown(client, f"person={bob.user.id}") == 1
    assert shown(client, f"since={timezone.localdate() - timedelta(days=7)}") == 2
    assert shown(client, f"until={timezone.localdate() - timedelta(days=7)}") == 1
    assert shown(client, "voice=nonsense&person=1&since=0001-01-01&until=9999-12-31&state=none") == 3
    assert shown(client, f"person={bob.user.id}&voice={hibari.id}") == 0


def test_favourites_are_each_persons_own(sign_in, alice, bob, charlie, hibari):
    one = factories.submit(alice, "I like this one.")
    factories.submit(alice, "Not so much.")
    address = f"/requests/{one.id}/favourite/"
    page = sign_in(alice).post(address, {"wanted": "1"}, headers=HTMX).content.decode()
    assert 'aria-pressed="true"' in page
    sign_in(alice).post(address, {"wanted": "1"})
    assert Favourite.objects.count() == 1
    assert shown(sign_in(alice), "favourites=1") == 1
    assert shown(sign_in(bob), "favourites=1") == 0
    assert sign_in(charlie).post(address, {"wanted": "1"}).status_code == 404
    sign_in(alice).post(address, {"wanted": "0"})
    assert not Favourite.objects.exists()


def test_title(sign_in, alice, vera, charlie, hibari):
    one = factories.submit(alice, "Some text.")
    address = f"/requests/{one.id}/title/"
    assert sign_in(alice).post(address, {"title": "  Chapter   one "}).status_code == 302
    one.refresh_from_db()
    assert one.title == "Chapter one"
    assert sign_in(alice).post(address, {"title": "x" * 201}).status_code == 400
    assert sign_in(vera).post(address, {"title": "no"}).status_code == 403
    assert sign_in(charlie).post(address, {"title": "no"}).status_code == 404


def test_many_as_one_file(sign_in, alice, charlie, hibari):
    first, second = spoken(alice, title="A/b: c?"), spoken(alice, title="你好")
    theirs = spoken(charlie)
    waiting = factories.submit(alice, "Not done yet.")
    ids = [str(one.id) for one in (first, second, waiting, theirs)]
    answer = sign_in(alice).post("/history/download/", {"id": [*ids, "nonsense"]})
    assert answer.headers["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(b"".join(answer))) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == 2, "neither what is not done nor another team's"
        assert names[1].endswith("A b c.mp3")
        assert "你好" in names[0]
        assert archive.read(names[0]) == b"sound"
    assert sign_in(alice).post("/history/download/").status_code == 400
    assert sign_in(alice).post("/history/download/", {"id": [str(theirs.id)]}).status_code == 400


def test_delete_many(sign_in, alice, vera, charlie, hibari):
    mine = [spoken(alice), factories.submit(alice, "Waiting.")]
    theirs = factories.submit(charlie, "Theirs.")
    ids = [str(one.id) for one in (*mine, theirs)]
    assert sign_in(vera).post("/history/delete/", {"id": ids}).status_code == 403
    assert sign_in(alice).post("/history/delete/", {"id": ids}).status_code == 302
    assert set(SynthesisRequest.objects.filter(deleted_at=None)) == {theirs}


def test_retention_of_the_teams_own(sign_in, alice, hibari):
    team = alice.actor.team
    team.retention_days = 7
    team.save()
    kept = spoken(alice).output
    assert (kept.expires_at - timezone.now()).days in (6, 7)
    assert "kept for 7 days" in sign_in(alice).get("/history/").content.decode()
