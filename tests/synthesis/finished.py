"""Requests that have ended, without an engine."""

from __future__ import annotations

import hashlib

from synthesis import storage
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch

#: Stands for an MP3; nothing here decodes it.
SOUND = bytes(range(256)) * 40


def claim(row: SynthesisRequest) -> SynthesisRequest:
    """`row`, which must be next, as a worker holds it."""
    (claimed,) = dispatch.claim(worker="w1", engine=row.engine)
    assert claimed.id == row.id
    return claimed


def succeed(row: SynthesisRequest, sound: bytes = SOUND) -> SynthesisRequest:
    """`row` spoken, with `sound` in storage."""
    claimed = claim(row)
    key = storage.output_key(claimed, claimed.format)
    storage.put(key, sound, "audio/mpeg")
    made = dispatch.Made(
        key=key,
        content_type="audio/mpeg",
        bytes=len(sound),
        sha256=hashlib.sha256(sound).hexdigest(),
        seconds=2.5,
        sample_rate=24_000,
    )
    assert dispatch.complete(claimed, made)
    row.refresh_from_db()
    return row


def fail(row: SynthesisRequest, code: str = "engine_error", message: str = "It broke.") -> SynthesisRequest:
    """`row` failed for good."""
    assert dispatch.fail(claim(row), code=code, message=message, retryable=False)
    row.refresh_from_db()
    return row
