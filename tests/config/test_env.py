"""Settings that are wrong are named when they are read."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://voice.example.org/", "https://voice.example.org"),
        ("https://voice.example.org:443", "https://voice.example.org"),
        ("https://voice.example.org:8443", "https://voice.example.org:8443"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_address_is_written_as_browsers_do(monkeypatch, given, origin):
    monkeypatch.setenv("CHORUS_BASE_URL", given)
    assert env.origin("CHORUS_BASE_URL", "") == origin


@pytest.mark.parametrize(
    "given", ["voice.example.org", "ftp://x", "https://", "https://x:y", "https://x/voice"]
)
def test_what_is_no_address_is_named(monkeypatch, given):
    monkeypatch.setenv("CHORUS_BASE_URL", given)
    with pytest.raises(ImproperlyConfigured, match="CHORUS_BASE_URL must look like https://"):
        env.origin("CHORUS_BASE_URL", "")


def named(monkeypatch, name, given, reader, *arguments):
    """What is said of a wrong value: the name of the variable and nothing of what it holds."""
    monkeypatch.setenv(name, given)
    with pytest.raises(ImproperlyConfigured, match=f"^{name} must ") as refused:
        reader(name, *arguments)
    assert not given or given not in str(refused.value)
    assert refused.value.__cause__ is None
    return str(refused.value)


@pytest.mark.parametrize("given", ["smtp", "0", "65536", "-1", "25.5", ""])
def test_what_is_no_port_is_named(monkeypatch, given):
    named(monkeypatch, "CHORUS_EMAIL_PORT", given, env.port, 587)


def test_a_port(monkeypatch):
    assert env.port("CHORUS_EMAIL_PORT", 587) == 587
    monkeypatch.setenv("CHORUS_EMAIL_PORT", "465")
    assert env.port("CHORUS_EMAIL_PORT", 587) == 465


def test_what_is_none_of_the_words_is_named(monkeypatch):
    said = named(monkeypatch, "CHORUS_LOG_LEVEL", "LOUD", env.choice, "INFO", ("DEBUG", "INFO"))
    assert said == "CHORUS_LOG_LEVEL must be one of DEBUG, INFO."


@pytest.mark.parametrize(
    "given",
    [
        "redis://127.0.0.1:6379/0",
        "redis://:s%2Fcret@valkey:6379",
        "rediss://user:secret@redis.example.org/3?socket_timeout=2",
        "unix:///run/valkey.sock?db=1",
    ],
)
def test_addresses_of_redis(monkeypatch, given):
    monkeypatch.setenv("REDIS_URL", given)
    assert env.redis("REDIS_URL") == given


@pytest.mark.parametrize(
    "given",
    [
        "",
        "valkey:6379",
        "http://valkey:6379/0",
        "redis:///0",
        "redis://valkey:redis/0",
        "redis://valkey:6379/first",
        "redis://:s/cret@valkey:6379/0",
        "redis://user:s#cret@valkey:6379/0",
        "redis://valkey 6379",
        "redis://[::1/0",
    ],
)
def test_what_is_no_address_of_redis_is_named(monkeypatch, given):
    assert "cret" not in named(monkeypatch, "REDIS_URL", given, env.redis)


@pytest.mark.parametrize(
    "given", ["", "http://seaweedfs:8333", "https://example.org/s3/", "http://[::1]:9000"]
)
def test_addresses_of_servers(monkeypatch, given):
    monkeypatch.setenv("S3_ENDPOINT_URL", given)
    assert env.server("S3_ENDPOINT_URL") == given


@pytest.mark.parametrize(
    "given",
    ["s3.example.org", "s3://bucket", "https:///s3", "https://x:port", "https://a b", "http://x:99999"],
)
def test_what_is_no_address_of_a_server_is_named(monkeypatch, given):
    named(monkeypatch, "S3_ENDPOINT_URL", given, env.server)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "postgres://db:5432",
        "mysql://chorus:secret@db/chorus",
        "postgres://chorus:se/cret@db:5432/chorus",
        "postgres://chorus:1/cret@db:5432/chorus",
        "postgres://chorus:se#cret@db:5432/chorus",
        "postgres://chorus:secret@db:port/chorus",
    ],
)
def test_what_is_no_address_of_a_database_is_named(monkeypatch, given):
    assert "cret" not in named(monkeypatch, "DATABASE_URL", given, env.database)


def test_an_address_of_a_database(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://chorus:s%2Fcret@db:6432/voice?sslmode=require")
    found = env.database("DATABASE_URL")
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("db", "6432", "voice")
    assert found["PASSWORD"] == "s/cret"
    assert found["OPTIONS"]["sslmode"] == "require"


def test_a_pepper_without_its_number_is_not_shown(monkeypatch):
    assert "must look like 1:hex" in named(monkeypatch, "CHORUS_PEPPERS", "ab" * 32, env.peppers)
