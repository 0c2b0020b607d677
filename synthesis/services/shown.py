"""What requests and batches look like to whoever calls: in answers of the API, and in what their webhooks are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.utils.encoders import JSONEncoder

from synthesis.models import Batch, Output, Status, SynthesisRequest
from synthesis.services.batch_states import State
from synthesis.services.queue import Outlook


def request(
    row: SynthesisRequest, *, urls: Mapping[str, str], output: Output | None, outlook: Outlook | None = None
) -> dict[str, Any]:
    """`row` with `voice` selected, and its file when it has one. `urls` holds `audio` and `events` among others."""
    place = outlook.place if outlook else None
    return {
        "id": row.id,
        "status": row.status,
        "title": row.title,
        "voice": {"id": row.voice_id, "name": row.voice.name, "kind": row.voice.kind},
        "engine": row.engine,
        "cloning": row.cloning or None,
        "characters": row.characters,
        "segments_total": row.segments_total,
        "segments_done": row.segments_done,
        "queue_position": place.position if place else None,
        "ahead": place.ahead if place else None,
        "eta_seconds": outlook.seconds if outlook else None,
        "workers": outlook.workers if outlook else None,
        "input": {
            "text": row.text,
            "source_seconds": row.source_seconds or None,
            "voice": row.voice_id,
            "language": row.language,
            "instruction": row.instruction,
            "format": row.format,
            "speed": row.speed,
            "seed": row.seed,
            "title": row.title,
        },
        "output": _output(output, urls["audio"]) if output else None,
        "error": _error(row),
        "metrics": _metrics(row, output),
        "source": row.source,
        "webhook": row.webhook or None,
        "webhook_events_filter": row.webhook_events or [],
        "created_at": row.created_at,
        "started_at": row.started_at,
        "completed_at": row.completed_at,
        # Replicate's name for the second.
        "urls": {**urls, "stream": urls["events"]},
    }


def _output(output: Output, url: str) -> dict[str, Any]:
    return {
        "url": url,
        "content_type": output.content_type,
        "bytes": output.bytes,
        "sha256": output.sha256,
        "seconds": output.seconds,
        "sample_rate": output.sample_rate,
        "expires_at": output.expires_at,
    }


def _error(row: SynthesisRequest) -> dict[str, Any] | None:
    # A request that will be tried again remembers what went wrong before, which is no news for its owner.
    if row.status != Status.FAILED:
        return None
    return {"code": row.error_code, "message": _(row.error_message) if row.error_message else ""}


def _metrics(row: SynthesisRequest, output: Output | None) -> dict[str, Any]:
    seconds = output.seconds if output else None
    return {
        "queue_seconds": row.queue_seconds,
        "engine_seconds": row.engine_seconds,
        "audio_seconds": seconds,
        "real_time_factor": row.engine_seconds / seconds if seconds else None,
        "characters": row.characters,
    }


def batch(found: Batch, state: State, *, urls: Mapping[str, str]) -> dict[str, Any]:
    """A batch, and how far it is."""
    return {
        "id": found.id,
        "status": state.status,
        "name": found.name,
        "rows_total": found.rows_total,
        "counts": state.counts,
        "characters": found.characters,
        "characters_charged": state.characters,
        "audio_seconds": round(state.audio_seconds, 3),
        "source": found.source,
        "webhook": found.webhook or None,
        "created_at": found.created_at,
        "completed_at": state.completed_at,
        "urls": urls,
    }


def plain(body: dict[str, Any]) -> dict[str, Any]:
    """`body` as it is kept until it is told: what the API would answer, in nothing but JSON's own types."""
    told: dict[str, Any] = json.loads(json.dumps(body, cls=JSONEncoder))
    return told
