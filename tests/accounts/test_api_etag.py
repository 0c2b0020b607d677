"""`ETag` and `If-None-Match`: who has the answer already is told so in a few bytes."""

from __future__ import annotations

import pytest

from synthesis.services import voices
from tests import factories
from tests.synthesis.voicing import own

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


@pytest.mark.parametrize(
    "path", ["/v1/voices", "/v1/syntheses", "/v1/keys", "/v1/audit", "/v1/quota", "/v1/models", "/v1/usage"]
)
def test_lists(client, alice, path):
    # The key's last use is written by the first request.
    client.get("/v1/quota", headers=alice.headers)
    first = client.get(path, headers=alice.headers)
    assert first.status_code == 200
    tag = first.headers["ETag"]
    assert tag.startswith('W/"')
    assert first.headers["Cache-Control"] == "private, no-cache"
    assert {"authorization", "xi-api-key", "accept-language"} <= set(
        first.headers["Vary"].lower().split(", ")
    )
    second = client.get(path, headers=alice.headers | {"if-none-match": f'"other", {tag}'})
    assert (second.status_code, second.content) == (304, b"")
    assert second.headers["ETag"] == tag
    assert "x-request-id" in second.headers
    assert "Content-Type" not in second.headers


def test_a_voice_that_changes(client, alice):
    voice = own(alice)
    url = f"/v1/voices/{voice.id}"
    tag = client.get(url, headers=alice.headers).headers["ETag"]
    known = alice.headers | {"if-none-match": tag}
    assert client.get(url, headers=known).status_code == 304
    assert client.head(url, headers=known).status_code == 304
    # A proxy that does not know of weak tags.
    assert client.get(url, headers=known | {"if-none-match": tag.removeprefix("W/")}).status_code == 304
    assert client.get(url, headers=known | {"accept-language": "zh-hans"}).status_code == 304
    voices.update(actor=alice.actor, voice_id=voice.id, name="Other")
    changed = client.get(url, headers=known)
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag


def test_a_stranger_with_the_tag_learns_nothing(client, alice):
    url = f"/v1/voices/{own(alice).id}"
    tag = client.get(url, headers=alice.headers).headers["ETag"]
    charlie = factories.owner("Charlie")
    for given in (tag, "*"):
        assert client.get(url, headers=charlie.headers | {"if-none-match": given}).status_code == 404
        assert client.get(url, headers={"if-none-match": given}).status_code == 401


def test_neither_errors_nor_what_is_made(client, alice):
    missing = client.get("/v1/voices/x", headers=alice.headers)
    made = client.post("/v1/keys", {"name": "New"}, content_type="application/json", headers=alice.headers)
    for response in (missing, made):
        assert "ETag" not in response.headers
        assert response.headers["Cache-Control"] == "no-store"
