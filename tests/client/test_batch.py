"""`chorus batch`: a file becomes a folder; broken off and gone on with."""

from __future__ import annotations

import json
import time

import pytest

from accounts.models import LedgerEntry
from accounts.services import limits
from synthesis.audio import decode
from synthesis.models import Batch, SynthesisRequest
from synthesis.services import batch_admission
from tests.client import flaky
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)

CSV = "text,voice,title\nOne is here.,,First\nTwo is here.,Hibari,早安：世界\nThree is here.,,\n"
NAMES = [".chorus-batch.json", "00001 First.mp3", "00002 早安：世界.mp3", "00003 Three is here.mp3"]


@pytest.fixture
def script(chorus):
    path = chorus.folder / "script.csv"
    path.write_text(CSV)
    return path


def _names(chorus, folder="script"):
    return sorted(path.name for path in (chorus.folder / folder).iterdir())


def test_a_folder_of_files(chorus, script, worker):
    status, out, err = chorus("batch", script, "--voice", "Hibari")
    assert (status, err) == (0, "")
    assert out.decode().startswith("script · 3 of 3 rows")
    assert _names(chorus) == NAMES
    for name in NAMES[1:]:
        assert decode.decode((chorus.folder / "script" / name).read_bytes()).rate
    assert Batch.objects.get().name == "script.csv"


def test_the_same_command_again_does_nothing_twice(chorus, script, worker):
    assert chorus("batch", script, "-v", "Hibari", "-o", "out")[0] == 0
    first = chorus.folder / "out" / NAMES[1]
    before, again = first.stat().st_mtime_ns, chorus.folder / "out" / NAMES[2]
    again.unlink()
    assert chorus("batch", script, "-v", "Hibari", "-o", "out")[0] == 0
    assert Batch.objects.count() == 1
    assert first.stat().st_mtime_ns == before
    assert _names(chorus, "out") == NAMES
    # Another file is another batch.
    script.write_text(CSV.replace("First", "New") + "Four is here.,,\n")
    (chorus.folder / "out" / "00009 notes.txt").write_text("mine")
    status, _out, err = chorus("batch", script, "-v", "Hibari", "-o", "out")
    assert (status, Batch.objects.count()) == (0, 2)
    assert err == "Still in the folder, and not of this batch: 00001 First.mp3\n"


def test_killed_and_gone_on_with(chorus, script):
    with chorus.start("batch", script, "-v", "Hibari") as process:
        _until(lambda: SynthesisRequest.objects.count() == 3)
        finished.succeed(SynthesisRequest.objects.order_by("created_at", "id").first())
        _until(lambda: (chorus.folder / "script" / NAMES[1]).exists())
        process.kill()
    for row in SynthesisRequest.objects.filter(status="queued").order_by("created_at", "id"):
        finished.succeed(row)
    status, _out, _err = chorus("batch", script, "-v", "Hibari")
    assert (status, Batch.objects.count()) == (0, 1)
    assert _names(chorus) == NAMES
    assert LedgerEntry.objects.filter(kind="settle").count() == 3


def test_a_connection_that_breaks_everywhere(chorus, script, running, worker):
    with flaky.between(running.url) as line:
        chorus.environment["CHORUS_URL"] = line.url
        line.cuts = [
            (b"POST /v1/batches", 1),
            (b"GET /v1/batches", 30),
            (b"/rows", 200),
            (b"/audio", 1_000),
            (b"/audio", 0),
        ]
        status, _out, err = chorus("batch", script, "-v", "Hibari")
    assert (status, err) == (0, "")
    assert (Batch.objects.count(), SynthesisRequest.objects.count()) == (1, 3)
    assert _names(chorus) == NAMES


def test_rows_that_fail_and_are_tried_again(chorus, script, alice, engine):
    with chorus.start("batch", script, "-v", "Hibari") as process:
        _until(lambda: SynthesisRequest.objects.count() == 3)
        one, two, three = SynthesisRequest.objects.order_by("created_at", "id")
        finished.succeed(one)
        finished.fail(two)
        finished.succeed(three)
        assert process.wait(20) == 8
        assert b"Row 2 (line 3): It broke." in process.stdout.read()
        assert b"--retry" in process.stderr.read()
    with chorus.start("batch", script, "-v", "Hibari", "--retry") as process:
        _until(lambda: SynthesisRequest.objects.filter(status="queued").exists())
        finished.succeed(SynthesisRequest.objects.get(status="queued"))
        assert process.wait(20) == 0
    assert _names(chorus) == NAMES
    assert limits.standing(alice.actor).reserved == 0


def test_every_problem_of_the_file(chorus, script):
    script.write_text("text,voice\nHi.,Nobody\n?!,Hibari\n")
    status, out, err = chorus("batch", script)
    assert (status, out) == (4, b"")
    lines = err.splitlines()
    assert lines[0].startswith("script.csv:2: voice: There is no voice “")
    assert lines[1].startswith("script.csv:3: text: There is nothing to speak")
    assert lines[2].startswith("chorus: Row 1 (line 2), voice:")
    assert not Batch.objects.exists()


def test_a_dry_run_and_not_waiting(chorus, script):
    status, out, _err = chorus("batch", script, "-v", "Hibari", "--dry-run")
    assert (status, out) == (0, b"3 rows \xc2\xb7 38 characters\n")
    assert not Batch.objects.exists()
    status, out, _err = chorus("batch", script, "-v", "Hibari", "--no-wait")
    assert (status, out.decode().strip()) == (0, str(Batch.objects.get().id))


def test_json_lines_and_options(chorus):
    (chorus.folder / "lines.jsonl").write_text(json.dumps({"text": "One.", "voice": "Hibari"}) + "\n")
    options = ["--format", "wav", "--speed", "1.5", "--seed", "7", "--name", "Mine", "--no-wait"]
    assert chorus("batch", "lines.jsonl", *options)[0] == 0
    batch_admission.admit_waiting()
    row = SynthesisRequest.objects.get()
    assert (row.format, row.speed, row.seed, Batch.objects.get().name) == ("wav", 1.5, 7, "Mine")


@pytest.mark.parametrize("what", ["nothing.csv", "."])
def test_no_file(chorus, what):
    assert chorus("batch", what)[0] == 2


def test_a_folder_that_cannot_be(chorus, script):
    assert chorus("batch", script, "-v", "Hibari", "-o", "script.csv")[0] == 2


def _until(look, within=15.0):
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
