"""The embedded servers: they keep their data, come back, share a machine, and never stay behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path

import boto3
import psycopg
import pytest
import redis

from launcher.errors import LauncherError
from launcher.files import Secrets
from launcher.process import free_port, port_is_free
from launcher.services import Services
from tests.launcher import support

_LAUNCH = """
import json, sys, time
from pathlib import Path
from launcher.files import Secrets
from launcher.services import Services
folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
services = Services(folder, venv=Path(sys.prefix), outside={}, secrets=Secrets(folder / "secrets.json"),
                    logs=folder / "logs")
services.start()
print(json.dumps({"pids": [c.pid for c in services.children], "environment": services.environment}), flush=True)
time.sleep(600)
"""


def make(folder: Path, outside: dict[str, str] | None = None, *, durable: bool = False) -> Services:
    """The servers of `folder`; `durable`: as `./chorus up` runs them, which takes longer to stop."""
    folder.mkdir(exist_ok=True)
    return Services(
        folder,
        venv=Path(sys.prefix),
        outside=outside or {},
        secrets=Secrets(folder / "secrets.json"),
        logs=folder / "logs",
        durable=durable,
    )


def storage(environment: dict[str, str]):
    return boto3.client(
        "s3",
        endpoint_url=environment["S3_ENDPOINT_URL"],
        aws_access_key_id=environment["S3_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["S3_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )


def write(environment: dict[str, str]) -> None:
    with psycopg.connect(environment["DATABASE_URL"]) as connection:
        connection.execute("create table kept (word text)")
        connection.execute("insert into kept values ('kept')")
    client = redis.Redis.from_url(environment["REDIS_URL"])
    client.set("kept", "kept")
    client.close()
    objects = storage(environment)
    objects.create_bucket(Bucket="kept")
    objects.put_object(Bucket="kept", Key="kept", Body=b"kept" * 1000)
    objects.close()


def read(environment: dict[str, str]) -> list[object]:
    with psycopg.connect(environment["DATABASE_URL"]) as connection:
        row = connection.execute("select word from kept").fetchone()
    client = redis.Redis.from_url(environment["REDIS_URL"])
    value = client.get("kept")
    client.close()
    objects = storage(environment)
    body = objects.get_object(Bucket="kept", Key="kept")["Body"].read()
    objects.close()
    return [row, value, body]


KEPT = [("kept",), b"kept", b"kept" * 1000]


def test_data_is_kept_over_a_stop_and_over_other_ports(tmp_path):
    tmp_path.chmod(0o755)
    folder = tmp_path / "data"
    first = make(folder, durable=True)
    first.start()
    try:
        write(first.environment)
    finally:
        first.stop()
    assert support.alive(child.pid for child in first.children) == []

    (folder / "ports.json").unlink()
    second = make(folder)
    assert second.environment["DATABASE_URL"] != first.environment["DATABASE_URL"]
    second.start()
    try:
        assert read(second.environment) == KEPT
    finally:
        second.stop()


def test_nothing_outlives_a_killed_launcher_and_nothing_is_lost(tmp_path):
    tmp_path.chmod(0o755)
    process = support.python(_LAUNCH, tmp_path / "data")
    try:
        said = support.read_line(process)
        write(said["environment"])
    finally:
        support.end(process, signal.SIGKILL)
    support.eventually(lambda: not support.alive(said["pids"]), 10)
    again = make(tmp_path / "data")
    again.start()
    try:
        assert again.environment == said["environment"], "the same ports and passwords"
        assert read(again.environment) == KEPT
    finally:
        again.stop()


def test_a_left_lock_file_with_a_living_process_number_does_not_matter(tmp_path):
    tmp_path.chmod(0o755)
    folder = tmp_path / "data"
    services = make(folder)
    services.start()
    services.stop()
    (folder / "postgres" / "data" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    services = make(folder)
    try:
        services.start()
    finally:
        services.stop()


def test_two_folders_share_a_machine(tmp_path):
    tmp_path.chmod(0o755)
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    try:
        one.start()
        two.start()
        assert not set(one.environment.values()) & set(two.environment.values())
        write(one.environment)
        with psycopg.connect(two.environment["DATABASE_URL"]) as connection:
            assert connection.execute("select to_regclass('kept')").fetchone() == (None,)
    finally:
        one.stop()
        two.stop()


def test_passwords_are_required_and_private(tmp_path):
    tmp_path.chmod(0o755)
    services = make(tmp_path / "data")
    try:
        services.start()
        url = services.environment["DATABASE_URL"]
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url.replace(url.split(":")[2].split("@")[0], "wrong"))
        stranger = redis.Redis(port=int(services.environment["REDIS_URL"].rpartition(":")[2].split("/")[0]))
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()
        stranger.close()
    finally:
        services.stop()
    for name in ("secrets.json", "valkey/valkey.conf", "seaweedfs/identities.json"):
        assert (tmp_path / "data" / name).stat().st_mode & 0o777 == 0o600, name


def test_servers_outside_replace_the_embedded_ones(tmp_path):
    outside = {
        "DATABASE_URL": "postgresql://a@db.example/x",
        "REDIS_URL_FILE": "/run/secrets/redis",
        "S3_ENDPOINT_URL": "https://s3.example",
        "S3_BUCKET": "voices",
    }
    services = make(tmp_path / "data", outside)
    assert services.children == []
    assert services.environment == outside


def test_a_server_that_cannot_start_is_one_line(tmp_path):
    tmp_path.chmod(0o755)
    folder = tmp_path / "data"
    services = make(folder)
    with socket.socket() as other:
        other.bind(("127.0.0.1", json.loads((folder / "ports.json").read_text())["valkey"]))
        other.listen()
        with pytest.raises(LauncherError, match="Valkey ended with status 1") as caught:
            services.start()
    assert "\n" not in str(caught.value)
    assert support.alive(child.pid for child in services.children if child.process) == []


def test_another_major_version_is_refused(tmp_path):
    tmp_path.chmod(0o755)
    services = make(tmp_path / "data")
    services.start()
    services.stop()
    (tmp_path / "data" / "postgres" / "data" / "PG_VERSION").write_text("12\n")
    with pytest.raises(LauncherError, match="made by PostgreSQL 12"):
        make(tmp_path / "data").start()


def test_a_port_in_use_is_passed_over():
    taken: set[int] = set()
    port = free_port(taken)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port + 10000))
        other.listen()
        assert port_is_free(port)
        assert free_port(set(), preferred=port) != port
    assert free_port(set(), preferred=port) == port
