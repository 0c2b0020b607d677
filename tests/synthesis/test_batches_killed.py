"""A process that is killed between any two lines of making or admitting a batch; two sweeps; cancel against workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connection

from accounts.errors import LimitReached
from accounts.models import AuditEntry, LedgerEntry, TeamQuota
from accounts.services import limits
from synthesis.models import Batch, BatchRow, SynthesisRequest
from synthesis.services import batch_admission, batch_states, batches, dispatch, verification
from tests import asgi, factories
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)

CSV = "text,voice\n" + "Hello there.,Hibari\n" * 6
CHARACTERS = 6 * len("Hello there.")

#: Makes a batch or a request with the given actor, or admits rows, and kills itself at the nth call of a function.
_VICTIM = """
import os, signal, sys
import django
django.setup()
from accounts.actors import Actor
from accounts.models import ApiKey, Membership
from synthesis.models import Batch, Voice
from synthesis.services import batch_admission, batch_states, batches, submission
from accounts.services import audit, ledger

what, place, nth, key_id = sys.argv[1:]
module, _dot, name = place.rpartition(".")
target = {"ledger": ledger, "audit": audit, "submission": submission, "batch_admission": batch_admission}[module]
original, calls = getattr(target, name), [0]

def fatal(*args, **kwargs):
    calls[0] += 1
    result = original(*args, **kwargs)
    if calls[0] == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(target, name, fatal)
key = ApiKey.objects.get(id=key_id)
actor = Actor(Membership.objects.get(team=key.team_id, user=key.user_id), key)
if what == "submit":
    planned = submission.plan(actor=actor, voice=str(Voice.objects.get().id), text="One sentence.")
    submission.submit(actor=actor, planned=planned)
elif what == "create":
    checked = batches.check(actor=actor, data=sys.stdin.buffer.read())
    batches.create(actor=actor, checked=checked)
else:
    batch_admission.admit_waiting()
"""


@pytest.fixture
def alice():
    factories.preset()
    return factories.owner("Alice")


def _die(what, place, nth, alice):
    environment = os.environ | {
        "DATABASE_URL": asgi._database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": os.pathsep.join([str(asgi.ROOT), str(asgi.ROOT / "platform")]),
    }
    ended = subprocess.run(
        [sys.executable, "-c", _VICTIM, what, place, str(nth), str(alice.by_key.api_key.id)],
        env=environment,
        cwd=asgi.ROOT,
        input=CSV.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    # PostgreSQL notices the closed connection, and rolls back, in its own time.
    deadline = time.monotonic() + 10
    while _others_at_work():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _others_at_work():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND xact_start IS NOT NULL"
        )
        return cursor.fetchone()[0]


def _make(alice, data=CSV):
    return batches.create(actor=alice.by_key, checked=batches.check(actor=alice.by_key, data=data.encode()))


def _speak_everything():
    while batch_admission.admit_waiting() or SynthesisRequest.objects.filter(status="queued").exists():
        row = SynthesisRequest.objects.filter(status="queued").order_by("-priority", "created_at").first()
        if row is not None:
            finished.succeed(row)


def _charged_once(alice):
    standing = limits.standing(alice.actor)
    assert (standing.used, standing.reserved) == (CHARACTERS, 0)
    assert LedgerEntry.objects.filter(kind="settle").count() == 6
    assert SynthesisRequest.objects.count() == 6
    assert verification.verify().is_clean


@pytest.mark.parametrize("place", ["submission.insert", "ledger.reserve", "submission._follow"])
def test_a_submission_killed_before_the_commit_leaves_nothing(alice, place):
    _die("submit", place, 1, alice)
    assert not SynthesisRequest.objects.exists()
    assert not LedgerEntry.objects.exists()
    assert not AuditEntry.objects.filter(action="synthesis.submitted").exists()
    assert limits.standing(alice.actor).reserved == 0


@pytest.mark.parametrize("place", ["ledger.reserve_many", "audit.record"])
def test_killed_before_the_commit_nothing_is_there(alice, place):
    _die("create", place, 1, alice)
    assert not Batch.objects.exists()
    assert not LedgerEntry.objects.exists()
    assert limits.standing(alice.actor).reserved == 0


@pytest.mark.parametrize(
    ("place", "nth"), [("ledger.hold", 1), ("submission.enqueue", 3), ("batch_admission.admit", 1)]
)
def test_killed_after_the_commit_the_sweep_goes_on(alice, place, nth):
    _die("create", place, nth, alice)
    assert BatchRow.objects.count() == 6
    assert limits.standing(alice.actor).reserved == CHARACTERS
    assert verification.verify().is_clean
    _speak_everything()
    _charged_once(alice)


@pytest.mark.parametrize("nth", [1, 4, 6])
def test_killed_while_rows_become_requests(alice, monkeypatch, nth):
    monkeypatch.setattr(batch_admission, "admit", lambda _id: 0)
    _make(alice)
    monkeypatch.undo()
    _die("admit", "submission.enqueue", nth, alice)
    assert not SynthesisRequest.objects.exists()
    assert verification.verify().is_clean
    _speak_everything()
    _charged_once(alice)


def _at_once(*work):
    """Run in threads of their own; the first error is raised."""

    def run(one):
        try:
            one()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as pool:
        for done in [pool.submit(run, one) for one in work]:
            done.result(60)


def test_several_sweeps_take_each_row_once(alice, monkeypatch):
    monkeypatch.setattr(batch_admission, "_AT_ONCE", 2)
    for _i in range(3):
        _make(alice, "text,voice\n" + "Hello there.,Hibari\n" * 12)
    _at_once(*[batch_admission.admit_waiting] * 4)
    batch_admission.admit_waiting()
    assert SynthesisRequest.objects.count() == 36
    assert verification.verify().is_clean


def test_a_batch_is_canceled_while_workers_end_its_rows(alice):
    """Each takes the locks in the other's order when they are not careful."""
    for _round in range(3):
        batch = _make(alice, "text,voice\n" + "Hello there.,Hibari\n" * 30)
        batch_admission.admit_waiting()
        claimed = dispatch.claim(worker="w", engine="hibari", limit=4)
        made = dispatch.Made(
            key="k", content_type="audio/mpeg", bytes=1, sha256="0" * 64, seconds=1, sample_rate=24_000
        )

        def end_all(claimed=claimed, made=made):
            for row in reversed(claimed):
                dispatch.complete(row, made)

        def cancel(batch=batch):
            batches.cancel(actor=alice.actor, batch_id=batch.id)

        _at_once(end_all, cancel, batch_admission.admit_waiting)
        counts = batch_states.states([batch])[batch.id].counts
        assert counts["queued"] == counts["running"] == 0
        assert sum(counts.values()) == 30
    assert limits.standing(alice.actor).reserved == 0
    assert verification.verify().is_clean


def test_submissions_by_hand_and_rows_never_pass_the_queues_limit(alice):
    TeamQuota.objects.create(team=alice.actor.team, queued_requests=8)
    _make(alice, "text,voice\n" + "Hello there.,Hibari\n" * 20)
    refused = []

    def by_hand():
        for _i in range(6):
            try:
                factories.submit(alice)
            except LimitReached:
                refused.append(1)

    _at_once(by_hand, by_hand, batch_admission.admit_waiting, batch_admission.admit_waiting)
    assert SynthesisRequest.objects.filter(status="queued").count() == 8
    assert SynthesisRequest.objects.filter(batch_row__isnull=False).count() <= 4
    assert len(refused) >= 4
