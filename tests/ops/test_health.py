"""Liveness asks nothing; readiness asks every part and names what is missing."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from redis.exceptions import ConnectionError as RedisGone

from config import health
from synthesis.services import workers


def test_alive_needs_no_database(client):
    # Without the `db` fixture any query would fail the test.
    assert client.get("/healthz").json() == {"status": "ok"}


def test_without_workers_it_is_not_ready(db, client):
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "unavailable",
        "database": "ok",
        "migrations": "ok",
        "redis": "ok",
        "storage": "ok",
        "workers": "unavailable",
    }


def test_a_probe_may_leave_parts_out(db, client):
    assert client.get("/readyz?without=workers").status_code == 200


def test_with_a_worker_it_is_ready(db, client):
    workers.beat(name="w", engine="hibari", host="h", pid=1, state="idle")
    assert client.get("/readyz").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("part", "error"), [("_redis", RedisGone()), ("_storage", OSError), ("_database", OperationalError())]
)
def test_each_part_is_named(db, client, monkeypatch, part, error):
    from botocore.exceptions import EndpointConnectionError

    def fails():
        raise EndpointConnectionError(endpoint_url="x") if error is OSError else error

    fails.__name__ = part
    monkeypatch.setattr(health, part, fails)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()[part.strip("_")] == "unavailable"
    if part != "_redis":
        assert answer.json()["redis"] == "ok"


def test_the_log_names_the_setting_and_the_answer_does_not(db, client, monkeypatch, caplog):
    def _redis():
        raise RedisGone("Error 111 connecting to valkey:6379.")

    monkeypatch.setattr(health, "_redis", _redis)
    answer = client.get("/readyz")
    assert "Not ready: redis (look at REDIS_URL)" in caplog.messages
    assert "REDIS_URL" not in answer.content.decode()


def test_a_database_without_the_newest_tables_is_not_ready(db, client, monkeypatch):
    monkeypatch.setattr(health, "_migrated", False)
    monkeypatch.setattr(
        "config.health.MigrationExecutor.migration_plan", lambda self, targets: [("synthesis", "9999")]
    )
    assert client.get("/readyz").json()["migrations"] == "unavailable"


@pytest.mark.parametrize("path", ["/healthz", "/readyz?without=workers", "/metrics"])
def test_machines_ask_by_address(db, client, path):
    """Kubernetes and Prometheus send the pod's address as `Host`."""
    assert client.get(path, headers={"host": "10.1.2.3:8000"}).status_code == 200


def test_people_do_not(db, client):
    assert client.get("/sign-in/", headers={"host": "10.1.2.3:8000"}).status_code == 400
