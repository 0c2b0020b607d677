"""Reports of misuse: from the page of a voice to the decision and the answer."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from accounts.errors import Conflict, InvalidInput, NotAllowed
from accounts.models import AuditEntry
from accounts.operators import Operator
from synthesis.errors import BlockedVoice, UnknownVoice, VoiceNotFound
from synthesis.models import MisuseReport, Status, Voice
from synthesis.services import misuse, personal, takedown, voices
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()
SAID = "This is my grandmother's voice, in an advertisement on the radio."


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def bob(alice):
    return factories.colleague(alice, "Bob")


@pytest.fixture
def jane(alice):
    """A cloned voice of Alice's team; nothing of it is spoken here."""
    return Voice.objects.create(
        team=alice.actor.team, created_by=alice.user, kind="cloned", name="Jane", language="en-US"
    )


def report(person, voice, kind="consent", details=SAID):
    return misuse.report(actor=person.actor, voice_id=voice.pk, kind=kind, details=details)


def page_of(person) -> Client:
    client = Client()
    client.force_login(person.user)
    return client


# --- Reporting --------------------------------------------------------------------------------------------------


def test_a_member_reports_a_voice_once_and_the_owners_do_not_read_it(bob, jane):
    made = report(bob, jane)
    assert (made.reporter, made.email, made.is_open) == (bob.user, "bob@example.org", True)
    with pytest.raises(Conflict):
        report(bob, jane)
    entry = AuditEntry.objects.get(action="misuse.reported")
    assert (entry.team_id, entry.actor_id) == (None, bob.user.pk)


def test_a_viewer_may_report_and_a_stranger_finds_nothing(alice, jane):
    report(factories.colleague(alice, "Vera", role="viewer"), jane)
    with pytest.raises(VoiceNotFound):
        report(factories.owner("Charlie"), jane)


@pytest.mark.parametrize(
    ("kind", "details"), [("", SAID), ("consent", "short"), ("other", "x" * 2_001), ("other", "bad\x00" * 9)]
)
def test_what_is_no_report(bob, jane, kind, details):
    with pytest.raises(InvalidInput):
        report(bob, jane, kind, details)


def test_a_complaint_from_outside_is_noted(jane, django_capture_on_commit_callbacks):
    made = misuse.note_complaint(
        by=BY, voice_id=jane.pk, kind="consent", details=SAID, email="Eve@Example.org"
    )
    with django_capture_on_commit_callbacks(execute=True):
        misuse.dismiss(by=BY, report_id=made.pk, note="It was her own.")
    assert mail.outbox[0].to == ["eve@example.org"]
    with pytest.raises(InvalidInput):
        misuse.note_complaint(by=BY, voice_id=jane.pk, kind="consent", details=SAID, email="nobody")


def test_from_the_page_of_a_voice(bob, jane):
    client = page_of(bob)
    address = f"/voices/{jane.pk}/report/"
    preset = factories.preset()
    assert f"/voices/{preset.pk}/report/" in client.get(f"/voices/{preset.pk}/").content.decode()
    assert client.get(address).status_code == 200
    assert client.post(address, {"details": SAID}).status_code == 422
    assert client.post(address, {"kind": "harm", "details": SAID}).status_code == 302
    assert MisuseReport.objects.get().kind == "harm"
    again = client.post(address, {"kind": "harm", "details": SAID})
    assert again.status_code == 422
    assert "reported this voice already" in again.content.decode()
    assert "It is being looked at" in client.get(address).content.decode()
    assert page_of(factories.owner("Charlie")).get(address).status_code == 404
    assert Client().get(address).status_code == 302


def test_presets_can_be_reported_as_well(bob):
    answer = page_of(bob).post(
        f"/voices/{factories.preset().pk}/report/", {"kind": "deception", "details": SAID}
    )
    assert answer.headers["Location"] == "/voices/"


# --- Deciding ---------------------------------------------------------------------------------------------------


def test_dismissed_the_reporter_is_told_in_their_language(bob, jane, django_capture_on_commit_callbacks):
    bob.user.language = "zh-hans"
    bob.user.save()
    made = report(bob, jane)
    with pytest.raises(InvalidInput):
        misuse.dismiss(by=BY, report_id=made.pk, note="  ")
    with django_capture_on_commit_callbacks(execute=True):
        misuse.dismiss(by=BY, report_id=made.pk, note="It is her own voice.")
    (told,) = mail.outbox
    assert told.to == ["bob@example.org"]
    assert "It is her own voice." in told.body
    assert "Thank you" not in told.body
    jane.refresh_from_db()
    assert jane.taken_down_at is None
    assert AuditEntry.objects.get(action="misuse.dismissed").data["note"] == "It is her own voice."
    with pytest.raises(Conflict):
        misuse.dismiss(by=BY, report_id=made.pk, note="Again")
    report(bob, jane)  # something new may have happened


def test_taken_down_every_open_report_is_decided_and_everybody_told(
    alice, bob, jane, django_capture_on_commit_callbacks
):
    first, second = report(bob, jane), report(alice, jane, "deception")
    with django_capture_on_commit_callbacks(execute=True):
        misuse.take_down(by=BY, report_id=first.pk, reason="No consent", note="She called us.")
    second.refresh_from_db()
    jane.refresh_from_db()
    assert (second.decision, jane.taken_down_reason) == ("taken_down", "No consent")
    told = {message.subject: message for message in mail.outbox}
    assert len(mail.outbox) == 3  # the owner of the voice, and both reporters
    owners = told["Your voice “Jane” was blocked"]
    assert owners.to == ["alice@example.org"]
    assert "No consent" in owners.body
    assert "She called us." not in owners.body
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {
        "voice.taken_down",
        "misuse.taken_down",
    }


def test_a_blocked_voice_says_why_and_stays_as_it_is(alice, bob, jane):
    takedown.take_down(by=BY, voice_id=jane.pk, reason="No consent")
    listed = page_of(bob).get("/voices/").content.decode()
    assert "Blocked by the operator" in listed
    assert "No consent" in listed
    assert "show the people who run this service the consent" in listed
    assert "Blocked" not in page_of(factories.owner("Charlie")).get("/voices/").content.decode()
    for call in (
        lambda: voices.delete(actor=alice.actor, voice_id=jane.pk),
        lambda: voices.update(actor=alice.actor, voice_id=jane.pk, name="Other"),
    ):
        with pytest.raises(Conflict) as caught:
            call()
        assert caught.value.code == "voice_blocked"
    with pytest.raises(BlockedVoice) as refused:
        factories.submit(bob, voice="jane")
    assert "No consent" in str(refused.value)
    with pytest.raises(UnknownVoice) as unknown:
        factories.submit(factories.owner("Dora"), voice="jane")
    assert unknown.value.code == "voice_not_found"


def test_an_erased_reporter_leaves_no_address(bob, jane):
    made = report(bob, jane)
    paths = [path for path, _content in personal.export(bob.user)]
    assert "misuse-reports.json" in paths
    assert personal.erase(bob.user)["misuse_reports"] == 1
    made.refresh_from_db()
    assert (made.reporter, made.email, made.details) == (None, "", "")


# --- In the panel -----------------------------------------------------------------------------------------------


def test_trust_decides_in_the_panel(alice, bob, jane):
    client = staff.client_of(staff.person("Trust", roles=["trust"]))
    made = report(bob, jane)
    waiting = factories.submit(alice)
    assert "1 report of misuse waits" in client.get("/admin/").content.decode()
    listed = client.get("/admin/synthesis/misusereport/").content.decode()
    assert "Jane" in listed
    assert "bob@example.org" in listed
    address = f"/admin/synthesis/misusereport/{made.pk}/"
    assert SAID[:20] in client.get(address).content.decode()
    shown = client.post(f"{address}do/take-down/", {"step": "ask", "reason": "No consent", "note": ""})
    assert "blocked at once" in shown.content.decode()
    client.post(f"{address}do/take-down/", {"step": "do", "reason": "No consent", "note": ""})
    jane.refresh_from_db()
    assert jane.taken_down_at is not None
    assert client.get(f"{address}do/dismiss/").status_code == 302  # decided already
    waiting.refresh_from_db()
    assert waiting.status == Status.QUEUED  # with another voice
    voice = f"/admin/synthesis/voice/{jane.pk}/"
    assert "Voice blocked" in client.get(voice).content.decode()
    client.post(f"{voice}do/complaint/", {"step": "do", "kind": "other", "details": SAID, "email": ""})
    assert MisuseReport.objects.filter(decided_at=None).count() == 1


def test_a_decider_hears_the_voice_and_that_is_kept(jane):
    client = staff.client_of(staff.person("Trust", roles=["trust"]))
    preset = factories.preset()
    answer = client.get(f"/admin/voices/{preset.pk}/sample/")
    assert answer.status_code == 200
    assert AuditEntry.objects.get(action="voice.heard").target_id == str(preset.pk)
    assert client.get(f"/admin/voices/{jane.pk}/sample/").status_code == 404


def test_others_see_no_reports(bob, jane):
    made = report(bob, jane)
    client = staff.client_of(staff.person("Helper", roles=["support", "billing"]))
    assert client.get("/admin/synthesis/misusereport/").status_code == 403
    assert client.get(f"/admin/synthesis/misusereport/{made.pk}/").status_code == 403
    assert client.get(f"/admin/voices/{jane.pk}/sample/").status_code == 403
    assert "misuse" not in client.get("/admin/").content.decode().lower()
    helper = Operator.person(staff.person("Other", roles=["support"]))
    with pytest.raises(NotAllowed):
        misuse.dismiss(by=helper, report_id=made.pk, note="x")
    with pytest.raises(NotAllowed):
        misuse.take_down(by=helper, report_id=made.pk, reason="x")
