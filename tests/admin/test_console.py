"""`./chorus admin …`: each command does what its page does, and says it in JSON."""

from __future__ import annotations

import io
import json
import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from accounts.models import AuditEntry, Grant, Plan, Team, TeamQuota, UsageCounter, User
from accounts.services import keys, operator_settings
from synthesis.console import NOUNS
from synthesis.management.commands import admin as admin_command
from synthesis.models import LedgerCheck, Status, SynthesisRequest, TeamPool, UsageRollup, Voice, Worker
from synthesis.services import dispatch, rollup, workers
from tests import factories
from tests.admin import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return factories.owner("Alice", team="Harbour Audio")


def admin(*words: object, ok: bool = True):
    """Run it with --json; what it said."""
    out = io.StringIO()
    arguments = [str(word) for word in words]
    if ok:
        call_command("admin", *arguments, "--json", stdout=out)
    else:
        with pytest.raises(SystemExit) as caught:
            call_command("admin", *arguments, "--json", stdout=out)
        assert caught.value.code == 1
    return json.loads(out.getvalue())


def test_quota(alice):
    shown = admin("quota", "show", "harbour audio")
    assert shown["this_month"]["limit"] == 1_000_000
    (preview,) = admin("quota", "set", "Harbour Audio", "--characters-per-month", "5,000", "--dry-run")
    assert preview["after"] == "5,000"
    assert not TeamQuota.objects.exists()
    (made,) = admin(
        "quota", "set", alice.actor.team.pk, "--characters-per-month", "5_000", "--reason", "Asked"
    )
    assert TeamQuota.objects.get().characters_per_month == 5_000
    assert AuditEntry.objects.get(action="quota.changed").actor_name == "command"
    admin("quota", "set", "Harbour Audio", "--user", "alice@example.org", "--concurrent-requests", "1")
    assert (
        admin("quota", "show", "Harbour Audio", "--user", "alice@example.org")["concurrent_requests"]["own"]
        == 1
    )
    admin("quota", "undo", made["change"])
    assert TeamQuota.objects.get().characters_per_month is None
    assert len(admin("quota", "history", "Harbour Audio")) == 3
    admin("quota", "set", "Harbour Audio", "--stored-voices", "plan", "--next-month")


def test_grants(alice):
    given = admin("grant", "give", "Harbour Audio", 500, "--reason", "Launch", "--expires", "2099-01-31")
    assert admin("grant", "list", "Harbour Audio")[0]["left"] == 500
    assert admin("grant", "revoke", given["grant"])["taken_back"] == 500
    admin("grant", "adjust", "Harbour Audio", -5, "--reason", "x")
    assert UsageCounter.objects.get().granted == -5
    assert Grant.objects.get().ended_at is not None


def test_teams_and_people(alice):
    assert [row["team"] for row in admin("team", "list")] == ["Harbour Audio"]
    made = admin("team", "create", "Second", "--owner", "dana@example.org", "--plan", "Test")
    assert "/invitations/" in made["invitation"]
    factories.submit(alice)
    assert admin("team", "suspend", "Harbour Audio", "--cancel-waiting", "--reason", "x")["canceled"] == 1
    admin("team", "restore", "Harbour Audio")
    assert Team.objects.get(name="Harbour Audio").suspended_at is None
    assert [row["teams"] for row in admin("user", "list", "--team", "Harbour Audio")] == [["Harbour Audio"]]
    admin("user", "suspend", "Alice@example.org")
    admin("user", "restore", "alice@example.org")
    staff.person()
    assert admin("user", "access", "alice@example.org", "--role", "support")["access"] == ["support"]
    admin("user", "access", "alice@example.org")
    assert not User.objects.get(email="alice@example.org").is_staff
    admin("key", "revoke", alice.by_key.api_key.hint)
    assert admin("user", "end-access", "alice@example.org") == {"sessions": 0, "keys": 0}
    admin("user", "reset-two-factor", "alice@example.org")


def test_export_and_erase(alice, tmp_path):
    path = tmp_path / "alice.zip"
    assert admin("user", "export", "alice@example.org", path)["bytes"] == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(SystemExit):
        call_command("admin", "user", "export", "alice@example.org", str(path))
    refused = admin("user", "erase", "alice@example.org", "--confirm", "alice", ok=False)
    assert refused["error"]["code"] == "not_confirmed"
    assert (
        admin("user", "erase", "alice@example.org", "--confirm", "alice@example.org")["removed"]["api_keys"]
        == 1
    )


def test_plans():
    factories.plan()
    made = admin("plan", "create", "Gold", "--characters-per-month", 9_000_000, "--weight", 2)
    assert str(Plan.objects.get(name="Gold").pk) == made["id"]
    admin("plan", "set", "gold", "--retention-days", 7)
    gold = next(row for row in admin("plan", "list") if row["plan"] == "Gold")
    assert (gold["weight"], gold["retention_days"]) == (2.0, 7)
    admin("plan", "delete", "gold")
    assert not Plan.objects.filter(name="Gold").exists()


def test_requests_and_workers(alice):
    workers.beat(name="w", engine="hibari", host="h", pid=1, state="idle")
    first, second = factories.submit(alice), factories.submit(alice)
    (row,) = admin("queue", "show")
    assert (row["team"], row["waiting"]) == ("Harbour Audio", 2)
    admin("request", "priority", second.pk, 7)
    assert "fair share" in admin("request", "show", second.pk)["why_it_waits"]
    assert admin("request", "cancel", first.pk) == {"canceled": True}
    admin("request", "retry", first.pk)
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    assert claimed.pk == second.pk
    dispatch.fail(claimed, code="x", message="x", retryable=False)
    assert admin("queue", "failures")[0]["code"] == "x"
    assert admin("request", "retry-failed", "x")["submitted"] == 1
    assert SynthesisRequest.objects.filter(status=Status.QUEUED).count() == 2
    for order in ("pause", "resume", "recycle", "restart", "stop"):
        admin("worker", order, "w")
        assert Worker.objects.get().order == ("" if order == "resume" else order)
    assert admin("worker", "list")[0]["order"] == "stop"


def test_pools_voices_and_settings(alice):
    admin("pool", "create", "gold", "--note", "n")
    admin("pool", "assign", "Harbour Audio", "gold")
    assert TeamPool.objects.get().pool_id == "gold"
    assert admin("pool", "list") == [{"pool": "gold", "teams": 1, "workers": 0}]
    admin("pool", "assign", "Harbour Audio", "none")
    admin("pool", "delete", "gold")
    voice = factories.preset()
    admin("voice", "block", voice.pk, "--reason", "x")
    assert Voice.objects.get().taken_down_at is not None
    admin("voice", "restore", voice.pk)
    assert admin("setting", "set", "maintenance", "on") == {"maintenance": True}
    assert operator_settings.get("maintenance") is True
    assert {row["setting"] for row in admin("setting", "list")} == set(operator_settings.SETTINGS)


def test_ledger_and_reports(alice, tmp_path):
    factories.submit(alice)
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    dispatch.complete(claimed, dispatch.Made("k", "audio/mpeg", 1, "0" * 64, 2.0, 24_000))
    rollup.roll_up()
    assert admin("ledger", "verify", "--record")["clean"] is True
    assert LedgerCheck.objects.count() == 1
    UsageCounter.objects.filter(user=None, api_key=None).update(used=1)
    assert admin("ledger", "verify", ok=False)["differences"] == 1
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("admin", "ledger", "verify", stdout=out)
    assert "1 differences" in out.getvalue()
    assert "found used 1" in out.getvalue()
    today = timezone.now().date().isoformat()
    rows = admin("report", "usage", "--by", "team", "--from", today, "--to", today)
    assert (rows[0]["name"], rows[-1]["name"], rows[0]["requests"]) == ("Harbour Audio", "in all", 1)
    path = tmp_path / "report.xlsx"
    out = io.StringIO()
    call_command("admin", "report", "usage", "--format", "xlsx", "--out", str(path), stdout=out)
    assert path.read_bytes()[:2] == b"PK"
    assert out.getvalue() == f"file: {path}\n"
    told = admin("report", "usage", "--format", "csv", "--out", str(tmp_path / "no" / "x.csv"), ok=False)
    assert told["error"]["code"] == "file_not_writable"
    assert admin("report", "rebuild")["days_of_teams"] == 1


def test_exports_and_a_forecast(alice, tmp_path):
    assert admin("report", "forecast", ok=False)["error"]["code"] == "no_history"
    factories.submit(alice)
    (claimed,) = dispatch.claim(worker="w", engine="hibari")
    dispatch.complete(claimed, dispatch.Made("k", "audio/mpeg", 1, "0" * 64, 2.0, 24_000))
    for what, count in (("ledger", 2), ("requests", 1)):
        path = tmp_path / f"{what}.json"
        said = admin("report", what, "--team", "Harbour Audio", "--out", path)
        assert said == {"file": str(path)}
        rows = json.loads(path.read_text())
        assert len(rows) == count
        assert rows[0]["team"] == "Harbour Audio"
    # For scripts, each spelt out: "report", "ledger" and "report", "requests".
    UsageRollup.objects.create(
        grain="d", dimension="service", start=timezone.now().date() - timedelta(days=1), characters=100
    )
    told = admin("report", "forecast")
    assert told["low"] <= told["expected"] <= told["high"]


def test_prices_and_alerts(alice):
    made = admin(
        "price", "set", "--plan", "Test", "--from", "2026-01-01", "--per-million-characters", "12.50"
    )
    (row,) = admin("price", "list")
    assert (row["price"], row["plan"], row["per_million_characters"]) == (made["price"], "Test", "12.5000")
    admin("price", "delete", made["price"])
    made = admin(
        "alert", "create", 80, "--email", "money@example.org", "--webhook", "https://example.org/hook"
    )
    assert len(made["webhook_secret"]) == 48
    (row,) = [one for one in admin("alert", "list") if one["alert"] == made["alert"]]
    assert (row["percent"], row["team"], row["emails"]) == (80, None, ["money@example.org"])
    admin("alert", "delete", made["alert"])
    assert made["alert"] not in [one["alert"] for one in admin("alert", "list")]


def test_reports_of_misuse(alice):
    voice = factories.preset()
    assert admin("voice", "list")[0]["voice"] == str(voice.pk)
    said = "It sounds like our minister."
    first = admin("misuse", "add", voice.pk, said, "--email", "eve@example.org")
    assert admin("misuse", "list")[0]["details"] == said
    admin("misuse", "dismiss", first["report"], "--note", "It is a preset.")
    assert admin("misuse", "list") == []
    second = admin("misuse", "add", voice.pk, said, "--kind", "deception")
    assert admin("misuse", "block", second["report"], "--reason", "Deception")["ended_requests"] == 0
    assert [row["decision"] for row in admin("misuse", "list", "--all")] == ["taken_down", "dismissed"]


def test_errors_are_told_and_have_a_status(alice):
    assert admin("team", "suspend", "Nobody", ok=False)["error"]["code"] == "team_not_found"
    assert admin("plan", "delete", "Test", ok=False)["error"]["code"] == "plan_in_use"
    err = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("admin", "plan", "delete", "Test", stderr=err)
    assert "teams have this plan" in err.getvalue()
    for wrong in (
        ["quota", "fly"],
        ["nothing"],
        ["quota", "undo", "x"],
        ["grant", "give", "T", "many", "--reason", "x"],
    ):
        with pytest.raises(CommandError):
            call_command("admin", *wrong)


def test_for_people_it_is_text(alice):
    out = io.StringIO()
    call_command("admin", "team", "list", stdout=out)
    head, row = out.getvalue().splitlines()
    assert head.split()[:2] == ["team", "id"]
    assert row.startswith("Harbour Audio")
    out = io.StringIO()
    call_command("admin", "quota", "show", "Harbour Audio", stdout=out)
    assert "stored voices: own -, in_force 100" in out.getvalue()
    out = io.StringIO()
    call_command("admin", "pool", "list", stdout=out)
    assert out.getvalue().strip() == "Nothing."


def test_every_command_is_tried_in_this_file():
    source = Path(__file__).read_text()
    assert sum(len(verbs) for _text, verbs in NOUNS.values()) > 60
    for noun, (_text, verbs) in NOUNS.items():
        for verb in verbs:
            spelt = f'"{noun}", "{verb.name}"'
            assert spelt in source or (noun == "worker" and f'"{verb.name}"' in source), spelt


@pytest.mark.parametrize("folder", ["", "zh/"])
def test_the_documentation_names_commands_that_exist(folder):
    """Each `./chorus admin …` of the documentation is understood; nothing is carried out."""
    text = (Path(settings.BASE_DIR) / f"docs/{folder}operate.md").read_text()
    commands = [shlex.split(found) for found in re.findall(r"`\./chorus admin ([^`]+)`", text)]
    assert len(commands) > 30
    some_id = "01890000-0000-7000-8000-000000000000"
    for words in commands:
        if {"NOUN", "名词"} & set(words) or "--help" in words:
            continue
        given = [some_id if word in {"ID", "CHANGE", "变更"} else word for word in words]
        admin_command.Command().create_parser("manage.py", "admin").parse_args(given)


def test_keys_stop_with_their_revocation(alice):
    from accounts.errors import NotAuthenticated

    admin("key", "revoke", f"chorus_{alice.by_key.api_key.prefix}")
    with pytest.raises(NotAuthenticated):
        keys.authenticate(alice.secret, ip="127.0.0.1")


def test_e_mail_without_a_server_goes_to_the_log(capsys):
    """Standard output is for the answer of a command alone, which may be JSON."""
    connection = get_connection("config.mail.ToTheLog")
    EmailMessage("Invitation", "The link", to=["rival@example.org"], connection=connection).send()
    said = capsys.readouterr()
    assert said.out == ""
    assert "rival@example.org" in said.err
