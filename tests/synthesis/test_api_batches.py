"""`/v1/batches`: submit, list, show, rows, cancel, retry, delete, zip."""

from __future__ import annotations

import csv
import io
import json
import uuid
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import AuditEntry, LedgerEntry, MemberQuota, Role, TeamQuota
from accounts.operators import Operator
from accounts.redis import client as redis_client
from accounts.services import keys, limits, suspension
from synthesis.models import Batch, BatchRow, Output, SynthesisRequest, Voice
from synthesis.services import batch_admission, batch_files, batches, housekeeping, operations, verification
from tests import factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db

URL = "/v1/batches"
CSV = "text,voice,title\nOne is here.,Hibari,First\nTwo is here.,Hibari,\nThree is here.,Hibari,Third\n"
CHARACTERS = len("One is here.") + len("Two is here.") + len("Three is here.")


@pytest.fixture(autouse=True)
def _no_rates():
    redis_client().flushdb()


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


@pytest.fixture
def charlie():
    return factories.owner("Charlie")


def _post(client, person, data=CSV, kind="text/csv", headers=None, **options):
    body = data.encode() if isinstance(data, str) else data
    return client.generic(
        "POST",
        URL,
        body,
        content_type=kind,
        headers=person.headers | (headers or {}),
        query_params=options,
    )


def _form(client, person, data=CSV, name="lines.csv", **fields):
    body = data.encode() if isinstance(data, str) else data
    file = SimpleUploadedFile(name, body)
    return client.post(URL, {"file": file, **fields}, headers=person.headers)


def _made(client, person, data=CSV, admit=True, **options):
    """A batch whose first rows are requests."""
    response = _post(client, person, data, **options)
    assert response.status_code == 201, response.content
    if admit:
        batch_admission.admit_waiting()
    return response.json()


def _get(client, person, batch, what=""):
    response = client.get(f"{URL}/{batch['id']}{what}", headers=person.headers)
    assert response.status_code == 200, response.content
    return response.json()


def _error(response):
    error = response.json()["error"]
    return response.status_code, error["code"], error["param"]


def _nothing_happened():
    return not (Batch.objects.exists() or SynthesisRequest.objects.exists() or LedgerEntry.objects.exists())


def _accounts_are_right():
    assert verification.verify().is_clean


def _in_order():
    return list(SynthesisRequest.objects.order_by("created_at", "id"))


class TestSubmit:
    def test_each_row_becomes_a_request(self, client, alice):
        response = _post(client, alice)
        assert response.status_code == 201
        body = response.json()
        assert response.headers["Location"] == body["urls"]["get"] == f"http://testserver{URL}/{body['id']}"
        assert (body["status"], body["rows_total"], body["characters"]) == ("queued", 3, CHARACTERS)
        assert body["counts"] == {"queued": 3, "running": 0, "succeeded": 0, "failed": 0, "canceled": 0}
        assert (body["characters_charged"], body["completed_at"], body["source"]) == (0, None, "api")
        # Reserved at once, queued by the next line.
        assert limits.standing(alice.actor).reserved == CHARACTERS
        assert not SynthesisRequest.objects.exists()
        _accounts_are_right()
        assert batch_admission.admit_waiting() == 3
        rows = _in_order()
        assert [row.text for row in rows] == ["One is here.", "Two is here.", "Three is here."]
        assert [row.title for row in rows] == ["First", "", "Third"]
        assert {(row.source, row.api_key, row.user) for row in rows} == {
            ("api", alice.by_key.api_key, alice.user)
        }
        assert limits.standing(alice.actor).reserved == CHARACTERS
        assert BatchRow.objects.filter(input__isnull=False).count() == 0
        assert AuditEntry.objects.get(action="batch.created").data["rows"] == 3
        _accounts_are_right()

    def test_it_begins_by_itself_after_the_commit(self, client, alice, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            _post(client, alice)
        assert SynthesisRequest.objects.count() == 3

    @pytest.mark.parametrize("kind", ["application/jsonl", "application/x-ndjson"])
    def test_json_lines(self, client, alice, kind):
        lines = [
            {"text": "One\u2028line.", "voice": "Hibari", "speed": 1, "seed": 7, "title": None},
            {"text": "Two.", "voice": {"id": str(factories.preset().id)}, "format": "wav"},
        ]
        data = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
        _made(client, alice, data, kind=kind)
        one, two = _in_order()
        assert (one.text, one.speed, one.seed) == ("One\nline.", 1.0, 7)
        assert (two.text, two.format) == ("Two.", "wav")
        assert [row.line for row in BatchRow.objects.order_by("number")] == [1, 3]

    @pytest.mark.parametrize("name", ["lines.csv", "lines.jsonl", "lines", "lines.txt"])
    def test_a_form(self, client, alice, name):
        data = '{"text": "One."}\n' if name.endswith("jsonl") else "text\nOne.\n"
        response = _form(client, alice, data, name, voice="Hibari", format="flac", speed="1.25", seed="5")
        assert response.status_code == 201, response.content
        assert response.json()["name"] == name
        batch_admission.admit_waiting()
        row = SynthesisRequest.objects.get()
        assert (row.format, row.speed, row.seed) == ("flac", 1.25, 5)

    def test_rows_before_defaults(self, client, alice):
        data = "text;format;speed\nOne.;wav;\nTwo.;;0,9\n".replace("0,9", "0.9")
        _made(client, alice, data, voice="Hibari", format="flac", speed="1.5", name="Mine")
        assert [(row.format, row.speed) for row in _in_order()] == [("wav", 1.5), ("flac", 0.9)]
        assert Batch.objects.get().name == "Mine"

    @pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_what_spreadsheets_write(self, client, alice, bom, end):
        lines = ["Text,Voice", '"He said ""yes"", then left.",Hibari', "", ",", '"Two', 'lines.",hibari']
        _made(client, alice, bom + end.join(lines).encode())
        assert [row.text for row in _in_order()] == ['He said "yes", then left.', "Two\nlines."]
        assert [row.line for row in BatchRow.objects.order_by("number")] == [2, 5]

    def test_chinese(self, client, alice, settings):
        settings.CHORUS_ENGINE = "kokoro"
        factories.preset("小晓", engine="kokoro", preset="zf_xiaoxiao", language="zh")
        text = "今天天气很好，我们去散步吧。"
        batch = _made(client, alice, f"text,voice,title\n{text},小晓,早安\n", name="第一章")
        row = SynthesisRequest.objects.get()
        assert (row.text, row.title, row.language, row.characters) == (text, "早安", "zh", len(text))
        assert batch["name"] == "第一章"

    def test_a_dry_run(self, client, alice):
        response = _post(client, alice, dry_run="true")
        assert response.status_code == 200
        assert response.json() == {
            "dry_run": True,
            "rows_total": 3,
            "characters": CHARACTERS,
            "limit": None,
        }
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        assert _post(client, alice, dry_run="1").json()["limit"]["code"] == "quota_exceeded"
        assert _nothing_happened()


class TestBadRows:
    @pytest.mark.parametrize(
        ("data", "row", "line", "column", "code"),
        [
            ("text,voice\nHi.,Hibari\nHi.,Nobody\n", 2, 3, "voice", "voice_not_found"),
            ("text,voice\n,Hibari\n", 1, 2, "text", "text_empty"),
            ("text,voice\n?!,Hibari\n", 1, 2, "text", "text_not_speakable"),
            ("text\nHi.\n", 1, 2, "voice", "missing_field"),
            ("text,voice,speed\nHi.,Hibari,fast\n", 1, 2, "speed", "invalid_value"),
            ("text,voice,speed\nHi.,Hibari,9\n", 1, 2, "speed", "speed_out_of_range"),
            ("text,voice,speed\nHi.,Hibari,nan\n", 1, 2, "speed", "invalid_value"),
            ("text,voice,seed\nHi.,Hibari,1.5\n", 1, 2, "seed", "invalid_value"),
            ("text,voice,seed\nHi.,Hibari,-1\n", 1, 2, "seed", "seed_out_of_range"),
            ("text,voice,format\nHi.,Hibari,mp4\n", 1, 2, "format", "format_unknown"),
            ("text,voice,language\nHi.,Hibari,fr\n", 1, 2, "language", "language_not_supported"),
            ("text,voice\n你好，世界。,Hibari\n", 1, 2, "text", "language_not_supported"),
            (
                "text,voice,instruction\nHi.,Hibari,Whisper\n",
                1,
                2,
                "instruction",
                "instruction_not_supported",
            ),
            ("text,voice,title\nHi.,Hibari," + "x" * 201 + "\n", 1, 2, "title", "title_invalid"),
            ("text,voice\nHi, there.,Hibari\n", 1, 2, None, "csv_too_many_cells"),
            ('text,voice\nHi.,Hibari\n"Hi,Hibari\n', 2, 3, None, "csv_malformed"),
            ("text,voice,mood\nHi.,Hibari,glad\n", 0, 1, "mood", "column_unknown"),
            ("text,voice,Text\nHi.,Hibari,Hi.\n", 0, 1, "text", "column_twice"),
            ("words,voice\nHi.,Hibari\n", 0, 1, "words", "column_unknown"),
            ("voice\nHibari\n", 0, 1, "text", "missing_field"),
        ],
    )
    def test_csv(self, client, alice, data, row, line, column, code):
        response = _post(client, alice, data)
        assert _error(response) == (400, "batch_invalid", column or "file")
        problem = response.json()["error"]["problems"][0]
        assert (problem["row"], problem["line"], problem["column"], problem["code"]) == (
            row,
            line,
            column,
            code,
        )
        assert problem["message"] in response.json()["error"]["message"]
        assert _nothing_happened()

    @pytest.mark.parametrize(
        ("line", "column", "code"),
        [
            ('{"text": "Hi.", "voice": "Nobody"}', "voice", "voice_not_found"),
            ('{"text": 5, "voice": "Hibari"}', "text", "invalid_value"),
            ('{"text": "Hi.", "voice": ["Hibari"]}', "voice", "invalid_value"),
            ('{"text": "Hi.", "voice": {"name": "x"}}', "voice", "missing_field"),
            ('{"text": "Hi.", "voice": "Hibari", "speed": "1"}', "speed", "invalid_value"),
            ('{"text": "Hi.", "voice": "Hibari", "speed": true}', "speed", "invalid_value"),
            ('{"text": "Hi.", "voice": "Hibari", "speed": 1e400}', "speed", "invalid_value"),
            ('{"text": "Hi.", "voice": "Hibari", "seed": 1.0}', "seed", "invalid_value"),
            ('{"text": "Hi.", "voice": "Hibari", "format": "\\ud800"}', "format", "invalid_value"),
            ('{"text": "Hi.", "voice": "Hibari", "language": "a\\u0000"}', "language", "invalid_value"),
            ('{"text": "Hi. \\ud800", "voice": "Hibari"}', "text", "text_control_characters"),
            ('{"text": "Hi. \\u0000", "voice": "Hibari"}', "text", "text_control_characters"),
            ('{"text": "Hi.", "voice": "Hibari", "\\ud800": 1}', "?", "column_unknown"),
            ('{"text": "Hi.", "voice": NaN}', None, "malformed_json"),
            ("{", None, "malformed_json"),
            ("[]", None, "malformed_json"),
            ("[" * 100_000, None, "malformed_json"),
        ],
    )
    def test_json_lines(self, client, alice, line, column, code):
        data = '{"text": "Good.", "voice": "Hibari"}\n\n' + line
        response = _post(client, alice, data, kind="application/jsonl")
        assert response.status_code == 400
        (problem,) = response.json()["error"]["problems"]
        assert (problem["row"], problem["line"], problem["column"], problem["code"]) == (2, 3, column, code)
        assert _nothing_happened()

    def test_every_problem_is_told_and_all_are_counted(self, client, alice):
        data = "text,voice\n" + "Hi.,Hibari\n,Nobody\n" * 40
        error = _post(client, alice, data).json()["error"]
        assert error["problems_total"] == 40
        assert [problem["row"] for problem in error["problems"]] == list(range(2, 81, 2))
        data = "text,voice\n" + "Hi.,Nobody\n" * 80
        error = _post(client, alice, data).json()["error"]
        assert (error["problems_total"], len(error["problems"])) == (80, batch_files.MOST_PROBLEMS)
        assert "80" in error["message"]

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            ("", "missing_field"),
            ("\n\n", "batch_empty"),
            ("text,voice\n", "batch_empty"),
            (b"\xef\xbb\xbf", "batch_empty"),
            ("text,voice\n你好,Hibari\n".encode("gb18030"), "batch_not_utf8"),
            ("text,voice\nHi.,Hibari\n".encode("utf-16"), "batch_not_utf8"),
        ],
    )
    def test_no_such_file(self, client, alice, data, code):
        assert _error(_post(client, alice, data)) == (400, code, "file")
        assert _nothing_happened()

    def test_too_many_rows_and_bytes(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_files, "MOST_ROWS", 2)
        assert _error(_post(client, alice)) == (400, "batch_too_many_rows", "file")
        monkeypatch.setattr(batch_files, "FILE_BYTES", 20)
        assert _error(_post(client, alice)) == (400, "batch_too_large", "file")
        assert _error(_form(client, alice)) == (400, "batch_too_large", "file")
        assert _nothing_happened()

    def test_a_body_that_is_too_large_is_not_read(self, client, alice):
        response = client.generic(
            "POST", URL, "x", content_type="text/csv", headers=alice.headers, CONTENT_LENGTH=str(2**25)
        )
        assert _error(response)[:2] == (413, "payload_too_large")

    def test_no_file_and_another_kind_of_body(self, client, alice):
        response = client.post(URL, {"voice": "Hibari"}, headers=alice.headers)
        assert _error(response) == (400, "missing_field", "file")
        response = client.post(URL, {"file": "text"}, headers=alice.headers)
        assert _error(response) == (400, "missing_field", "file")
        assert _error(_post(client, alice, "{}", kind="application/json"))[:2] == (
            415,
            "unsupported_media_type",
        )

    @pytest.mark.parametrize(
        ("options", "code", "param"),
        [
            ({"speed": "fast"}, "invalid_value", "speed"),
            ({"seed": "x"}, "invalid_value", "seed"),
            ({"name": "x" * 300}, "name_invalid", "name"),
            ({"dry_run": "perhaps"}, "invalid_value", "dry_run"),
        ],
    )
    def test_wrong_defaults(self, client, alice, options, code, param):
        assert _error(_post(client, alice, **options)) == (400, code, param)
        assert _nothing_happened()


class TestLimits:
    def test_one_character_short(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=CHARACTERS - 1)
        response = _post(client, alice)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (429, "quota_exceeded")
        assert (error["characters_remaining"], error["characters_required"]) == (CHARACTERS - 1, CHARACTERS)
        assert _nothing_happened()

    def test_exactly_enough(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=CHARACTERS)
        _made(client, alice)
        assert limits.standing(alice.actor).remaining == 0

    def test_half_of_the_queue_stays_for_what_comes_by_hand(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=5)
        batch = _made(client, alice, "text,voice\n" + "Hi.,Hibari\n" * 10)
        assert SynthesisRequest.objects.count() == 2
        assert _get(client, alice, batch)["counts"]["queued"] == 10
        by_hand = [factories.submit(alice) for _i in range(3)]
        assert batch_admission.admit_waiting() == 0
        # What comes by hand is spoken first.
        finished.succeed(by_hand[0])
        assert batch_admission.admit_waiting() == 0
        for row in by_hand[1:]:
            finished.succeed(row)
        for _i in range(10):
            batch_admission.admit_waiting()
            if (
                row := SynthesisRequest.objects.filter(status="queued").order_by("created_at").first()
            ) is not None:
                finished.succeed(row)
        assert _get(client, alice, batch)["status"] == "succeeded"
        _accounts_are_right()

    def test_a_persons_own_limit(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        MemberQuota.objects.create(membership=bob.actor.membership, queued_requests=1)
        _made(client, bob)
        assert SynthesisRequest.objects.count() == 1

    def test_a_full_queue_takes_none(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=2)
        factories.submit(alice)
        factories.submit(alice)
        _made(client, alice)
        assert SynthesisRequest.objects.count() == 2

    def test_two_batches_come_forward_together(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=8)
        many = "text,voice\n" + "Hi.,Hibari\n" * 10
        first, second = _made(client, alice, many, admit=False), _made(client, alice, many, admit=False)
        batch_admission.admit_waiting()
        assert SynthesisRequest.objects.filter(batch_row__batch=first["id"]).count() == 2
        assert SynthesisRequest.objects.filter(batch_row__batch=second["id"]).count() == 2

    def test_one_batch_has_only_so_many_waiting(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        _made(client, alice)
        assert SynthesisRequest.objects.count() == 2

    def test_so_many_rows_may_wait(self, client, alice, monkeypatch):
        monkeypatch.setattr(batches, "MOST_WAITING", 4)
        _made(client, alice, admit=False)
        response = _post(client, alice)
        assert _error(response)[:2] == (429, "concurrent_limit_exceeded")
        assert Batch.objects.count() == 1
        assert limits.standing(alice.actor).reserved == CHARACTERS

    def test_too_many_in_a_minute(self, client, alice):
        MemberQuota.objects.create(membership=alice.actor.membership, requests_per_minute=1)
        assert [_post(client, alice).status_code for _i in range(2)] == [201, 429]


class TestIdempotency:
    def test_the_same_again(self, client, alice):
        key = {"idempotency-key": "k1"}
        first, second = _post(client, alice, headers=key), _post(client, alice, headers=key)
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        assert second.headers["Idempotent-Replayed"] == "true"
        assert Batch.objects.count() == 1
        assert limits.standing(alice.actor).reserved == CHARACTERS

    @pytest.mark.parametrize("change", [{"data": CSV + "More.,Hibari,\n"}, {"speed": "1.5"}])
    def test_with_another_file_or_defaults(self, client, alice, change):
        key = {"idempotency-key": "k1"}
        _post(client, alice, headers=key)
        assert _error(_post(client, alice, headers=key, **change))[:2] == (422, "idempotency_key_reused")

    def test_a_refusal_is_not_kept(self, client, alice):
        key = {"idempotency-key": "k1"}
        assert _post(client, alice, "text\nHi.\n", headers=key).status_code == 400
        assert _post(client, alice, headers=key).status_code == 201


class TestListAndRows:
    def test_list(self, client, alice, charlie):
        made = [_made(client, alice, name=str(number)) for number in range(3)]
        body = client.get(URL, {"limit": 2}, headers=alice.headers).json()
        assert [one["id"] for one in body["results"]] == [made[2]["id"], made[1]["id"]]
        _made(client, alice, name="later")
        rest = client.get(body["next"], headers=alice.headers).json()
        assert [one["id"] for one in rest["results"]] == [made[0]["id"]]
        assert client.get(URL, headers=charlie.headers).json()["results"] == []

    def test_states_and_rows(self, client, alice):
        batch = _made(client, alice)
        one, two, three = _in_order()
        finished.succeed(one)
        finished.fail(two)
        assert _get(client, alice, batch)["status"] == "running"
        claimed = finished.claim(three)
        state = _get(client, alice, batch)
        assert state["counts"] == {"queued": 0, "running": 1, "succeeded": 1, "failed": 1, "canceled": 0}
        assert (state["characters_charged"], state["audio_seconds"]) == (len("One is here."), 2.5)
        assert state["completed_at"] is None
        rows = _get(client, alice, batch, "/rows")["results"]
        assert [(row["row"], row["line"], row["status"]) for row in rows] == [
            (1, 2, "succeeded"),
            (2, 3, "failed"),
            (3, 4, "running"),
        ]
        assert rows[0]["synthesis_id"] == str(one.id)
        assert rows[0]["urls"]["audio"].endswith(f"/v1/syntheses/{one.id}/audio")
        assert (rows[0]["title"], rows[0]["voice"]["name"], rows[0]["audio_seconds"]) == (
            "First",
            "Hibari",
            2.5,
        )
        assert rows[1]["error"] == {"code": "engine_error", "message": "It broke."}
        assert claimed.priority == batch_admission.PRIORITY

    def test_filter_and_cursor(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        batch = _made(client, alice)
        finished.fail(_in_order()[0])
        path = f"{URL}/{batch['id']}/rows"
        page = client.get(path, {"status": "queued", "limit": 1}, headers=alice.headers).json()
        assert [row["row"] for row in page["results"]] == [2]
        page = client.get(page["next"], headers=alice.headers).json()
        (row,) = page["results"]
        assert (row["row"], row["synthesis_id"], row["urls"], row["title"]) == (3, None, None, "Third")
        failed = client.get(path, {"status": "failed"}, headers=alice.headers).json()["results"]
        assert [row["row"] for row in failed] == [1]
        assert _error(client.get(path, {"status": "odd"}, headers=alice.headers))[2] == "status"
        assert _error(client.get(path, {"cursor": "cD14"}, headers=alice.headers))[1] == "cursor_invalid"

    def test_the_end(self, client, alice):
        batch = _made(client, alice)
        for row in _in_order():
            finished.succeed(row)
        state = _get(client, alice, batch)
        assert (state["status"], state["characters_charged"]) == ("succeeded", CHARACTERS)
        assert state["completed_at"] is not None
        _accounts_are_right()

    def test_a_row_that_is_canceled_or_deleted_alone(self, client, alice):
        batch = _made(client, alice)
        one, two, _three = _in_order()
        client.post(f"/v1/syntheses/{one.id}/cancel", headers=alice.headers)
        client.delete(f"/v1/syntheses/{two.id}", headers=alice.headers)
        rows = _get(client, alice, batch, "/rows")["results"]
        assert [row["status"] for row in rows] == ["canceled", "canceled", "queued"]
        assert (rows[1]["synthesis_id"], rows[1]["title"]) == (None, "")


class TestWhatChangesMeanwhile:
    def test_a_deleted_voice(self, client, alice):
        voice = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Mine", language="en-US")
        batch = _made(client, alice, "text,voice\nHi.,Mine\nHi.,Hibari\n", admit=False)
        client.delete(f"/v1/voices/{voice.id}", headers=alice.headers)
        batch_admission.admit_waiting()
        rows = _get(client, alice, batch, "/rows")["results"]
        assert [row["status"] for row in rows] == ["failed", "queued"]
        assert rows[0]["error"]["code"] == "voice_not_found"
        assert limits.standing(alice.actor).reserved == len("Hi.")
        _accounts_are_right()

    def test_a_revoked_key(self, client, alice):
        batch = _made(client, alice, admit=False)
        keys.revoke(actor=alice.actor, key_id=alice.by_key.api_key.id)
        batch_admission.admit_waiting()
        _key, secret = keys.create(actor=alice.actor, name="new")
        body = client.get(f"{URL}/{batch['id']}", headers={"authorization": f"Bearer {secret}"}).json()
        assert body["counts"]["failed"] == 3
        assert not SynthesisRequest.objects.exists()
        assert limits.standing(alice.actor).reserved == 0
        _accounts_are_right()
        response = client.post(f"{URL}/{batch['id']}/retry", headers={"authorization": f"Bearer {secret}"})
        assert _error(response)[:2] == (409, "batch_key_revoked")

    def test_a_person_who_left_or_lost_the_role(self, client, alice):
        bob, dora = factories.colleague(alice, "Bob"), factories.colleague(alice, "Dora")
        one, two = _made(client, bob, admit=False), _made(client, dora, admit=False)
        bob.actor.membership.delete()
        dora.actor.membership.role = Role.VIEWER
        dora.actor.membership.save()
        batch_admission.admit_waiting()
        codes = {
            row["error"]["code"]
            for batch in (one, two)
            for row in _get(client, alice, batch, "/rows")["results"]
        }
        assert codes == {"person_gone", "permission_denied"}
        assert limits.standing(alice.actor).reserved == 0

    def test_a_suspended_team_waits(self, client, alice):
        _made(client, alice, admit=False)
        suspension.suspend_team(by=Operator.sweep(), team_id=alice.actor.team.id)
        assert batch_admission.admit_waiting() == 0
        suspension.restore_team(by=Operator.sweep(), team_id=alice.actor.team.id)
        assert batch_admission.admit_waiting() == 3

    def test_suspended_and_what_waits_canceled(self, client, alice):
        _made(client, alice, "text,voice\n" + "Hi.,Hibari\n" * 3, admit=False)
        batch_admission.admit(Batch.objects.get().id)
        _made(client, alice, admit=False)
        canceled = suspension.suspend_team(
            by=Operator.sweep(), team_id=alice.actor.team.id, cancel_waiting=True
        )
        assert canceled == 6
        assert limits.standing(alice.actor).reserved == 0
        _accounts_are_right()

    def test_maintenance_waits(self, client, alice, monkeypatch):
        _made(client, alice, admit=False)
        monkeypatch.setattr(batch_admission.operator_settings, "get", lambda key: key == "maintenance")
        assert batch_admission.admit_waiting() == 0
        assert Batch.objects.get().waiting

    def test_an_operator_tries_a_row_again(self, client, alice):
        batch = _made(client, alice)
        failed = finished.fail(_in_order()[0])
        new = operations.retry(by=Operator.sweep(), request_id=failed.id)
        row = _get(client, alice, batch, "/rows")["results"][0]
        assert (row["synthesis_id"], row["status"]) == (str(new.id), "queued")
        _accounts_are_right()


class TestCancel:
    def test_everything_that_has_not_ended(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        batch = _made(client, alice, CSV + "Four.,Hibari,\n")
        one, two = _in_order()
        finished.succeed(one)
        finished.claim(two)
        response = client.post(f"{URL}/{batch['id']}/cancel", headers=alice.headers)
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
        _accounts_are_right()
        again = client.post(f"{URL}/{batch['id']}/cancel", headers=alice.headers).json()
        assert again == response.json()
        assert AuditEntry.objects.filter(action="batch.canceled").count() == 1


class TestRetry:
    def _retry(self, client, person, batch):
        return client.post(f"{URL}/{batch['id']}/retry", headers=person.headers)

    def test_the_failed_rows(self, client, alice):
        batch = _made(client, alice)
        one, two, three = _in_order()
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
        _accounts_are_right()
        assert self._retry(client, alice, batch).json()["retried"] == 0

    def test_rows_that_were_never_requests(self, client, alice):
        batch = _made(client, alice, admit=False)
        alice.actor.membership.role = Role.VIEWER
        alice.actor.membership.save()
        batch_admission.admit_waiting()
        alice.actor.membership.role = Role.OWNER
        alice.actor.membership.save()
        assert self._retry(client, alice, batch).json()["retried"] == 3
        batch_admission.admit_waiting()
        assert [row.text for row in _in_order()] == ["One is here.", "Two is here.", "Three is here."]
        _accounts_are_right()

    def test_the_quota_does_not_cover_them(self, client, alice):
        batch = _made(client, alice)
        for row in _in_order():
            finished.fail(row)
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=CHARACTERS - 1)
        assert _error(self._retry(client, alice, batch))[:2] == (429, "quota_exceeded")
        assert _get(client, alice, batch)["counts"]["failed"] == 3
        assert limits.standing(alice.actor).reserved == 0

    def test_a_text_that_was_deleted(self, client, alice):
        batch = _made(client, alice)
        row = finished.fail(_in_order()[0])
        client.delete(f"/v1/syntheses/{row.id}", headers=alice.headers)
        assert self._retry(client, alice, batch).json()["retried"] == 0


class TestDelete:
    def test_nothing_is_left_but_the_account(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        key = {"idempotency-key": "k1"}
        _post(client, alice, headers=key)
        batch_admission.admit_waiting()
        batch = Batch.objects.get()
        one, _two = _in_order()
        finished.succeed(one)
        response = client.delete(f"{URL}/{batch.id}", headers=alice.headers)
        assert response.status_code == 204
        assert client.get(f"{URL}/{batch.id}", headers=alice.headers).status_code == 404
        assert not BatchRow.objects.exists()
        assert not Output.objects.exists()
        assert set(SynthesisRequest.objects.values_list("text", "title", "status")) == {
            ("", "", "succeeded"),
            ("", "", "canceled"),
        }
        standing = limits.standing(alice.actor)
        assert (standing.used, standing.reserved) == (one.characters, 0)
        _accounts_are_right()
        monkeypatch.setattr(housekeeping, "_GRACE", -housekeeping._GRACE)
        assert housekeeping.delete_orphans() == 1
        # The key does not bring it back.
        assert _post(client, alice, headers=key).json()["id"] != str(batch.id)


class TestZip:
    def _open(self, client, person, batch):
        response = client.get(f"{URL}/{batch['id']}/zip", headers=person.headers)
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
        batch = _made(client, alice, data, name="第一章.csv")
        rows = _in_order()
        for index, row in enumerate(rows[:6]):
            finished.succeed(row, bytes([index]) * 200_000)
        finished.fail(rows[6])
        archive, response = self._open(client, alice, batch)
        assert "filename*=utf-8''%E7%AC%AC%E4%B8%80%E7%AB%A0.zip" in response.headers["Content-Disposition"]
        assert archive.testzip() is None
        names = archive.namelist()
        assert names == [
            "00001 ....etcpasswd.mp3",
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
        batch = _made(client, alice, 'text,voice,title\nOne.,Hibari,"=1+1"\n')
        finished.succeed(_in_order()[0])
        archive, _response = self._open(client, alice, batch)
        assert ",'=1+1," in archive.read("manifest.csv").decode()

    def test_before_all_is_done_and_after_some_is_gone(self, client, alice):
        batch = _made(client, alice)
        path = f"{URL}/{batch['id']}/zip"
        assert _error(client.get(path, headers=alice.headers))[:2] == (409, "not_ready")
        one, two, _three = _in_order()
        finished.succeed(one)
        finished.succeed(two)
        Output.objects.filter(request=one).delete()
        archive, _response = self._open(client, alice, batch)
        assert archive.namelist() == ["00002 Two is here.mp3", "manifest.csv", "manifest.jsonl"]

    def test_it_is_not_gathered_in_memory(self, client, alice):
        """The first bytes leave before the last file is read."""
        batch = _made(client, alice)
        for row in _in_order():
            finished.succeed(row, bytes(300_000))
        stream = iter(client.get(f"{URL}/{batch['id']}/zip", headers=alice.headers).streaming_content)
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
        batch = _made(client, alice)
        finished.succeed(_in_order()[0])
        response = getattr(client, method)(f"{URL}/{batch['id']}{what}", headers=charlie.headers)
        assert _error(response)[:2] == (404, "batch_not_found")
        assert _get(client, alice, batch)["counts"]["queued"] == 2

    def test_a_strangers_voice(self, client, alice, charlie):
        hers = Voice.objects.create(team=alice.actor.team, kind="cloned", name="Secret", language="en-US")
        for named in (str(hers.id), "Secret"):
            response = _post(client, charlie, f"text,voice\nHi.,{named}\n")
            assert response.json()["error"]["problems"][0]["code"] == "voice_not_found"
        assert _nothing_happened()

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    @pytest.mark.parametrize("identifier", [uuid.uuid4(), "nonsense"])
    def test_no_key_and_what_does_not_exist(self, client, alice, method, what, identifier):
        url = f"{URL}/{identifier}{what}"
        assert getattr(client, method)(url).status_code == 401
        response = getattr(client, method)(url, headers=alice.headers)
        assert _error(response)[:2] == (404, "batch_not_found")

    @pytest.mark.parametrize(("method", "what"), ROUTES)
    def test_with_the_other_header(self, client, alice, method, what):
        batch = _made(client, alice)
        finished.succeed(_in_order()[0])
        headers = {"xi-api-key": alice.secret}
        assert getattr(client, method)(f"{URL}/{batch['id']}{what}", headers=headers).status_code in (
            200,
            204,
        )

    def test_a_viewer_looks_and_changes_nothing(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        batch = _made(client, alice)
        bob.actor.membership.role = Role.VIEWER
        bob.actor.membership.save()
        assert client.get(URL, headers=bob.headers).status_code == 200
        assert _error(_post(client, bob))[:2] == (403, "permission_denied")
        for method, what in ROUTES:
            response = getattr(client, method)(f"{URL}/{batch['id']}{what}", headers=bob.headers)
            assert response.status_code in ((200, 409) if method == "get" else (403,))

    def test_a_key_without_the_scope_and_wrong_method(self, client, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["syntheses:read"])
        narrow = {"authorization": f"Bearer {secret}"}
        response = client.generic("POST", URL, CSV, content_type="text/csv", headers=narrow)
        assert _error(response)[:2] == (403, "insufficient_scope")
        assert client.patch(URL, headers=alice.headers).status_code == 405
        batch = _made(client, alice)
        assert client.get(f"{URL}/{batch['id']}/retry", headers=alice.headers).status_code == 405
        assert client.post(f"{URL}/{batch['id']}/zip", headers=alice.headers).status_code == 405

    def test_a_colleague_may(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        batch = _made(client, alice)
        assert client.post(f"{URL}/{batch['id']}/cancel", headers=bob.headers).status_code == 200
