"""The servers that the tests themselves run on."""

import os

import boto3
import psycopg
import redis
from django.conf import settings


def test_settings_were_read_after_the_servers_started() -> None:
    assert settings.DATABASES["default"]["HOST"] == "127.0.0.1"


def test_postgres_answers_with_its_own_role() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("select current_user, lower('ÄÖ')").fetchone()
    assert row == ("chorus", "äö")


def test_valkey_refuses_a_wrong_password() -> None:
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    assert client.ping()
    client.close()


def test_objects_come_back() -> None:
    client = boto3.client(
        "s3",
        endpoint_url=os.environ["S3_ENDPOINT_URL"],
        aws_access_key_id=os.environ["S3_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["S3_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    )
    client.put_object(Bucket=os.environ["S3_BUCKET"], Key="tests/launcher", Body=b"0123456789")
    part = client.get_object(Bucket=os.environ["S3_BUCKET"], Key="tests/launcher", Range="bytes=2-4")
    assert part["Body"].read() == b"234"
    client.close()
