"""`/v1/batches/{id}`: show, rows, cancel, retry, delete, zip."""

from __future__ import annotations

import csv
import io
import json
import uuid
import zipfile

import pytest

from accounts.models import AuditEntry, Role, TeamQuota
from accounts.services import keys, limits
from synthesis.models import Batch, BatchRow, Output, SynthesisRequest, Voice
from synthesis.services import batch_admission, housekeeping
from tests import factories
from tests.synthesis import batching, finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


class TestListAndRows:
    def test_list(self, client, alice, charlie):
        made = [batching.made(client, alice, name=str(number)) for number in range(3)]
        body = client.get(batching.URL, {"limit": 2}, headers=alice.headers).json()
        assert [one["id"] for one in body["results"]] == [made[2]["id"], made[1]["id"]]
        batching.made(client, alice, name="later")
        rest = client.get(body["next"], headers=alice.headers).json()
        assert [one["id"] for one in rest["results"]] == [made[0]["id"]]
        assert client.get(batching.URL, headers=charlie.headers).json()["results"] == []

    def test_states_and_rows(self, client, alice):
        batch = batching.made(client, alice)
        one, two, three = batching.in_order()
        finished.succeed(one)
        finished.fail(two)
        assert batching.get(client, alice, batch)["status"] == "running"
        claimed = finished.claim(three)
        state = batching.get(client, alice, batch)
        assert state["counts"] == {"queued": 0, "running": 1, "succeeded": 1, "failed": 1, "canceled": 0}
        assert (state["characters_charged"], state["audio_seconds"]) == (len("One is here."), 2.5)
        assert state["completed_at"] is None
        rows = batching.get(client, alice, batch, "/rows")["results"]
        assert [(row["row"], row["line"], row["status"]) for row in rows] == [
            (1, 2, "succeeded"),
            (2, 3, "failed"),
            (3, 4, "running"),
        ]
        assert rows[0]["synthesis_id"] == str(one.id)
        assert rows[0]["urls"]["audio"].endswith(f"/v1/syntheses/{one.id}/audio")
        assert (rows[0]["title"], rows[0]["voice"]["name"]) == ("First", "Hibari")
        assert rows[0]["output"] == {
            "file": "00001 First.mp3",
            "content_type": "audio/mpeg",
            "bytes": len(finished.SOUND),
            "sha256": one.output.sha256,
            "seconds": 2.5,
        }
        assert rows[1]["output"] is None
        assert rows[1]["error"] == {"code": "engine_error", "message": "It broke."}
        assert claimed.priority == batch_admission.PRIORITY

    def test_filter_and_cursor(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        batch = batching.made(client, alice)
        finished.fail(batching.in_order()[0])
        path = f"{batching.URL}/{batch['id']}/rows"
        page = client.get(path, {"status": "queued", "limit": 1}, headers=alice.headers).json()
        assert [row["row"] for row in page["results"]] == [2]
        page = client.get(page["next"], headers=alice.headers).json()
        (row,) = page["results"]
        assert (row["row"], row["synthesis_id"], row["urls"], row["title"]) == (3, None, None, "Third")
        failed = client.get(path, {"status": "failed"}, headers=alice.headers).json()["results"]
        assert [row["row"] for row in failed] == [1]
        assert batching.error(client.get(path, {"status": "odd"}, headers=alice.headers))[2] == "status"
        assert (
            batching.error(client.get(path, {"cursor": "cD14"}, headers=alice.headers))[1] == "cursor_invalid"
        )

    def test_the_end(self, client, alice):
        batch = batching.made(client, alice)
        for row in batching.in_order():
            finished.succeed(row)
        state = batching.get(client, alice, batch)
        assert (state["status"], state["characters_charged"]) == ("succeeded", batching.CHARACTERS)
        assert state["completed_at"] is not None
        batching.accounts_are_right()

    def test_a_row_that_is_canceled_or_deleted_alone(self, client, alice):
        batch = batching.made(client, alice)
        one, two, _three = batching.in_order()
        client.post(f"/v1/syntheses/{one.id}/cancel", headers=alice.headers)
        client.delete(f"/v1/syntheses/{two.id}", headers=alice.headers)
        rows = batching.get(client, alice, batch, "/rows")["results"]
        assert [row["status"] for row in rows] == ["canceled", "canceled", "queued"]
        assert (rows[1]["synthesis_id"], rows[1]["title"]) == (None, "")


class TestCancel:
    def test_everything_that_has_not_ended(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        batch = batching.made(client, alice, batching.CSV + "Four.,Hibari,\n")
        one, two = batching.in_order()
        finished.succeed(one)
        finished.claim(two)
        response = client.post(f"{batching.URL}/{batch['id']}/cancel", headers=alice.headers)
        assert response.status_code == 200
        assert response.json()["status"] == "canceled"
        assert response.json()["counts"] == {
            "queued": 0,
            "running": 0,
            "succeeded": 1,
            "failed": 0,
            "canceled": 3,
        }
        standing = limits.standing(alice.actor)
        assert (standing.used, standing.reserved) == (one.characters, 0)
        assert not BatchRow.objects.filter(input__isnull=False).exists()
        assert batch_admission.admit_waiting() == 0
        batching.accounts_are_right()
        again = client.post(f"{batching.URL}/{batch['id']}/cancel", headers=alice.headers).json()
        assert again == response.json()
        assert AuditEntry.objects.filter(action="batch.canceled").count() == 1


class TestRetry:
    def _retry(self, client, person, batch):
        return client.post(f"{batching.URL}/{batch['id']}/retry", headers=person.headers)

    def test_the_failed_rows(self, client, alice):
        batch = batching.made(client, alice)
        one, two, three = batching.in_order()
        finished.succeed(one)
        finished.fail(two)
        client.post(f"/v1/syntheses/{three.id}/cancel", headers=alice.headers)
        response = self._retry(client, alice, batch)
        assert (response.status_code, response.json()["retried"]) == (200, 1)
        assert response.json()["counts"]["queued"] == 1
        batch_admission.admit_waiting()
        again = SynthesisRequest.objects.get(status="queued")
        assert (again.text, again.retry_of_id, again.seed) == (two.text, two.id, two.seed)
        finished.succeed(again)
        standing = limits.standing(alice.actor)
        assert (standing.used, standing.reserved) == (one.characters + two.characters, 0)
        batching.accounts_are_right()
        assert self._retry(client, alice, batch).json()["retried"] == 0

    def test_rows_that_were_never_requests(self, client, alice):
        batch = batching.made(client, alice, admit=False)
        alice.actor.membership.role = Role.VIEWER
        alice.actor.membership.save()
        batch_admission.admit_waiting()
        alice.actor.membership.role = Role.OWNER
        alice.actor.membership.save()
        assert self._retry(client, alice, batch).json()["retried"] == 3
        batch_admission.admit_waiting()
        assert [row.text for row in batching.in_order()] == ["One is here.", "Two is here.", "Three is here."]
        batching.accounts_are_right()

    def test_the_quota_does_not_cover_them(self, client, alice):
        batch = batching.made(client, alice)
        for row in batching.in_order():
            finished.fail(row)
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=batching.CHARACTERS - 1)
        assert batching.error(self._retry(client, alice, batch))[:2] == (429, "quota_exceeded")
        assert batching.get(client, alice, batch)["counts"]["failed"] == 3
        assert limits.standing(alice.actor).reserved == 0

    def test_a_text_that_was_deleted(self, client, alice):
        batch = batching.made(client, alice)
        row = finished.fail(batching.in_order()[0])
        client.delete(f"/v1/syntheses/{row.id}", headers=alice.headers)
        assert self._retry(client, alice, batch).json()["retried"] == 0


class TestDelete:
    def test_nothing_is_left_but_the_account(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        key = {"idempotency-key": "k1"}
        batching.post(client, alice, headers=key)
        batch_admission.admit_waiting()
        batch = Batch.objects.get()
        one, _two = batching.in_order()
        finished.succeed(one)
        response = client.delete(f"{batching.URL}/{batch.id}", headers=alice.headers)
        assert response.status_code == 204
        assert client.get(f"{batching.URL}/{batch.id}", headers=alice.headers).status_code == 404
        assert not BatchRow.objects.exists()
        assert not Output.objects.exists()
        assert set(SynthesisRequest.objects.values_list("text", "title", "status")) == {
            ("", "", "succeeded"),
            ("", "", "canceled"),
        }
        standing = limits.standing(alice.actor)
        assert (standing.used, standing.reserved) == (one.characters, 0)
        batching.accounts_are_right()
        monkeypatch.setattr(housekeeping, "_GRACE", -housekeeping._GRACE)
        assert housekeeping.delete_orphans() == 1
        # The key does not bring it back.
        assert batching.post(client, alice, headers=key).json()["id"] != str(batch.id)


class TestZip:
    def _open(self, client, person, batch):
        response = client.get(f"{batching.URL}/{batch['id']}/zip", headers=person.headers)
        assert response.status_code == 200, response.content
        assert response.headers["Content-Type"] == "application/zip"
        return zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))), response

    def test_names_sound_and_manifest(self, client, alice):
        lines = [
            ("One.", "../../etc/passwd"),
            ("Two.", "早安，世界：第一章"),
            ("Three.", "same"),
            ("Four.", "same"),
            ("Five is said like this", ""),
            ("Six.", "长" * 150),
            ("Seven.", "fails"),
        ]
        data = "text,voice,title\n" + "".join(f"{text},Hibari,{title}\n" for text, title in lines)
        batch = batching.made(client, alice, data, name="第一章.csv")
        rows = batching.in_order()
        for index, row in enumerate(rows[:6]):
            finished.succeed(row, bytes([index]) * 200_000)
        finished.fail(rows[6])
        archive, response = self._open(client, alice, batch)
        assert "filename*=utf-8''%E7%AC%AC%E4%B8%80%E7%AB%A0.zip" in response.headers["Content-Disposition"]
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == [
            "00001 etc passwd.mp3",
            "00002 早安，世界：第一章.mp3",
            "00003 same.mp3",
            "00004 same.mp3",
            "00005 Five is said like this.mp3",
            f"00006 {'长' * 40}.mp3",
            "manifest.csv",
            "manifest.jsonl",
        ]
        for index, name in enumerate(names[:6]):
            assert archive.read(name) == bytes([index]) * 200_000
        table = list(csv.DictReader(io.StringIO(archive.read("manifest.csv").decode("utf-8-sig"))))
        assert [row["file"] for row in table] == [*names[:6], ""]
        assert (table[1]["title"], table[6]["status"], table[6]["error"]) == (
            "早安，世界：第一章",
            "failed",
            "engine_error",
        )
        lines = [json.loads(line) for line in archive.read("manifest.jsonl").splitlines()]
        assert (lines[0]["row"], lines[0]["file"], lines[0]["seconds"]) == (1, names[0], 2.5)

    def test_a_formula_is_none(self, client, alice):
        batch = batching.made(client, alice, 'text,voice,title\nOne.,Hibari,"=1+1"\n')
        finished.succeed(batching.in_order()[0])
        archive, _response = self._open(client, alice, batch)
        assert ",'=1+1," in archive.read("manifest.csv").decode()

    def test_before_all_is_done_and_after_some_is_gone(self, client, alice):
        batch = batching.made(client, alice)
        path = f"{batching.URL}/{batch['id']}/zip"
        assert batching.error(client.get(path, headers=alice.headers))[:2] == (409, "not_ready")
        one, two, _three = batching.in_order()
        finished.succeed(one)
        finished.succeed(two)
        Output.objects.filter(request=one).delete()
        archive, _response = self._open(client, alice, batch)
        assert archive.namelist() == ["00002 Two is here.mp3", "manifest.csv", "manifest.jsonl"]

    def test_it_is_not_gathered_in_memory(self, client, alice):
        """The first bytes leave before the last file is read."""
        batch = batching.made(client, alice)
        for row in batching.in_order():
            finished.succeed(row, bytes(300_000))
        stream = iter(
            client.get(f"{batching.URL}/{batch['id']}/zip", headers=alice.headers).streaming_content
        )
        sizes = [len(piece) for piece in stream]
        assert max(sizes) < 150_000
        assert sum(sizes) > 900_000


#: Every route of one batch, with its method.
ROUTES = [
    ("get", ""),
    ("delete", ""),
    ("get", "/rows"),
    ("post", "/cancel"),
    ("post", "/retry"),
    ("get", "/zip"),
]


class TestWhoMay:
    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_a_strangers(self, client, alice, charlie, method, what):
        batch = batching.made(client, alice)
        finished.succeed(batching.in_order()[0])
        response = getattr(client, method)(f"{batching.URL}/{batch['id']}{what}", headers=charlie.headers)
        assert batching.error(response)[:2] == (404, "batch_not_found")
        assert batching.get(client, alice, batch)["counts"]["queued"] == 2

    def test_a_strangers_voice(self, client, alice, charlie):
        hers = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Secret", language="en-US")
        for named in (str(hers.id), "Secret"):
            response = batching.post(client, charlie, f"text,voice\nHi.,{named}\n")
            assert response.json()["error"]["problems"][0]["code"] == "voice_not_found"
        assert batching.nothing_happened()

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense"])
    def test_no_key_and_what_does_not_exist(self, client, alice, method, what, identifier):
        url = f"{batching.URL}/{identifier}{what}"
        assert getattr(client, method)(url).status_code == 401
        response = getattr(client, method)(url, headers=alice.headers)
        assert batching.error(response)[:2] == (404, "batch_not_found")

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_with_the_other_header(self, client, alice, method, what):
        batch = batching.made(client, alice)
        finished.succeed(batching.in_order()[0])
        headers = {"xi-api-key": alice.secret}
        assert getattr(client, method)(
            f"{batching.URL}/{batch['id']}{what}", headers=headers
        ).status_code in (
            200,
            204,
        )

    def test_a_viewer_looks_and_changes_nothing(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        batch = batching.made(client, alice)
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(batching.URL, headers=bob.headers).status_code == 200
        assert batching.error(batching.post(client, bob))[:2] == (403, "permission_denied")
        for method, what in ROUTES:
            response = getattr(client, method)(f"{batching.URL}/{batch['id']}{what}", headers=bob.headers)
            assert response.status_code in ((200, 409) if method == "get" else (403,))

    def test_a_key_without_the_scope_and_wrong_method(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["syntheses:read"])
        narrow = {"authorization": f"Bearer {secret}"}
        response = client.generic("POST", batching.URL, batching.CSV, content_type="text/csv", headers=narrow)
        assert batching.error(response)[:2] == (403, "insufficient_scope")
        assert client.patch(batching.URL, headers=alice.headers).status_code == 405
        batch = batching.made(client, alice)
        assert client.get(f"{batching.URL}/{batch['id']}/retry", headers=alice.headers).status_code == 405
        assert client.post(f"{batching.URL}/{batch['id']}/zip", headers=alice.headers).status_code == 405

    def test_a_colleague_may(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        batch = batching.made(client, alice)
        assert client.post(f"{batching.URL}/{batch['id']}/cancel", headers=bob.headers).status_code == 200
