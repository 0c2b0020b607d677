"""A person's data: complete when handed out, gone when erased, with a report."""

from __future__ import annotations

import io
import json
import zipfile

import pytest
from django.db import transaction
from django.test import Client

from accounts.errors import Conflict, NotAllowed, NotAuthenticated
from accounts.models import ApiKey, AuditEntry, Invitation, Membership, Role, User
from accounts.operators import Operator
from accounts.services import keys, personal, teams
from synthesis import storage
from synthesis.models import Callback, Output, Segment, Status, SynthesisRequest, Voice, VoiceVersion
from synthesis.services import dispatch, housekeeping, verification
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db

BY = Operator.command()


def spoken(person, text: str) -> SynthesisRequest:
    """A finished request whose sound is in storage."""
    factories.submit(person, text=text, title="My title")
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    key = storage.output_key(claimed, "mp3")
    storage.put(key, b"sound of " + text.encode(), "audio/mpeg")
    assert dispatch.complete(claimed, dispatch.Made(key, "audio/mpeg", 9, "0" * 64, 1.0, 24_000))
    return claimed


def voice_of(person) -> Voice:
    """A cloned voice with two stored files."""
    voice = Voice.objects.create(
        team=person.actor.team, created_by=person.user, kind="cloned", name="Grandmother", language="en-US"
    )
    version = VoiceVersion(
        voice=voice,
        number=1,
        original_name="granny.m4a",
        sample_rate=24_000,
        seconds=8,
        window_start=0,
        window_end=8,
        original_seconds=9,
        transcript="What she said.",
        consent_statement="I have her permission.",
        consent_by=person.user,
        consent_at=person.user.date_joined,
    )
    version.original_key = storage.version_key(person.actor.team.pk, version, "original")
    version.processed_key = storage.version_key(person.actor.team.pk, version, "prompt.wav")
    for key in (version.original_key, version.processed_key):
        storage.put(key, b"recording", "application/octet-stream")
    version.save()
    Voice.objects.filter(pk=voice.pk).update(current_version=version)
    return voice


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


def archive(data: bytes) -> zipfile.ZipFile:
    opened = zipfile.ZipFile(io.BytesIO(data))
    assert opened.testzip() is None
    return opened


def test_the_export_has_everything(alice):
    request = spoken(alice, "Hello from me.")
    voice = voice_of(alice)
    bob = factories.colleague(alice, "Bob")
    spoken(bob, "Bob's own words.")
    opened = archive(b"".join(personal.export(by=BY, user_id=alice.user.pk)))
    account = json.loads(opened.read("account.json"))
    assert account["email"] == "alice@example.org"
    assert account["teams"][0]["role"] == "owner"
    assert account["characters_charged"] == len("Hello from me.")
    assert alice.secret.rsplit("_", 1)[1] not in opened.read("account.json").decode()
    (line,) = opened.read("requests.jsonl").decode().splitlines()
    assert json.loads(line)["text"] == "Hello from me."
    assert opened.read(f"audio/{request.pk}.mp3") == b"sound of Hello from me."
    assert opened.read(f"voices/{voice.pk}/1-original") == b"recording"
    assert "granny.m4a" in opened.read(f"voices/{voice.pk}/voice.json").decode()
    assert b"synthesis.submitted" in opened.read("audit.jsonl")
    assert not any(b"Bob" in opened.read(name) for name in opened.namelist())
    assert AuditEntry.objects.filter(action="person.exported").count() == 1


def test_what_is_no_longer_stored_is_left_out(alice):
    request = spoken(alice, "Gone already.")
    storage.delete_prefix(storage.request_prefix(request.team_id, request.pk))
    opened = archive(b"".join(personal.export(by=BY, user_id=alice.user.pk)))
    assert not [name for name in opened.namelist() if name.startswith("audio/")]


@pytest.mark.django_db(transaction=True)
def test_erasing_removes_everything_and_says_what(alice):
    request, waiting = spoken(alice, "Secret words."), factories.submit(alice, text="Still waiting.")
    told = {"webhook": "https://alice.example.org/", "webhook_events": ["completed"]}
    SynthesisRequest.objects.filter(pk=waiting.pk).update(**told)
    voice = voice_of(alice)
    teams.invite(actor=alice.actor, email="x@example.org", role="member", accept_url="http://x/{token}")
    Invitation.objects.update(email="alice@example.org")
    browser = Client()
    browser.force_login(alice.user)
    keys_before = [storage.output_key(request, "mp3"), voice.versions.get().original_key]
    report = personal.erase(by=BY, user_id=alice.user.pk, reason="They asked")
    assert report["removed"] == {
        "texts": 2,
        "recordings": 1,
        "voices": 1,
        "voice_recordings": 1,
        "consent_recordings": 0,
        "teams_closed": 1,
        "memberships": 1,
        "api_keys": 1,
        "invitations": 1,
        "sessions": 1,
        "second_factors": 0,
        "misuse_reports": 0,
    }
    assert report["kept"]["ledger_entries"] == 4
    user = User.objects.get(pk=alice.user.pk)
    assert (user.name, user.is_active, user.has_usable_password()) == ("", False, False)
    assert "alice" not in user.email
    for row in SynthesisRequest.objects.all():
        assert (row.text, row.title, row.webhook) == ("", "", "")
    assert not Callback.objects.exists()
    waiting.refresh_from_db()
    assert waiting.status == Status.CANCELED
    assert not Segment.objects.exists()
    assert not Output.objects.exists()
    version = VoiceVersion.objects.get()
    assert (version.transcript, version.original_name, version.consent_by) == ("", "", None)
    assert "Grandmother" not in Voice.objects.get(kind="cloned").name
    from accounts.errors import NotFound

    for key in keys_before:
        with pytest.raises(NotFound):
            storage.get(key)
    assert browser.get("/").status_code == 302
    with pytest.raises(NotAuthenticated):
        keys.authenticate(alice.secret, ip="127.0.0.1")
    entry = AuditEntry.objects.get(action="person.erased")
    assert entry.data["removed"] == report["removed"]
    assert "alice" not in json.dumps(entry.data)
    # What is left adds up, and the sweep stumbles over nothing.
    assert verification.verify().is_clean
    housekeeping.delete_orphans()
    housekeeping.delete_expired_outputs()


def test_who_is_not_erased(alice):
    bob = factories.colleague(alice, "Bob")
    with pytest.raises(Conflict) as caught:
        personal.erase(by=BY, user_id=alice.user.pk)
    assert caught.value.code == "last_owner"
    assert "Harbour Audio" in str(caught.value)
    Membership.objects.filter(user=bob.user).update(role=Role.OWNER)
    personal.erase(by=BY, user_id=alice.user.pk)
    root = staff.person()
    with pytest.raises(Conflict):
        personal.erase(by=BY, user_id=root.pk)
    bob.actor.team.refresh_from_db()
    assert bob.actor.team.suspended_at is None


def test_a_refusal_removes_nothing(alice, monkeypatch):
    spoken(alice, "Stays.")

    def broken(*_args):
        raise RuntimeError

    monkeypatch.setattr(personal, "_anonymise", broken)
    with pytest.raises(RuntimeError), transaction.atomic():
        personal.erase(by=BY, user_id=alice.user.pk)
    assert SynthesisRequest.objects.get().text == "Stays."
    assert ApiKey.objects.get().revoked_at is None


def test_without_the_right_nothing_happens(alice):
    trust = Operator.person(staff.person("Trust", roles=["trust"]))
    with pytest.raises(NotAllowed):
        personal.erase(by=trust, user_id=alice.user.pk)
    with pytest.raises(NotAllowed):
        personal.export(by=trust, user_id=alice.user.pk)


def test_from_the_panel(alice):
    client = staff.client_of(staff.person())
    address = f"/admin/accounts/user/{alice.user.pk}/"
    assert "Export their data" in client.get(address).content.decode()
    answer = client.post(f"/admin/people/{alice.user.pk}/export/")
    assert "account.json" in archive(answer.getvalue()).namelist()
    assert client.get(f"/admin/people/{alice.user.pk}/export/").status_code == 405
    sent = {"confirm": "wrong@example.org", "reason": ""}
    assert client.post(f"{address}do/erase/", {"step": "ask", **sent}).status_code == 422
    sent["confirm"] = "Alice@example.org"
    assert "stay, under an id" in client.post(f"{address}do/erase/", {"step": "ask", **sent}).content.decode()
    assert client.post(f"{address}do/erase/", {"step": "do", **sent}).status_code == 302
    assert not User.objects.filter(email="alice@example.org").exists()
