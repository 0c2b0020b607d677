"""`/v1/batches`: files of texts, one row one synthesis request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.files.uploadedfile import UploadedFile
from django.http import QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import filenames, permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import KnownFields, check_known, check_once
from accounts.api.negotiation import FORM_BYTES
from accounts.api.pagination import InOrder, page
from accounts.api.schema import BODY, CURSOR, IDEMPOTENCY_KEY, LIMIT, PAGE, errors, page_of
from accounts.errors import InvalidInput
from accounts.services import idempotency
from synthesis.api import batch_objects
from synthesis.api.syntheses import DRY_RUN
from synthesis.errors import BatchNotFound, NotReady
from synthesis.models import Batch, Status
from synthesis.services import batch_files, batch_states, batch_zip, batches, callbacks

_CSV = 'text,voice,title\n"Hello, and welcome.",Heart,Welcome\nThank you for listening.,Heart,End\n'
_JSONL = '{"text": "Hello, and welcome.", "title": "Welcome"}\n{"text": "Thank you.", "speed": 0.9}\n'
_WEBHOOK_HELP = (
    "An https address that is told once when every row has ended, by POST of the batch as `GET` shows it. Never an "
    "internal one; redirects are not followed. Signed with the team's secret (`GET /v1/webhooks/default/secret`)."
)


class BatchOptionsSerializer(KnownFields):
    """Fields of the form beside the file, or parameters of the address: what holds for rows that say nothing else."""

    name = serializers.CharField(required=False, default="", max_length=1000, help_text="For lists.")
    voice = serializers.CharField(required=False, help_text="Id or name.")
    format = serializers.CharField(required=False)
    speed = serializers.CharField(required=False)
    language = serializers.CharField(required=False)
    instruction = serializers.CharField(required=False)
    seed = serializers.CharField(required=False)
    webhook = serializers.CharField(required=False, default="", help_text=_WEBHOOK_HELP)
    dry_run = serializers.BooleanField(required=False, default=False)


class BatchCreateSerializer(BatchOptionsSerializer):
    """A form with a file."""

    file = serializers.FileField(
        allow_empty_file=True,
        help_text="CSV or JSON Lines in UTF-8, of at most 16 MiB and 10,000 rows, with the columns or fields "
        f"{', '.join(batch_files.COLUMNS)}.",
    )


class RowFilterSerializer(serializers.Serializer):
    """Which rows to list."""

    status = serializers.ChoiceField(Status.values, required=False)


@dataclass(frozen=True, slots=True)
class RawFile:
    """A body that is the file itself."""

    data: bytes
    kind: str


class _FileParser(BaseParser):
    kind: ClassVar[str]

    def parse(  # type: ignore[override]  # REST framework hands on whatever this is
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> RawFile:
        """One byte more than is taken tells that it is too much."""
        return RawFile(stream.read(batch_files.FILE_BYTES + 1), self.kind)


class CsvParser(_FileParser):
    """RFC 4180."""

    media_type = "text/csv"
    kind = "csv"


class JsonLinesParser(_FileParser):
    """An object on each line."""

    media_type = "application/jsonl"
    kind = "jsonl"


class NdJsonParser(JsonLinesParser):
    """The same by its other name."""

    media_type = "application/x-ndjson"


def _shown(batch: Batch, request: Request) -> dict[str, Any]:
    return batch_objects.show(batch, batch_states.states([batch])[batch.id], request)


class BatchesView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.SYNTHESES_READ, "POST": permissions.SYNTHESES_WRITE}
    query_names = {"GET": PAGE, "POST": tuple(BatchOptionsSerializer().fields)}
    parser_classes = [MultiPartParser, CsvParser, JsonLinesParser, NdJsonParser]
    body_bytes = batch_files.FILE_BYTES + FORM_BYTES

    @extend_schema(
        summary="List batches",
        tags=["Batches"],
        parameters=[LIMIT, CURSOR],
        responses={200: page_of(batch_objects.BatchSerializer), **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The team's, the newest first."""
        body = page(request, batches.visible(self.actor), lambda batch: batch)
        states = batch_states.states(body["results"])
        body["results"] = [batch_objects.show(batch, states[batch.id], request) for batch in body["results"]]
        return Response(body)

    @extend_schema(
        summary="Submit a batch",
        tags=["Batches"],
        request={
            "multipart/form-data": BatchCreateSerializer,
            "text/csv": OpenApiTypes.STR,
            "application/jsonl": OpenApiTypes.STR,
            "application/x-ndjson": OpenApiTypes.STR,
        },
        parameters=[
            OpenApiParameter(
                "name",
                str,
                description="For lists; by default the file's. This and the next: in a form also as field.",
            ),
            *(
                OpenApiParameter(name, str, description="For rows that do not say otherwise.")
                for name in batch_files.DEFAULTS
            ),
            OpenApiParameter("webhook", str, description=_WEBHOOK_HELP),
            DRY_RUN,
            IDEMPOTENCY_KEY,
        ],
        examples=[
            OpenApiExample("CSV", _CSV, media_type="text/csv", request_only=True),
            OpenApiExample("JSON Lines", _JSONL, media_type="application/jsonl", request_only=True),
        ],
        responses={
            200: batch_objects.BatchEstimateSerializer,
            201: batch_objects.BatchSerializer,
            **errors(*BODY, 409, 422, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Queue every row of a CSV or JSON Lines file. All rows are checked first: when one is wrong (`batch_invalid`
        tells every row and column), or when the month's characters do not cover all of them, nothing is queued and
        nothing charged.
        """
        self.hit()
        data, kind, filename, form = _file(request.data)
        options = self.read(BatchOptionsSerializer, _options(request.query_params, form))
        dry_run = options.pop("dry_run")
        name, webhook = options.pop("name") or filename, options.pop("webhook")
        kind = kind or _kind_of(filename)
        if dry_run:
            checked = batches.check(actor=self.actor, data=data, kind=kind, defaults=options)
            batches.checked_name(name)
            callbacks.checked(webhook, None)
            return Response(_estimate(checked, batches.would_meet(self.actor, checked)))

        def work() -> tuple[int, dict[str, Any]]:
            checked = batches.check(actor=self.actor, data=data, kind=kind, defaults=options)
            made = batches.create(actor=self.actor, checked=checked, name=name, webhook=webhook)
            return 201, _shown(made, request)

        status, body, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={
                "route": "batches",
                "file": hashlib.sha256(data).hexdigest(),
                "name": name,
                **({"webhook": webhook} if webhook else {}),
                **options,
            },
            work=work,
        )
        answer = Response(body, status=status, headers={"Location": body["urls"]["get"]})
        if replayed:
            answer.headers["Idempotent-Replayed"] = "true"
        return answer


def _file(body: Any) -> tuple[bytes, str, str, dict[str, Any]]:
    """The file's bytes, kind (where it is known) and name, and the other fields of the form."""
    if isinstance(body, RawFile):
        return body.data, body.kind, "", {}
    upload = body.get("file")
    if not isinstance(upload, UploadedFile):
        raise InvalidInput(
            _("Send the file as “file” of a form, or as the body itself."), code="missing_field", param="file"
        )
    check_known(body, BatchCreateSerializer().fields)
    check_once(body)
    form = {name: value for name, value in body.items() if name != "file"}
    # One byte more than is taken: the file is refused by its size.
    return upload.read(batch_files.FILE_BYTES + 1), "", _printable(upload.name or ""), form


def _printable(name: str) -> str:
    return "".join(char for char in name if char.isprintable())[:200]


def _options(query: QueryDict, form: dict[str, Any]) -> dict[str, Any]:
    """What the address and the form say, each thing once. What is empty counts as absent, but for a dry run: whoever
    meant one must not be charged.
    """
    given = query.copy()
    given.update(form)
    check_once(given)
    return {name: value for name, value in given.items() if value != "" or name == "dry_run"}


def _kind_of(filename: str) -> str:
    ending = filename.rpartition(".")[2].lower()
    return {"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "ndjson": "jsonl"}.get(ending, "")


def _estimate(checked: batches.Checked, limit: Any) -> dict[str, Any]:
    return {
        "dry_run": True,
        "rows_total": len(checked.rows),
        "characters": checked.characters,
        "limit": {"code": limit.code, "message": str(limit), **limit.details} if limit else None,
    }


class BatchView(ApiView):
    """One batch."""

    required_scopes = {"GET": permissions.SYNTHESES_READ, "DELETE": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Show a batch",
        tags=["Batches"],
        responses={200: batch_objects.BatchSerializer, **errors(404)},
    )
    def get(self, request: Request, batch_id: str) -> Response:
        """With the number of rows in each state."""
        return Response(_shown(batches.find(self.actor, parse_id(batch_id, BatchNotFound)), request))

    @extend_schema(summary="Delete a batch", tags=["Batches"], responses={204: None, **errors(404)})
    def delete(self, request: Request, batch_id: str) -> Response:
        """Texts and sound of all rows are removed for good; what has not ended is canceled first."""
        batches.delete(actor=self.actor, batch_id=parse_id(batch_id, BatchNotFound))
        return Response(status=204)


class BatchRowsView(ApiView):
    """The rows of a batch."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}
    query_names = {"GET": (*RowFilterSerializer().fields, *PAGE)}

    @extend_schema(
        summary="List the rows of a batch",
        tags=["Batches"],
        parameters=[RowFilterSerializer, LIMIT, CURSOR],
        responses={200: page_of(batch_objects.BatchRowSerializer), **errors(400, 404)},
    )
    def get(self, request: Request, batch_id: str) -> Response:
        """In the order of the file, each with its own state."""
        batch = batches.find(self.actor, parse_id(batch_id, BatchNotFound))
        rows = batches.rows_of(batch, **self.query(RowFilterSerializer))
        return Response(page(request, rows, lambda row: batch_objects.show_row(row, request), order=InOrder))


class BatchCancelView(ApiView):
    """End a batch early."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Cancel a batch",
        tags=["Batches"],
        request=None,
        responses={200: batch_objects.BatchSerializer, **errors(404)},
    )
    def post(self, request: Request, batch_id: str) -> Response:
        """Rows that have not ended are canceled without charge; those that have stay as they are."""
        batch = batches.cancel(actor=self.actor, batch_id=parse_id(batch_id, BatchNotFound))
        return Response(_shown(batch, request))


class BatchRetryView(ApiView):
    """Once more what failed."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Retry the failed rows of a batch",
        tags=["Batches"],
        request=None,
        responses={200: batch_objects.BatchRetriedSerializer, **errors(404, 409, 429)},
    )
    def post(self, request: Request, batch_id: str) -> Response:
        """All failed rows, or none when the month's characters do not cover them. Sending it twice does no harm: the
        second time nothing has failed.
        """
        self.hit()
        batch, count = batches.retry(actor=self.actor, batch_id=parse_id(batch_id, BatchNotFound))
        return Response({**_shown(batch, request), "retried": count})


class BatchZipView(ApiView):
    """Everything at once."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}

    @extend_schema(
        summary="Fetch the sound of a batch",
        tags=["Batches"],
        responses={(200, "application/zip"): OpenApiTypes.BINARY, **errors(404, 409)},
    )
    def get(self, request: Request, batch_id: str) -> HttpResponseBase:
        """A zip archive of what is finished by now: one file for each row, and `manifest.csv` and `manifest.jsonl`,
        which tell of every row.
        """
        batch = batches.find(self.actor, parse_id(batch_id, BatchNotFound))
        if not batches.rows_of(batch, status=Status.SUCCEEDED).exists():
            raise NotReady(_("There is no sound yet: no row of this batch has succeeded."))
        answer = StreamingHttpResponse(batch_zip.pieces(batch), content_type="application/zip")
        stem = batch.name.rpartition(".")[0] or batch.name
        answer.headers["Content-Disposition"] = filenames.attachment(
            filenames.name(stem, "zip", default=str(batch.id))
        )
        answer.headers["X-Accel-Buffering"] = "no"
        return answer
