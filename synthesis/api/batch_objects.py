"""What batches and their rows look like in the API."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from accounts.api.rendering import render
from synthesis.api.syntheses import EstimateLimitSerializer
from synthesis.models import Batch, BatchRow, Output, Status
from synthesis.services import batch_zip, shown
from synthesis.services.batch_states import State


class CountsSerializer(serializers.Serializer):
    """Rows in each state."""

    queued = serializers.IntegerField(help_text="Also those that are no synthesis requests yet.")
    running = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    canceled = serializers.IntegerField()


class BatchUrlsSerializer(serializers.Serializer):
    """Where to go from here."""

    get = serializers.URLField()
    rows = serializers.URLField()
    cancel = serializers.URLField()
    retry = serializers.URLField()
    zip = serializers.URLField()


class BatchSerializer(serializers.Serializer):
    """A batch, and how far it is."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(
        Status.values,
        help_text="`queued` until a row is spoken, `running` until all have ended; then `failed` if any row failed, "
        "else `canceled` if any was canceled, else `succeeded`.",
    )
    name = serializers.CharField(allow_blank=True)
    rows_total = serializers.IntegerField()
    counts = CountsSerializer()
    characters = serializers.IntegerField(help_text="Of all rows: what it costs when each succeeds.")
    characters_charged = serializers.IntegerField(help_text="Of the rows that succeeded.")
    audio_seconds = serializers.FloatField(help_text="Of the rows that succeeded.")
    source = serializers.ChoiceField(["api", "web"])  # type: ignore[assignment]  # the API's name, also REST framework's
    webhook = serializers.CharField(
        allow_null=True, help_text="The address that came with it and is told when it has ended."
    )
    created_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(allow_null=True)
    urls = BatchUrlsSerializer()


class BatchRetriedSerializer(BatchSerializer):
    """A batch of which rows are tried again."""

    retried = serializers.IntegerField(help_text="So many rows.")


class BatchEstimateSerializer(serializers.Serializer):
    """What would become of a file."""

    dry_run = serializers.BooleanField()
    rows_total = serializers.IntegerField()
    characters = serializers.IntegerField()
    limit = EstimateLimitSerializer(allow_null=True)


class RowVoiceSerializer(serializers.Serializer):
    """The voice of a row."""

    id = serializers.UUIDField()
    name = serializers.CharField()


class RowErrorSerializer(serializers.Serializer):
    """Why it failed."""

    code = serializers.CharField()
    message = serializers.CharField()


class RowUrlsSerializer(serializers.Serializer):
    """Its synthesis request."""

    synthesis = serializers.URLField()
    audio = serializers.URLField()


class RowOutputSerializer(serializers.Serializer):
    """The finished file."""

    file = serializers.CharField(help_text="A safe name for it, unique in the batch: as in the zip archive.")
    content_type = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    seconds = serializers.FloatField()


class BatchRowSerializer(serializers.Serializer):
    """One text of a batch."""

    row = serializers.IntegerField(help_text="From 1, without empty lines and the line of column names.")
    line = serializers.IntegerField(help_text="Of the file, from 1: where the row begins.")
    status = serializers.ChoiceField(Status.values)
    synthesis_id = serializers.UUIDField(
        allow_null=True, help_text="Null until the team's queue has a place for it."
    )
    title = serializers.CharField(allow_blank=True)
    voice = RowVoiceSerializer(allow_null=True)
    characters = serializers.IntegerField()
    output = RowOutputSerializer(
        allow_null=True, help_text="Null until it succeeded, and again when the file's time is over."
    )
    error = RowErrorSerializer(allow_null=True)
    urls = RowUrlsSerializer(allow_null=True)


def show(batch: Batch, state: State, request: Request) -> dict[str, Any]:
    def address(name: str) -> str:
        return reverse(name, args=[batch.id], request=request)

    urls = {
        "get": address("api_batch"),
        "rows": address("api_batch_rows"),
        "cancel": address("api_batch_cancel"),
        "retry": address("api_batch_retry"),
        "zip": address("api_batch_zip"),
    }
    return render(BatchSerializer, shown.batch(batch, state, urls=urls))


def show_row(row: BatchRow, request: Request) -> dict[str, Any]:
    # A request whose text was deleted is not to be found any more.
    made = row.request if row.request is not None and row.request.deleted_at is None else None
    code, message = batch_zip.error_of(row)
    urls = None
    if made is not None:
        urls = {
            "synthesis": reverse("api_synthesis", args=[made.id], request=request),
            "audio": reverse("api_synthesis_audio", args=[made.id], request=request),
        }
    return render(
        BatchRowSerializer,
        {
            "row": row.number,
            "line": row.line,
            "status": row.status,
            "synthesis_id": made.id if made else None,
            "title": made.title if made else (row.input or {}).get("title", ""),
            "voice": {"id": made.voice_id, "name": made.voice.name} if made else None,
            "characters": row.characters,
            "output": _output(row),
            "error": {"code": code, "message": message} if code else None,
            "urls": urls,
        },
    )


def _output(row: BatchRow) -> dict[str, Any] | None:
    output: Output | None = getattr(row.request, "output", None)
    if output is None:
        return None
    return {
        "file": batch_zip.file_name(row),
        "content_type": output.content_type,
        "bytes": output.bytes,
        "sha256": output.sha256,
        "seconds": output.seconds,
    }
