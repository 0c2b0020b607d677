"""Which setting to look at when a server that everything needs cannot be reached, or refuses us."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
from botocore import exceptions as storage
from redis import exceptions as redis

_KEYS = "S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY"
#: What S3 servers answer to a key that is wrong, to a bucket that is not there, and to a wrong region.
_REFUSALS = {
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "403"), _KEYS),
    **dict.fromkeys(("NoSuchBucket", "InvalidBucketName", "404"), "S3_BUCKET"),
    **dict.fromkeys(("AuthorizationHeaderMalformed", "PermanentRedirect", "301"), "S3_REGION"),
}
_NO_ANSWER = (storage.HTTPClientError, storage.ConnectionError)
_NO_REDIS = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.NoPermissionError,
    redis.AuthenticationWrongNumberOfArgsError,
)


def variables(error: BaseException) -> str:
    """Their names; empty when `error` has other reasons."""
    return next(filter(None, map(_setting, _causes(error))), "")


def line(error: BaseException) -> str:
    """For whoever starts it: the variables' names and what was said, without secrets; empty for other reasons."""
    for cause in _causes(error):
        if names := _setting(cause):
            # Servers and their libraries tell host and user, never a password; an S3 address could hold one.
            words = type(cause).__name__ if names == "S3_ENDPOINT_URL" else " ".join(str(cause).split())[:300]
            return f"look at {names}: {words}"
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was made from."""
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__


def _setting(error: BaseException) -> str:
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        return "DATABASE_URL"  # what goes wrong after the sign-in has a state
    if isinstance(error, psycopg.ProgrammingError) and "connection option" in str(error):
        return "DATABASE_URL"
    if isinstance(error, _NO_REDIS):
        return "REDIS_URL"
    if isinstance(error, _NO_ANSWER):
        return "S3_ENDPOINT_URL"
    if isinstance(error, (storage.NoCredentialsError, storage.PartialCredentialsError)):
        return _KEYS
    if isinstance(error, storage.ParamValidationError) and "bucket name" in str(error):
        return "S3_BUCKET"
    if isinstance(error, storage.ClientError):
        return _REFUSALS.get(str(error.response.get("Error", {}).get("Code")), "")
    return ""
