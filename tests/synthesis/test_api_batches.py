"""`/v1/batches`: submit, list."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import AuditEntry, MemberQuota, TeamQuota
from accounts.services import limits
from synthesis.models import Batch, BatchRow, SynthesisRequest
from synthesis.services import batch_admission, batch_files, batches
from tests import factories
from tests.synthesis import batching, finished

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rates")]


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


class TestSubmit:
    def test_each_row_becomes_a_request(self, client, alice):
        response = batching.post(client, alice)
        assert response.status_code == 201
        body = response.json()
        assert (
            response.headers["Location"]
            == body["urls"]["get"]
            == f"http://testserver{batching.URL}/{body['id']}"
        )
        assert (body["status"], body["rows_total"], body["characters"]) == ("queued", 3, batching.CHARACTERS)
        assert body["counts"] == {"queued": 3, "running": 0, "succeeded": 0, "failed": 0, "canceled": 0}
        assert (body["characters_charged"], body["completed_at"], body["source"]) == (0, None, "api")
        # Reserved at once, queued by the next line.
        assert limits.standing(alice.actor).reserved == batching.CHARACTERS
        assert not SynthesisRequest.objects.exists()
        batching.accounts_are_right()
        assert batch_admission.admit_waiting() == 3
        rows = batching.in_order()
        assert [row.text for row in rows] == ["One is here.", "Two is here.", "Three is here."]
        assert [row.title for row in rows] == ["First", "", "Third"]
        assert {(row.source, row.api_key, row.user) for row in rows} == {
            ("api", alice.by_key.api_key, alice.user)
        }
        assert limits.standing(alice.actor).reserved == batching.CHARACTERS
        assert BatchRow.objects.filter(input__isnull=False).count() == 0
        assert AuditEntry.objects.get(action="batch.created").data["rows"] == 3
        batching.accounts_are_right()

    def test_it_begins_by_itself_after_the_commit(self, client, alice, django_capture_on_commit_callbacks):
        with django_capture_on_commit_callbacks(execute=True):
            batching.post(client, alice)
        assert SynthesisRequest.objects.count() == 3

    @pytest.mark.parametrize("kind", ["application/jsonl", "application/x-ndjson"])
    def test_json_lines(self, client, alice, kind):
        lines = [
            {"text": "One\u2028line.", "voice": "Hibari", "speed": 1, "seed": 7, "title": None},
            {"text": "Two.", "voice": {"id": str(factories.preset().id)}, "format": "wav"},
        ]
        data = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
        batching.made(client, alice, data, kind=kind)
        one, two = batching.in_order()
        assert (one.text, one.speed, one.seed) == ("One\nline.", 1.0, 7)
        assert (two.text, two.format) == ("Two.", "wav")
        assert [row.line for row in BatchRow.objects.order_by("number")] == [1, 3]

    @pytest.mark.parametrize("name", ["lines.csv", "lines.jsonl", "lines", "lines.txt"])
    def test_a_form(self, client, alice, name):
        data = '{"text": "One."}\n' if name.endswith("jsonl") else "text\nOne.\n"
        response = batching.form(
            client, alice, data, name, voice="Hibari", format="flac", speed="1.25", seed="5"
        )
        assert response.status_code == 201, response.content
        assert response.json()["name"] == name
        batch_admission.admit_waiting()
        row = SynthesisRequest.objects.get()
        assert (row.format, row.speed, row.seed) == ("flac", 1.25, 5)

    def test_rows_before_defaults(self, client, alice):
        data = "text;format;speed\nOne.;wav;\nTwo.;;0,9\n".replace("0,9", "0.9")
        batching.made(client, alice, data, voice="Hibari", format="flac", speed="1.5", name="Mine")
        assert [(row.format, row.speed) for row in batching.in_order()] == [("wav", 1.5), ("flac", 0.9)]
        assert Batch.objects.get().name == "Mine"

    @pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_what_spreadsheets_write(self, client, alice, bom, end):
        lines = ["Text,Voice", '"He said ""yes"", then left.",Hibari', "", ",", '"Two', 'lines.",hibari']
        batching.made(client, alice, bom + end.join(lines).encode())
        assert [row.text for row in batching.in_order()] == ['He said "yes", then left.', "Two\nlines."]
        assert [row.line for row in BatchRow.objects.order_by("number")] == [2, 5]

    def test_chinese(self, client, alice, settings):
        settings.CHORUS_ENGINE = "kokoro"
        factories.preset("小晓", engine="kokoro", preset="zf_xiaoxiao", language="zh")
        text = "今天天气很好，我们去散步吧。"
        batch = batching.made(client, alice, f"text,voice,title\n{text},小晓,早安\n", name="第一章")
        row = SynthesisRequest.objects.get()
        assert (row.text, row.title, row.language, row.characters) == (text, "早安", "zh", len(text))
        assert batch["name"] == "第一章"

    def test_a_dry_run(self, client, alice):
        response = batching.post(client, alice, dry_run="true")
        assert response.status_code == 200
        assert response.json() == {
            "dry_run": True,
            "rows_total": 3,
            "characters": batching.CHARACTERS,
            "limit": None,
        }
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        assert batching.post(client, alice, dry_run="1").json()["limit"]["code"] == "quota_exceeded"
        assert batching.nothing_happened()


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
        response = batching.post(client, alice, data)
        assert batching.error(response) == (400, "batch_invalid", column or "file")
        problem = response.json()["error"]["problems"][0]
        assert (problem["row"], problem["line"], problem["column"], problem["code"]) == (
            row,
            line,
            column,
            code,
        )
        assert problem["message"] in response.json()["error"]["message"]
        assert batching.nothing_happened()

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
        response = batching.post(client, alice, data, kind="application/jsonl")
        assert response.status_code == 400
        (problem,) = response.json()["error"]["problems"]
        assert (problem["row"], problem["line"], problem["column"], problem["code"]) == (2, 3, column, code)
        assert batching.nothing_happened()

    def test_every_problem_is_told_and_all_are_counted(self, client, alice):
        data = "text,voice\n" + "Hi.,Hibari\n,Nobody\n" * 40
        error = batching.post(client, alice, data).json()["error"]
        assert error["problems_total"] == 40
        assert [problem["row"] for problem in error["problems"]] == list(range(2, 81, 2))
        data = "text,voice,speed\nHi.,Nobody,1\nHi.,Hibari,x\n,Hibari,1\n"
        error = batching.post(client, alice, data).json()["error"]
        assert [problem["row"] for problem in error["problems"]] == [1, 2, 3], "wherever they were found"
        data = f"text,voice\n{'x' * 131_073},Hibari\n"
        (problem,) = batching.post(client, alice, data).json()["error"]["problems"]
        assert (problem["line"], problem["code"]) == (2, "csv_cell_too_long")
        data = "text,voice\n" + "Hi.,Nobody\n" * 80
        error = batching.post(client, alice, data).json()["error"]
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
        assert batching.error(batching.post(client, alice, data)) == (400, code, "file")
        assert batching.nothing_happened()

    def test_too_many_rows_and_bytes(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_files, "MOST_ROWS", 2)
        assert batching.error(batching.post(client, alice)) == (400, "batch_too_many_rows", "file")
        monkeypatch.setattr(batch_files, "FILE_BYTES", 20)
        assert batching.error(batching.post(client, alice)) == (400, "batch_too_large", "file")
        assert batching.error(batching.form(client, alice)) == (400, "batch_too_large", "file")
        assert batching.nothing_happened()

    def test_a_body_that_is_too_large_is_not_read(self, client, alice):
        response = client.generic(
            "POST",
            batching.URL,
            "x",
            content_type="text/csv",
            headers=alice.headers,
            CONTENT_LENGTH=str(2**25),
        )
        assert batching.error(response)[:2] == (413, "payload_too_large")

    def test_no_file_and_another_kind_of_body(self, client, alice):
        response = client.post(batching.URL, {"voice": "Hibari"}, headers=alice.headers)
        assert batching.error(response) == (400, "missing_field", "file")
        response = client.post(batching.URL, {"file": "text"}, headers=alice.headers)
        assert batching.error(response) == (400, "missing_field", "file")
        assert batching.error(batching.post(client, alice, "{}", kind="application/json"))[:2] == (
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
            ({"dry_run": ""}, "invalid_value", "dry_run"),
        ],
    )
    def test_wrong_defaults(self, client, alice, options, code, param):
        assert batching.error(batching.post(client, alice, **options)) == (400, code, param)
        assert batching.nothing_happened()

    def test_an_empty_dry_run_in_a_form_is_not_charged(self, client, alice):
        response = batching.form(client, alice, dry_run="", voice="")
        assert batching.error(response) == (400, "invalid_value", "dry_run")
        assert batching.nothing_happened()

    @pytest.mark.parametrize("dry_run", ["false", "true"])
    @pytest.mark.parametrize("name", ["x" * 201, "x\u202e"])
    def test_a_wrong_name_is_called_so(self, client, alice, name, dry_run):
        response = batching.post(client, alice, name=name, dry_run=dry_run)
        assert batching.error(response) == (400, "name_invalid", "name")
        assert response.json()["error"]["message"].startswith("The name of a batch has at most 200")

    def test_a_file_where_a_word_belongs(self, client, alice):
        response = batching.form(client, alice, voice=SimpleUploadedFile("a.txt", b"Hibari"))
        assert batching.error(response) == (400, "invalid_value", "voice")
        assert batching.nothing_happened()

    def test_what_the_address_and_the_form_say(self, client, alice):
        file = SimpleUploadedFile("a.csv", batching.CSV.encode())
        form = {"file": file, "dry_run": "false"}
        response = client.post(f"{batching.URL}?dry_run=true", form, headers=alice.headers)
        assert batching.error(response) == (400, "parameter_repeated", "dry_run")
        assert batching.nothing_happened()


class TestLimits:
    def test_one_character_short(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=batching.CHARACTERS - 1)
        response = batching.post(client, alice)
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (429, "quota_exceeded")
        assert (error["characters_remaining"], error["characters_required"]) == (
            batching.CHARACTERS - 1,
            batching.CHARACTERS,
        )
        assert batching.nothing_happened()

    def test_exactly_enough(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=batching.CHARACTERS)
        batching.made(client, alice)
        assert limits.standing(alice.actor).remaining == 0

    def test_half_of_the_queue_stays_for_what_comes_by_hand(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=5)
        batch = batching.made(client, alice, "text,voice\n" + "Hi.,Hibari\n" * 10)
        assert SynthesisRequest.objects.count() == 2
        assert batching.get(client, alice, batch)["counts"]["queued"] == 10
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
        assert batching.get(client, alice, batch)["status"] == "succeeded"
        batching.accounts_are_right()

    def test_a_persons_own_limit(self, client, alice):
        bob = factories.colleague(alice, "Bob")
        MemberQuota.objects.create(membership=bob.actor.membership, queued_requests=1)
        batching.made(client, bob)
        assert SynthesisRequest.objects.count() == 1

    def test_a_full_queue_takes_none(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=2)
        factories.submit(alice)
        factories.submit(alice)
        batching.made(client, alice)
        assert SynthesisRequest.objects.count() == 2

    def test_two_batches_come_forward_together(self, client, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=8)
        many = "text,voice\n" + "Hi.,Hibari\n" * 10
        first, second = (
            batching.made(client, alice, many, admit=False),
            batching.made(client, alice, many, admit=False),
        )
        batch_admission.admit_waiting()
        assert SynthesisRequest.objects.filter(batch_row__batch=first["id"]).count() == 2
        assert SynthesisRequest.objects.filter(batch_row__batch=second["id"]).count() == 2

    def test_one_batch_has_only_so_many_waiting(self, client, alice, monkeypatch):
        monkeypatch.setattr(batch_admission, "WINDOW", 2)
        batching.made(client, alice)
        assert SynthesisRequest.objects.count() == 2

    def test_so_many_rows_may_wait(self, client, alice, monkeypatch):
        monkeypatch.setattr(batches, "MOST_WAITING", 4)
        batching.made(client, alice, admit=False)
        response = batching.post(client, alice)
        assert batching.error(response)[:2] == (429, "concurrent_limit_exceeded")
        assert Batch.objects.count() == 1
        assert limits.standing(alice.actor).reserved == batching.CHARACTERS

    def test_too_many_in_a_minute(self, client, alice):
        MemberQuota.objects.create(membership=alice.actor.membership, requests_per_minute=1)
        assert [batching.post(client, alice).status_code for _i in range(2)] == [201, 429]


class TestIdempotency:
    def test_the_same_again(self, client, alice):
        key = {"idempotency-key": "k1"}
        first, second = batching.post(client, alice, headers=key), batching.post(client, alice, headers=key)
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        assert second.headers["Idempotent-Replayed"] == "true"
        assert Batch.objects.count() == 1
        assert limits.standing(alice.actor).reserved == batching.CHARACTERS

    @pytest.mark.parametrize("change", [{"data": batching.CSV + "More.,Hibari,\n"}, {"speed": "1.5"}])
    def test_with_another_file_or_defaults(self, client, alice, change):
        key = {"idempotency-key": "k1"}
        batching.post(client, alice, headers=key)
        assert batching.error(batching.post(client, alice, headers=key, **change))[:2] == (
            422,
            "idempotency_key_reused",
        )

    def test_a_refusal_is_not_kept(self, client, alice):
        key = {"idempotency-key": "k1"}
        assert batching.post(client, alice, "text\nHi.\n", headers=key).status_code == 400
        assert batching.post(client, alice, headers=key).status_code == 201
