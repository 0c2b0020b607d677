"""What becomes of a batch when voices, keys, people and teams change before its rows are spoken."""

from __future__ import annotations

import json

import pytest

from accounts.models import Role
from accounts.operators import Operator
from accounts.services import keys, limits, suspension
from synthesis.models import Batch, SynthesisRequest, Voice
from synthesis.services import batch_admission, operations
from synthesis.services import personal as personal_data
from tests import factories
from tests.synthesis import batching, finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


class TestWhatChangesMeanwhile:
    def test_a_deleted_voice(self, client, alice):
        voice = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Mine", language="en-US")
        batch = batching.made(client, alice, "text,voice\nHi.,Mine\nHi.,Hibari\n", admit=False)
        client.delete(f"/v1/voices/{voice.id}", headers=alice.headers)
        batch_admission.admit_waiting()
        rows = batching.get(client, alice, batch, "/rows")["results"]
        assert [row["status"] for row in rows] == ["failed", "queued"]
        assert rows[0]["error"]["code"] == "voice_not_found"
        assert limits.standing(alice.actor).reserved == len("Hi.")
        batching.accounts_are_right()

    def test_a_revoked_key(self, client, alice):
        batch = batching.made(client, alice, admit=False)
        keys.revoke(actor=alice.actor, key_id=alice.by_key.api_key.id)
        batch_admission.admit_waiting()
        _key, secret = keys.create(actor=alice.actor, name="new")
        body = client.get(
            f"{batching.URL}/{batch['id']}", headers={"authorization": f"Bearer {secret}"}
        ).json()
        assert body["counts"]["failed"] == 3
        assert not SynthesisRequest.objects.exists()
        assert limits.standing(alice.actor).reserved == 0
        batching.accounts_are_right()
        response = client.post(
            f"{batching.URL}/{batch['id']}/retry", headers={"authorization": f"Bearer {secret}"}
        )
        assert batching.error(response)[:2] == (409, "batch_key_revoked")

    def test_a_person_who_left_or_lost_the_role(self, client, alice):
        bob, dora = factories.colleague(alice, "Bob"), factories.colleague(alice, "Dora")
        one, two = batching.made(client, bob, admit=False), batching.made(client, dora, admit=False)
        bob.actor.membership.delete()
        dora.actor.membership.role = Role.VIEWER
        dora.actor.membership.save()
        batch_admission.admit_waiting()
        codes = {
            row["error"]["code"]
            for batch in (one, two)
            for row in batching.get(client, alice, batch, "/rows")["results"]
        }
        assert codes == {"person_gone", "permission_denied"}
        assert limits.standing(alice.actor).reserved == 0

    def test_a_suspended_team_waits(self, client, alice):
        batching.made(client, alice, admit=False)
        suspension.suspend_team(by=Operator.sweep(), team_id=alice.actor.team.id)
        assert batch_admission.admit_waiting() == 0
        suspension.restore_team(by=Operator.sweep(), team_id=alice.actor.team.id)
        assert batch_admission.admit_waiting() == 3

    def test_suspended_and_what_waits_canceled(self, client, alice):
        batching.made(client, alice, "text,voice\n" + "Hi.,Hibari\n" * 3, admit=False)
        batch_admission.admit(Batch.objects.get().id)
        batching.made(client, alice, admit=False)
        canceled = suspension.suspend_team(
            by=Operator.sweep(), team_id=alice.actor.team.id, cancel_waiting=True
        )
        assert canceled == 6
        assert limits.standing(alice.actor).reserved == 0
        batching.accounts_are_right()

    def test_maintenance_waits(self, client, alice, monkeypatch):
        batching.made(client, alice, admit=False)
        monkeypatch.setattr(batch_admission.operator_settings, "get", lambda key: key == "maintenance")
        assert batch_admission.admit_waiting() == 0
        assert Batch.objects.get().waiting

    def test_an_operator_tries_a_row_again(self, client, alice):
        batch = batching.made(client, alice)
        failed = finished.fail(batching.in_order()[0])
        new = operations.retry(by=Operator.sweep(), request_id=failed.id)
        row = batching.get(client, alice, batch, "/rows")["results"][0]
        assert (row["synthesis_id"], row["status"]) == (str(new.id), "queued")
        batching.accounts_are_right()

    def test_a_person_who_is_exported_and_erased(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        batching.made(client, bob)
        batching.made(client, bob, admit=False)
        exported = dict(personal_data.export(bob.user))
        waiting = [json.loads(line) for line in exported["waiting.jsonl"]]
        assert [(row["row"], row["text"]) for row in waiting] == [
            (1, "One is here."),
            (2, "Two is here."),
            (3, "Three is here."),
        ]
        personal_data.erase(bob.user)
        assert not Batch.objects.exists()
        assert not SynthesisRequest.objects.exclude(text="").exists()
        assert limits.standing(alice.actor).reserved == 0
        batching.accounts_are_right()
