"""What operators do to requests and voices."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.errors import ChorusError, Conflict, InvalidInput, NotAllowed
from accounts.models import AuditEntry
from accounts.operators import Operator
from accounts.services import limits, people, quotas, suspension
from synthesis.errors import UnknownVoice
from synthesis.models import Attempt, Delivery, Status, SynthesisRequest, Voice, Webhook
from synthesis.services import dispatch, operations, takedown
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()
MADE = dispatch.Made("key", "audio/mpeg", 10, "0" * 64, 1.5, 24_000)


@pytest.fixture
def alice():
    return factories.owner("Alice")


def claim():
    (request,) = dispatch.claim(worker="w", engine="hibari")
    return request


def failed(person, **fields):
    request = factories.submit(person, **fields)
    dispatch.fail(claim(), code="engine_error", message="Broken.", retryable=False)
    request.refresh_from_db()
    assert request.status == Status.FAILED
    return request


def test_cancel(alice):
    request = factories.submit(alice)
    assert operations.cancel(by=BY, request_id=request.pk, reason="Too long")
    assert not operations.cancel(by=BY, request_id=request.pk)
    assert limits.standing(alice.actor).reserved == 0
    assert AuditEntry.objects.filter(action="synthesis.canceled").count() == 1


def test_priority_decides_within_the_team(alice):
    first, second = factories.submit(alice), factories.submit(alice)
    operations.set_priority(by=BY, request_id=second.pk, priority=5)
    assert claim().pk == second.pk
    with pytest.raises(Conflict):
        operations.set_priority(by=BY, request_id=second.pk, priority=1)
    with pytest.raises(InvalidInput):
        operations.set_priority(by=BY, request_id=first.pk, priority=101)
    assert AuditEntry.objects.get(action="synthesis.priority_changed").data["after"] == 5


def test_the_pause_before_the_next_attempt_is_skipped(alice):
    request = factories.submit(alice)
    dispatch.fail(claim(), code="engine_error", message="Broken.", retryable=True)
    SynthesisRequest.objects.update(not_before=timezone.now() + timedelta(hours=1))
    assert dispatch.claim(worker="w", engine="hibari") == []
    operations.hurry(by=BY, request_id=request.pk)
    assert claim().pk == request.pk


def test_a_failed_request_is_tried_again_as_a_new_one_and_charged_once(alice):
    old = failed(alice, text="Once more, please.", title="Mine")
    assert limits.standing(alice.actor).reserved == 0
    new = operations.retry(by=BY, request_id=old.pk)
    new.refresh_from_db()
    assert (new.text, new.title, new.seed, new.user, new.retry_of) == (
        old.text,
        "Mine",
        old.seed,
        alice.user,
        old,
    )
    assert new.api_key == alice.by_key.api_key
    with pytest.raises(Conflict) as caught:
        operations.retry(by=BY, request_id=old.pk)
    assert caught.value.code == "retried"
    dispatch.complete(claim(), MADE)
    standing = limits.standing(alice.actor)
    assert (standing.used, standing.reserved) == (old.characters, 0)


def test_what_cannot_be_tried_again(alice):
    bob = factories.colleague(alice, "Bob")
    running = factories.submit(alice)
    with pytest.raises(Conflict):
        operations.retry(by=BY, request_id=running.pk)
    operations.cancel(by=BY, request_id=running.pk)
    SynthesisRequest.objects.filter(pk=running.pk).update(deleted_at=timezone.now(), text="")
    with pytest.raises(Conflict):
        operations.retry(by=BY, request_id=running.pk)
    old = failed(bob)
    suspension.suspend_user(by=BY, user_id=bob.user.pk)
    with pytest.raises(Conflict):
        operations.retry(by=BY, request_id=old.pk)
    suspension.restore_user(by=BY, user_id=bob.user.pk)
    quotas.change(by=BY, targets=[alice.actor.team], values={"characters_per_month": 1})
    with pytest.raises(ChorusError) as caught:
        operations.retry(by=BY, request_id=old.pk)
    assert caught.value.code == "quota_exceeded"


def test_a_revoked_key_starts_nothing_more(alice):
    old = failed(alice)
    people.revoke_key(by=BY, key_id=alice.by_key.api_key.pk)
    assert operations.retry(by=BY, request_id=old.pk).api_key is None


def test_a_blocked_voice_ends_what_waits_and_runs_without_charge(alice):
    voice, other = factories.preset("Hibari"), factories.preset("Other")
    running = factories.submit(alice)
    held = claim()
    waiting, kept = factories.submit(alice), factories.submit(alice, voice=str(other.pk))
    Webhook.objects.create(
        team=alice.actor.team, url="https://example.org/", events=["synthesis.failed"], secret="s"
    )
    assert takedown.take_down(by=BY, voice_id=voice.pk, reason="Not their voice") == 2
    told = [delivery.body["data"] for delivery in Delivery.objects.order_by("id")]
    assert {one["id"] for one in told} == {str(running.pk), str(waiting.pk)}
    assert {one["error"]["code"] for one in told} == {"voice_taken_down"}
    assert not dispatch.renew(held)
    assert not dispatch.complete(held, MADE)
    for one in (running, waiting, kept):
        one.refresh_from_db()
    assert [one.status for one in (running, waiting, kept)] == [Status.FAILED, Status.FAILED, Status.QUEUED]
    assert running.error_code == "voice_taken_down"
    assert Attempt.objects.get(request=running).ended_at is not None
    assert limits.standing(alice.actor).reserved == kept.characters
    with pytest.raises(UnknownVoice):
        factories.submit(alice)
    entry = AuditEntry.objects.get(action="voice.taken_down")
    assert (entry.data["reason"], entry.data["ended"]) == ("Not their voice", 2)
    takedown.restore(by=BY, voice_id=voice.pk)
    factories.submit(alice)


def test_a_block_needs_a_reason(alice):
    with pytest.raises(InvalidInput):
        takedown.take_down(by=BY, voice_id=factories.preset().pk, reason=" ")


def test_without_the_right_nothing_happens(alice):
    request = factories.submit(alice)
    money = Operator.person(staff.person("Money", roles=["billing"]))
    for call in (
        lambda: operations.cancel(by=money, request_id=request.pk),
        lambda: operations.retry(by=money, request_id=request.pk),
        lambda: operations.hurry(by=money, request_id=request.pk),
        lambda: operations.set_priority(by=money, request_id=request.pk, priority=1),
        lambda: takedown.take_down(by=money, voice_id=request.voice_id, reason="x"),
    ):
        with pytest.raises(NotAllowed):
            call()


def test_from_the_panel(alice):
    client = staff.client_of(staff.person())
    requests = [factories.submit(alice) for _i in range(3)]
    ids = [str(one.pk) for one in requests]
    listed = "/admin/synthesis/synthesisrequest/"
    asked = client.post(listed, {"action": "priority", "_selected_action": ids, "index": "0"})
    assert asked.status_code == 200
    client.post(f"{listed}do/priority/", {"step": "do", "object": ids, "priority": "3", "reason": ""})
    assert set(SynthesisRequest.objects.values_list("priority", flat=True)) == {3}
    client.post(f"{listed}{ids[0]}/do/cancel/", {"step": "do", "reason": "x"})
    client.post(f"{listed}do/cancel/", {"step": "do", "object": ids, "reason": ""})
    assert not SynthesisRequest.objects.exclude(status=Status.CANCELED).exists()
    client.post(f"{listed}do/retry/", {"step": "do", "object": ids})
    assert SynthesisRequest.objects.filter(status=Status.QUEUED).count() == 3
    voice = Voice.objects.get()
    address = f"/admin/synthesis/voice/{voice.pk}/"
    assert ">3<" in client.post(f"{address}do/take-down/", {"step": "ask", "reason": "r"}).content.decode()
    client.post(f"{address}do/take-down/", {"step": "do", "reason": "r"})
    assert "blocked" in client.get(address).content.decode()
    client.post(f"{address}do/restore/", {"step": "do", "reason": ""})
    voice.refresh_from_db()
    assert voice.taken_down_at is None
