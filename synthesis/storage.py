"""Object storage: one bucket, keys that begin with the team.

boto3 retries by itself (about half a minute, with growing pauses), so that a storage server that restarts is a delay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import UUID

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.utils.http import content_disposition_header
from django.utils.translation import gettext_lazy as _

from accounts.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from synthesis.models import SynthesisRequest, VoiceVersion

#: S3 deletes at most this many objects in one call.
_DELETE_BATCH = 1000
#: Bytes that are handed on at once.
_PIECE_BYTES = 64 * 1024


class StorageUnavailable(Unavailable):
    """Object storage does not answer."""

    code = "storage_unavailable"
    message = _("The storage does not answer right now. Nothing is lost; try again in a few seconds.")


def _make(endpoint: str, attempts: int = 8) -> Any:
    return boto3.client(
        "s3",
        endpoint_url=endpoint or None,
        aws_access_key_id=settings.S3_ACCESS_KEY_ID or None,
        aws_secret_access_key=settings.S3_SECRET_ACCESS_KEY or None,
        region_name=settings.S3_REGION,
        config=Config(
            connect_timeout=3,
            read_timeout=20,
            # Pauses of up to 1, 2, 4, 8, 16 s: rides out a storage server that is away for 10 s.
            retries={"mode": "standard", "total_max_attempts": attempts},
            max_pool_connections=32,
            s3={"addressing_style": "path"},
            # Other S3 servers do not all know the newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


@cache
def client() -> Any:
    """The process's S3 client; thread-safe, as boto3 promises for clients."""
    return _make(settings.S3_ENDPOINT_URL)


@cache
def _public_client() -> Any:
    return _make(settings.S3_PUBLIC_URL)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in {"NoSuchKey", "404"}:
            raise NotFound from error
        raise StorageUnavailable(retry_after=5) from error
    except BotoCoreError as error:
        raise StorageUnavailable(retry_after=5) from error


def output_key(request: SynthesisRequest, extension: str) -> str:
    """Where an attempt's finished file goes."""
    return f"teams/{request.team_id}/requests/{request.id}/{request.attempt}/audio.{extension}"


def segment_key(request: SynthesisRequest, index: int) -> str:
    """Where an attempt's sound of one segment goes."""
    return f"teams/{request.team_id}/requests/{request.id}/{request.attempt}/segment-{index:05d}.flac"


def source_key(request: SynthesisRequest, index: int) -> str:
    """Where a piece of the recording goes that a conversion says in another voice."""
    return f"teams/{request.team_id}/requests/{request.id}/source/{index:05d}.wav"


def request_prefix(team_id: UUID, request_id: UUID) -> str:
    """What all of a request's keys begin with."""
    return f"teams/{team_id}/requests/{request_id}/"


def voice_prefix(team_id: UUID, voice_id: UUID) -> str:
    """What all of a voice's keys begin with."""
    return f"teams/{team_id}/voices/{voice_id}/"


def version_key(team_id: UUID, version: VoiceVersion, name: str) -> str:
    """Where a file of a voice's version goes; `name` is one of ours, never a user's."""
    return f"{voice_prefix(team_id, version.voice_id)}{version.id}/{name}"


def consent_prefix(team_id: UUID, consent_id: UUID) -> str:
    """What all of a recorded consent's keys begin with."""
    return f"teams/{team_id}/consents/{consent_id}/"


def put(key: str, body: bytes | BinaryIO, content_type: str) -> None:
    """Store an object; StorageUnavailable when that fails for longer than the retries."""
    with _translated():
        client().put_object(Bucket=settings.S3_BUCKET, Key=key, Body=body, ContentType=content_type)


def get(key: str) -> bytes:
    """A whole object; NotFound or StorageUnavailable."""
    with _translated():
        return client().get_object(Bucket=settings.S3_BUCKET, Key=key)["Body"].read()


def size(key: str) -> int:
    """How many bytes an object has; NotFound or StorageUnavailable."""
    with _translated():
        return int(client().head_object(Bucket=settings.S3_BUCKET, Key=key)["ContentLength"])


class Stream:
    """An object's bytes in pieces; whoever does not read to the end must `close`."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self._pieces: Iterator[bytes] = body.iter_chunks(_PIECE_BYTES)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """Give the connection back."""
        self._body.close()


def open_range(key: str, start: int, end: int) -> Stream:
    """The bytes `start` to `end` (inclusive); NotFound and StorageUnavailable are raised before the first piece."""
    with _translated():
        answer = client().get_object(Bucket=settings.S3_BUCKET, Key=key, Range=f"bytes={start}-{end}")
    return Stream(answer["Body"])


def delete_prefix(prefix: str) -> int:
    """Delete everything below `prefix`; how many objects."""
    count = 0
    with _translated():
        for page in (
            client()
            .get_paginator("list_objects_v2")
            .paginate(Bucket=settings.S3_BUCKET, Prefix=prefix, PaginationConfig={"PageSize": _DELETE_BATCH})
        ):
            keys = [{"Key": item["Key"]} for item in page.get("Contents", [])]
            if keys:
                client().delete_objects(Bucket=settings.S3_BUCKET, Delete={"Objects": keys, "Quiet": True})
            count += len(keys)
    return count


def presigned(key: str, *, filename: str, content_type: str, disposition: str, seconds: int = 3600) -> str:
    """An address from which a browser can fetch the object itself; empty unless storage has a public address."""
    if not settings.S3_PUBLIC_URL:
        return ""
    return _public_client().generate_presigned_url(
        "get_object",
        Params={
            "Bucket": settings.S3_BUCKET,
            "Key": key,
            "ResponseContentType": content_type,
            "ResponseContentDisposition": content_disposition_header(disposition == "attachment", filename),
        },
        ExpiresIn=seconds,
    )


@cache
def _probe_client() -> Any:
    return _make(settings.S3_ENDPOINT_URL, attempts=1)


def probe() -> None:
    """Ask once whether the bucket is there; botocore's own error when it is not."""
    _probe_client().head_bucket(Bucket=settings.S3_BUCKET)


def ensure_bucket() -> None:
    """Create the bucket unless it is there."""
    with _translated():
        try:
            client().head_bucket(Bucket=settings.S3_BUCKET)
        except ClientError:
            client().create_bucket(Bucket=settings.S3_BUCKET)
