"""A backup of an installation with everything in it, restored into an empty one, and compared to the last byte."""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
import time
from datetime import datetime, timedelta
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from config import backups
from synthesis import storage
from synthesis.models import Output, SynthesisRequest
from synthesis.services import dispatch
from tests import factories
from tests.ops import tools

pytestmark = pytest.mark.django_db(transaction=True)


def address(name):
    database = connection.settings_dict
    user, password = quote(database["USER"]), quote(database["PASSWORD"])
    return f"postgres://{user}:{password}@{database['HOST']}:{database['PORT']}/{name}"


@pytest.fixture
def bucket(monkeypatch):
    """A bucket of this test's own: others leave things in the common one."""
    name = f"backup-{secrets.token_hex(4)}"
    monkeypatch.setattr(settings, "S3_BUCKET", name)
    storage.ensure_bucket()
    yield name
    storage.delete_prefix("")
    storage.client().delete_bucket(Bucket=name)


@pytest.fixture
def full(bucket):
    """A team with a finished request whose sound is stored, and one that waits."""
    alice = factories.owner("Alice", team="Harbour Audio")
    factories.submit(alice, "This one is done.")
    [claimed] = dispatch.claim(worker="w", engine="hibari")
    key = storage.output_key(claimed, "mp3")
    storage.put(key, b"sound" * 1000, "audio/mpeg")
    made = dispatch.Made(
        key=key, content_type="audio/mpeg", bytes=5000, sha256="", seconds=1.0, sample_rate=24_000
    )
    assert dispatch.complete(claimed, made)
    factories.submit(alice, "This one is waiting, naïvely.")
    storage.put("teams/x/voices/y/日本.wav", b"", "audio/wav")
    return alice


class Elsewhere:
    """An empty installation: a database and a bucket of its own."""

    def __init__(self):
        self.database = f"restored_{secrets.token_hex(4)}"
        self.bucket = f"restored-{secrets.token_hex(4)}"
        with psycopg.connect(address("postgres"), autocommit=True) as server:
            server.execute(f"CREATE DATABASE {self.database}")

    def manage(self, *arguments, check=True, **changed):
        environment = os.environ | {
            "DATABASE_URL": address(self.database),
            "S3_BUCKET": self.bucket,
            "CHORUS_PEPPERS": ",".join(
                f"{name}:{key.hex()}" for name, key in settings.API_KEY_PEPPERS.items()
            ),
        }
        argv = [sys.executable, tools.ROOT / "manage.py", *map(str, arguments)]
        return tools.run(*argv, env=environment | changed, check=check)

    def rows(self):
        return rows(self.database)

    def objects(self):
        return objects(self.bucket)

    def remove(self):
        with psycopg.connect(address("postgres"), autocommit=True) as server:
            # By force it ends our own connections; PostgreSQL's cleaner is not ours to end, and is soon done.
            for attempt in range(20):
                try:
                    server.execute(f"DROP DATABASE {self.database} WITH (FORCE)")
                    break
                except psycopg.errors.InsufficientPrivilege:
                    if attempt == 19:
                        raise
                    time.sleep(0.5)
        client = storage.client()
        try:
            for key in self.objects():
                client.delete_object(Bucket=self.bucket, Key=key)
            client.delete_bucket(Bucket=self.bucket)
        except client.exceptions.NoSuchBucket:
            pass


@pytest.fixture
def elsewhere():
    made = Elsewhere()
    yield made
    made.remove()


def rows(database):
    """Every row of every table, as text, in an order of its own."""
    with psycopg.connect(address(database)) as server:
        tables = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            table: sorted(row[0] for row in server.execute(f'SELECT t::text FROM "{table}" t').fetchall())  # noqa: S608
            for (table,) in tables
        }


def objects(bucket):
    client = storage.client()
    found = {}
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for item in page.get("Contents", []):
            answer = client.get_object(Bucket=bucket, Key=item["Key"])
            found[item["Key"]] = (answer["Body"].read(), answer["ContentType"])
    return found


def test_everything_comes_back(full, bucket, elsewhere, tmp_path):
    call_command("backup", tmp_path, stdout=io.StringIO())
    before = rows(connection.settings_dict["NAME"])
    said = elsewhere.manage("restore", tmp_path).stdout
    assert "Restored." in said
    assert elsewhere.rows() == before
    assert sum(map(len, before.values())) > 50
    assert elsewhere.objects() == objects(bucket)
    assert len(elsewhere.objects()) == 2
    # The key works, the sound is there, what waited can be claimed, and nothing is left to migrate.
    script = f"""
from accounts.services import keys
from synthesis import storage
from synthesis.models import Output
from synthesis.services import dispatch, verification
print(keys.authenticate({full.secret!r}, ip="127.0.0.1").team.name)
print(len(storage.get(Output.objects.get().key)))
print([request.text for request in dispatch.claim(worker="w", engine="hibari")])
print(verification.verify().count)
"""
    lines = elsewhere.manage("shell", "--no-imports", "-c", script).stdout.splitlines()
    assert lines[-4:] == ["Harbour Audio", "5000", "['This one is waiting, naïvely.']", "0"]
    elsewhere.manage("migrate", "--check")


def test_append_only_tables_stay_so(full, elsewhere, tmp_path):
    call_command("backup", tmp_path, stdout=io.StringIO())
    elsewhere.manage("restore", tmp_path)
    with psycopg.connect(address(elsewhere.database)) as server, pytest.raises(psycopg.Error, match="append"):
        server.execute("DELETE FROM accounts_ledgerentry")


def test_a_database_in_use_is_not_touched(full, tmp_path):
    call_command("backup", tmp_path, stdout=io.StringIO())
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", tmp_path)
    assert SynthesisRequest.objects.count() == 2


def test_replace_drops_what_is_there(full, elsewhere, tmp_path):
    call_command("backup", tmp_path, stdout=io.StringIO())
    before = rows(connection.settings_dict["NAME"])
    elsewhere.manage("restore", tmp_path)
    with psycopg.connect(address(elsewhere.database)) as server:
        server.execute("DELETE FROM synthesis_output")
    elsewhere.manage("restore", tmp_path, "--replace")
    assert elsewhere.rows() == before


class TestInUse:
    """A running installation is not replaced by mistake."""

    @pytest.fixture
    def restored(self, full, elsewhere, tmp_path):
        call_command("backup", tmp_path, stdout=io.StringIO())
        elsewhere.manage("restore", tmp_path)
        return elsewhere

    def refused(self, elsewhere, tmp_path):
        before = elsewhere.rows()
        done = elsewhere.manage("restore", tmp_path, "--replace", check=False)
        assert done.returncode != 0
        assert "--while-running" in done.stdout
        assert elsewhere.rows() == before
        return done.stdout

    def test_a_worker_is_at_work(self, restored, tmp_path):
        report = 'beat(name="h:0", engine="hibari", host="h", pid=1, state="idle")'
        restored.manage(
            "shell", "--no-imports", "-c", f"from synthesis.services.workers import beat; {report}"
        )
        assert "worker h:0" in self.refused(restored, tmp_path)
        # One that has said goodbye is no matter.
        with psycopg.connect(address(restored.database), autocommit=True) as server:
            server.execute("UPDATE synthesis_worker SET state = 'gone'")
        restored.manage("restore", tmp_path, "--replace")

    def test_somebody_is_connected(self, restored, tmp_path):
        with psycopg.connect(address(restored.database), autocommit=True):
            assert "other connections to the database (1)" in self.refused(restored, tmp_path)
            restored.manage("restore", tmp_path, "--replace", "--while-running")


class TestDamage:
    """Nothing is changed by a backup that is not whole."""

    @pytest.fixture
    def backup(self, full, tmp_path):
        return backups.back_up(tmp_path, say=lambda line: None)

    def refused(self, elsewhere, tmp_path, **changed):
        done = elsewhere.manage("restore", tmp_path, check=False, **changed)
        assert done.returncode != 0
        assert elsewhere.rows() == {}
        return done.stdout

    def test_a_changed_object(self, backup, elsewhere, tmp_path):
        [sound] = tmp_path.rglob("audio.mp3")
        sound.write_bytes(b"other")
        assert "damaged" in self.refused(elsewhere, tmp_path)

    def test_a_missing_object(self, backup, elsewhere, tmp_path):
        [sound] = tmp_path.rglob("audio.mp3")
        sound.unlink()
        assert "damaged" in self.refused(elsewhere, tmp_path)

    def test_a_changed_dump(self, backup, elsewhere, tmp_path):
        with (backup / backups.DUMP).open("ab") as file:
            file.write(b"x")
        assert "damaged" in self.refused(elsewhere, tmp_path)

    def test_another_pepper(self, backup, elsewhere, tmp_path):
        said = self.refused(elsewhere, tmp_path, CHORUS_PEPPERS=f"1:{'ab' * 32}")
        assert "CHORUS_PEPPERS" in said
        elsewhere.manage("restore", tmp_path, "--other-peppers", CHORUS_PEPPERS=f"1:{'ab' * 32}")

    def test_no_backup(self, elsewhere, tmp_path):
        assert "no backup" in self.refused(elsewhere, tmp_path / "nothing")


def test_objects_are_copied_once(full, tmp_path, monkeypatch):
    backups.back_up(tmp_path, say=lambda line: None)
    copied = []
    original = backups._copy
    monkeypatch.setattr(backups, "_copy", lambda *given: copied.append(given) or original(*given))
    monkeypatch.setattr(backups, "datetime", _Later)
    backups.back_up(tmp_path, say=lambda line: None)
    assert copied == []
    assert len(backups.backups(tmp_path)) == 2


class _Later(datetime):
    """Two backups within a second would have the same name."""

    @classmethod
    def now(cls, tz=None):
        return timezone.now() + timedelta(seconds=5)


def test_old_backups_and_their_objects_go(full, tmp_path, monkeypatch):
    backups.back_up(tmp_path, say=lambda line: None)
    output = Output.objects.get()
    storage.delete_prefix(output.key)
    monkeypatch.setattr(backups, "datetime", _Later)
    backups.back_up(tmp_path, say=lambda line: None)
    assert list(tmp_path.rglob("audio.mp3"))
    assert backups.prune(tmp_path, keep=1, say=lambda line: None) == 1
    assert len(backups.backups(tmp_path)) == 1
    assert not list(tmp_path.rglob("audio.mp3"))
    assert list(tmp_path.rglob("日本.wav"))


def test_secrets_are_not_in_a_backup(full, tmp_path):
    backup = backups.back_up(tmp_path, say=lambda line: None)
    manifest = json.loads((backup / backups.MANIFEST).read_text())
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for pepper in settings.API_KEY_PEPPERS.values():
        assert pepper.hex().encode() not in everything
    assert settings.SECRET_KEY.encode() not in everything
    assert set(manifest["peppers"]) == set(settings.API_KEY_PEPPERS)


def test_two_at_once_are_refused(full, tmp_path):
    tmp_path.mkdir(exist_ok=True)
    with backups._alone(tmp_path), pytest.raises(backups.BackupError, match="at work"):
        backups.back_up(tmp_path)


@pytest.mark.parametrize("key", ["/etc/passwd", "teams/../../x", ""])
def test_keys_that_lead_elsewhere_are_refused(tmp_path, key):
    with pytest.raises(backups.BackupError):
        backups._file(tmp_path, key)
