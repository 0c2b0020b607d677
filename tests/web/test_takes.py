"""Parts of a recording: said again for exactly their characters, compared, chosen, joined anew."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
import soundfile
from django.conf import settings

from accounts.errors import Conflict
from accounts.models import LedgerEntry, UsageCounter
from synthesis import storage
from synthesis.models import Output, Segment, SynthesisRequest
from synthesis.services import dispatch, sounding, takes
from synthesis.text import clean
from tests.web.conftest import HTMX
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)


def finish(take: SynthesisRequest, seconds: float = 3.0) -> None:
    """The worker's part: a take that is `seconds` long."""
    (held,) = dispatch.claim(worker="played", engine="hibari")
    assert held.id == take.id
    data = io.BytesIO()
    soundfile.write(data, np.full(int(24_000 * seconds), 0.25, np.float32), 24_000, format="FLAC")
    key = storage.segment_key(held, 0)
    storage.put(key, data.getvalue(), "audio/flac")
    dispatch.save_segment(held, index=0, audio_key=key, seconds=seconds, engine_seconds=0.1)
    output = storage.output_key(held, "mp3")
    storage.put(output, b"take", "audio/mpeg")
    assert dispatch.complete(held, dispatch.Made(output, "audio/mpeg", 4, "1" * 64, seconds, 24_000))


@pytest.fixture
def made(alice, hibari):
    return spoken(alice)


def used(alice) -> tuple[int, int]:
    counter = UsageCounter.objects.get(team=alice.actor.team, user=None, api_key=None)
    return counter.used, counter.reserved


def test_a_conversion_has_no_words_to_say_again(alice, made):
    SynthesisRequest.objects.filter(id=made.id).update(source_seconds=3.0)
    with pytest.raises(Conflict) as caught:
        takes.again(actor=alice.actor, request_id=made.id, index=0)
    assert caught.value.code == "no_text"
    assert used(alice)[1] == 0


def test_a_take_costs_its_own_part_and_no_more(sign_in, alice, made):
    before, _none = used(alice)
    segment = made.segments.get(index=1)
    page = sign_in(alice).post(f"/requests/{made.id}/parts/1/again/", headers=HTMX)
    assert page.status_code == 200
    take = SynthesisRequest.objects.get(take_of=segment)
    count = clean.count(segment.text)
    assert take.characters == count < made.characters
    assert take.seed != made.seed
    assert [one.text for one in take.segments.all()] == [segment.text]
    assert used(alice) == (before, count)
    finish(take)
    assert used(alice) == (before + count, 0)
    kinds = LedgerEntry.objects.filter(request_id=take.id).values_list("kind", flat=True)
    assert sorted(kinds) == ["reserve", "settle"]


def test_say_again_sent_twice_is_said_once(sign_in, alice, made):
    client = sign_in(alice)
    address = f"/requests/{made.id}/parts/1/again/"
    page = client.get(f"/requests/{made.id}/parts/").content.decode()
    words = re.findall(r'name="once" value="([^"]+)"', page)
    assert len(words) == 2
    for _time in range(3):
        page = client.post(address, {"once": words[1]}, headers=HTMX).content.decode()
    assert SynthesisRequest.objects.filter(take_of__request=made).count() == 1
    client.post(address, {"once": re.findall(r'name="once" value="([^"]+)"', page)[1]}, headers=HTMX)
    assert SynthesisRequest.objects.filter(take_of__request=made).count() == 2


def test_choosing_joins_anew_and_can_be_taken_back(sign_in, alice, made):
    client = sign_in(alice)
    output = Output.objects.get(request=made)
    first_key, spans = output.key, sounding.spans(made, output)
    take = takes.again(actor=alice.actor, request_id=made.id, index=0)
    finish(take)
    page = client.post(f"/requests/{made.id}/parts/0/take/", {"take": str(take.id)}, headers=HTMX)
    assert page.status_code == 200
    assert f'id="player-{made.id}" hx-swap-oob="true"' in page.content.decode()
    output.refresh_from_db()
    assert output.key != first_key
    assert output.seconds > 3.5
    now = sounding.spans(made, output)
    assert now[0][1] - now[0][0] > spans[0][1] - spans[0][0] + 1.5
    assert storage.size(output.key) == output.bytes

    joined = output.key
    client.post(f"/requests/{made.id}/parts/0/take/", {"take": ""})
    output.refresh_from_db()
    assert Segment.objects.get(request=made, index=0).take is None
    assert sounding.spans(made, output) == spans
    from accounts.errors import NotFound

    with pytest.raises(NotFound):
        storage.get(joined)
    assert storage.get(first_key), "what the worker made stays"


def test_takes_are_no_requests_of_their_own(sign_in, alice, made):
    takes.again(actor=alice.actor, request_id=made.id, index=0)
    page = sign_in(alice).get("/history/").content.decode()
    assert page.count("<article") == 1
    assert sign_in(alice).get("/").content.decode().count("<article") == 1


def test_the_first_sound_is_still_to_be_heard(sign_in, alice, charlie, made):
    answer = sign_in(alice).get(f"/requests/{made.id}/parts/1/sound/")
    samples, rate = soundfile.read(io.BytesIO(b"".join(answer)))
    assert (len(samples), rate) == (24_000, 24_000)
    assert sign_in(charlie).get(f"/requests/{made.id}/parts/1/sound/").status_code == 404
    assert sign_in(alice).get(f"/requests/{made.id}/parts/99/sound/").status_code == 404


def test_only_takes_of_this_part(sign_in, alice, charlie, vera, made, hibari):
    other = spoken(
        alice, text="Quite another text, about another thing. It has two sentences as well, and a few more."
    )
    take = takes.again(actor=alice.actor, request_id=other.id, index=0)
    address = f"/requests/{made.id}/parts/0/take/"
    assert sign_in(alice).post(address, {"take": str(take.id)}).status_code == 404, "of another recording"
    own = takes.again(actor=alice.actor, request_id=made.id, index=0)
    assert sign_in(alice).post(address, {"take": str(own.id)}).status_code == 409, "not done yet"
    assert sign_in(alice).post(address, {"take": "nonsense"}).status_code == 404
    for person, status in ((charlie, 404), (vera, 403)):
        assert sign_in(person).post(address, {"take": str(own.id)}).status_code == status
        assert sign_in(person).post(f"/requests/{made.id}/parts/0/again/").status_code == status
    assert sign_in(charlie).get(f"/requests/{made.id}/parts/").status_code == 404
    assert sign_in(vera).get(f"/requests/{made.id}/parts/").status_code == 200


def test_quota_and_number_of_takes(sign_in, alice, made, monkeypatch):
    monkeypatch.setattr(takes, "MOST", 1)
    client = sign_in(alice)
    assert client.post(f"/requests/{made.id}/parts/0/again/").status_code == 302
    assert client.post(f"/requests/{made.id}/parts/0/again/").status_code == 409
    team = alice.actor.team
    UsageCounter.objects.filter(team=team, user=None, api_key=None).update(used=999_950)
    team.plan.refresh_from_db()
    assert client.post(f"/requests/{made.id}/parts/1/again/").status_code == 429
    assert SynthesisRequest.objects.filter(take_of__isnull=False).count() == 1


def test_a_deleted_text_takes_its_takes_along(sign_in, alice, made):
    take = takes.again(actor=alice.actor, request_id=made.id, index=0)
    sign_in(alice).post(f"/requests/{made.id}/delete/")
    take.refresh_from_db()
    assert take.deleted_at is not None
    assert take.text == ""
    assert used(alice)[1] == 0, "what was waiting is given back"


def test_two_choose_at_once(alice, made):
    """Each choice is made on what is there; the one that comes second joins once more."""
    take = takes.again(actor=alice.actor, request_id=made.id, index=0)
    finish(take)
    other = takes.again(actor=alice.actor, request_id=made.id, index=1)
    finish(other)
    render = takes._render
    calls = []

    def slow(request, choices):
        calls.append(dict(choices))
        if len(calls) == 1:
            takes.choose(actor=alice.actor, request_id=made.id, index=1, take_id=other.id)
        return render(request, choices)

    takes._render = slow
    try:
        takes.choose(actor=alice.actor, request_id=made.id, index=0, take_id=take.id)
    finally:
        takes._render = render
    chosen = Segment.objects.filter(request=made).values_list("take_id", flat=True)
    assert set(chosen) == {take.id, other.id}
    output = Output.objects.get(request=made)
    assert output.seconds > 6
    folders = {item.rpartition("/")[0] for item in _keys(made) if "joined-" in item}
    assert folders == {output.key.rpartition("/")[0]}, "what was joined in vain is removed"


def _keys(request: SynthesisRequest) -> list[str]:
    found = storage.client().list_objects_v2(
        Bucket=settings.S3_BUCKET, Prefix=storage.request_prefix(request.team_id, request.id)
    )
    return [item["Key"] for item in found.get("Contents", [])]
