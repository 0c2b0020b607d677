"""`manage.py` with settings that do not fit: one line that names them, without what they hold, and no traceback."""

from __future__ import annotations

import os
import secrets
import sys
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from django.conf import settings
from django.db import connection
from redis.exceptions import AuthenticationError

from config import unreachable
from tests.ops import tools

SECRET = "s3cret-of-an-operator"


def refused(*arguments, **changed):
    """The one line of a command that does not begin."""
    done = tools.run(
        *(sys.executable, tools.ROOT / "manage.py", *arguments), env=os.environ | changed, check=False
    )
    assert done.returncode == 1
    [line] = done.stdout.splitlines()
    assert line.startswith("chorus: ")
    assert SECRET not in line
    return line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHORUS_EMAIL_PORT", SECRET),
        ("REDIS_URL", f"valkey:{SECRET}"),
        ("S3_ENDPOINT_URL", SECRET),
        ("DATABASE_URL", f"postgres://chorus:{SECRET}/@db/chorus"),
        ("CHORUS_PEPPERS", SECRET),
        ("CHORUS_LOG_LEVEL", SECRET),
    ],
)
@pytest.mark.parametrize("command", ["migrate", "bootstrap"])
def test_a_malformed_setting(command, name, value):
    assert f"chorus: {name} must " in refused(command, **{name: value})


def test_a_database_that_is_not_there():
    line = refused("migrate", DATABASE_URL=f"postgres://chorus:{SECRET}@127.0.0.1:1/chorus")
    assert "look at DATABASE_URL: " in line


def test_a_database_that_refuses_us(db):
    database = connection.settings_dict
    where = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    line = refused("migrate", DATABASE_URL=f"postgres://{database['USER']}:{SECRET}@{where}")
    assert "look at DATABASE_URL: " in line
    assert "password authentication failed" in line


def test_an_option_of_the_database_that_there_is_not():
    address = f"postgres://chorus:{SECRET}@127.0.0.1:1/chorus?sslmod=require"
    assert "look at DATABASE_URL: " in refused("migrate", DATABASE_URL=address)


def test_a_redis_that_is_not_there():
    assert "look at REDIS_URL: " in refused("bootstrap", REDIS_URL=f"redis://:{SECRET}@127.0.0.1:1/0")


def test_a_redis_that_refuses_us():
    url = urlsplit(settings.REDIS_URL)
    line = refused("bootstrap", REDIS_URL=f"redis://:{SECRET}@{url.hostname}:{url.port}/0")
    assert "look at REDIS_URL: " in line


def test_a_storage_that_refuses_us():
    bucket = f"start-{secrets.token_hex(4)}"
    line = refused("bootstrap", S3_SECRET_ACCESS_KEY=SECRET, S3_BUCKET=bucket)
    assert "look at S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY: " in line


def of_storage(code):
    return ClientError({"Error": {"Code": code}}, "HeadBucket")


@pytest.mark.parametrize(
    ("error", "names"),
    [
        (EndpointConnectionError(endpoint_url=f"http://u:{SECRET}@x"), "S3_ENDPOINT_URL"),
        (NoCredentialsError(), "S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY"),
        (of_storage("InvalidAccessKeyId"), "S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY"),
        (of_storage("404"), "S3_BUCKET"),
        (of_storage("PermanentRedirect"), "S3_REGION"),
        (of_storage("NoSuchKey"), ""),
        (AuthenticationError("invalid username-password pair"), "REDIS_URL"),
        (ValueError("of another kind"), ""),
    ],
)
def test_what_is_named(error, names):
    assert unreachable.variables(error) == names
    line = unreachable.line(error)
    assert line.startswith(f"look at {names}: ") if names else line == ""
    assert SECRET not in line


def test_what_goes_wrong_in_a_query_is_no_matter_of_settings(db):
    with pytest.raises(Exception, match="no_such_table") as failed, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")
    assert unreachable.line(failed.value) == ""
