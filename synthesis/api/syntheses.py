"""`/v1/syntheses`: texts to be spoken, and what became of them."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.actors import Actor
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, KnownFields, Number, Text, Whole
from accounts.api.pagination import page
from accounts.api.schema import BODY, CURSOR, IDEMPOTENCY_KEY, LIMIT, PAGE, errors, page_of
from accounts.services import idempotency
from synthesis import delivery
from synthesis.api import objects
from synthesis.api.fields import VoiceField
from synthesis.api.held import Hold, HoldingView, wanted_wait
from synthesis.errors import NotReady, OutputExpired, RequestNotFound
from synthesis.models import Format, Output, Status, SynthesisRequest
from synthesis.services import bundles, callbacks, estimate, peaks, queue, requests, submission

DRY_RUN = OpenApiParameter(
    "dry_run", bool, description="Only say what would happen (200): nothing is queued and nothing charged."
)
PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`wait` or `wait=n` holds the answer until the request has ended, for n seconds at most (60 without n, "
    "and never more; `Preference-Applied` says how many), and answers with the unfinished request when the time is "
    "over. `wait=0` and what is no number are ignored.",
)


WEBHOOK_HELP = (
    "An https address that is told how this goes, by POST of the object as `GET` shows it, without the text. Never an "
    "internal one; redirects are not followed. Signed with the team's secret (`GET /v1/webhooks/default/secret`)."
)
EVENTS_HELP = (
    "When `webhook` is told: `start` (a worker has begun), `output` (another segment is spoken), `completed` (it has "
    "ended, however). By default `completed`."
)


class SynthesisCreateSerializer(KnownFields, InputSerializer):
    """What to say, and how."""

    text = Text(
        allow_blank=True,
        help_text="At most 20,000 characters (Unicode code points in NFC), if the plan says no less.",
    )
    voice = VoiceField(help_text="Id or name of a voice.")
    format = Text(default=Format.MP3, help_text=f"One of {', '.join(Format.values)}.")
    speed = Number(default=1.0, help_text="A factor; most engines take 0.5 to 2.")
    language = Text(
        default="", allow_blank=True, help_text="A BCP 47 tag. By default as the text is written."
    )
    instruction = Text(
        default="", allow_blank=True, help_text="How to say it, for engines that follow instructions."
    )
    seed = Whole(default=None, help_text="The same seed, text and voice give the same sound.")
    title = Text(default="", allow_blank=True, help_text="A name for lists and downloads.")
    webhook = Text(default="", max_length=callbacks.URL_CHARACTERS, help_text=WEBHOOK_HELP)
    webhook_events_filter = serializers.ListField(
        child=Text(), required=False, max_length=20, help_text=EVENTS_HELP
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The text is checked by `synthesis.text.clean`, which says where a forbidden character is."""
        fields = super().get_fields()
        fields["text"].validators = []
        return fields


class SynthesisFilterSerializer(serializers.Serializer):
    """Which requests to list."""

    status = serializers.ChoiceField(Status.values, required=False)
    voice = serializers.UUIDField(required=False, help_text="Id of a voice.")
    search = serializers.CharField(required=False, help_text="Part of the title or the text.")


class EstimateLimitSerializer(serializers.Serializer):
    """The limit that a submission would meet; some codes add fields of their own."""

    code = serializers.ChoiceField(["quota_exceeded", "concurrent_limit_exceeded"])
    message = serializers.CharField()


class EstimateSerializer(serializers.Serializer):
    """What would become of a submission."""

    dry_run = serializers.BooleanField()
    characters = serializers.IntegerField()
    segments_total = serializers.IntegerField()
    audio_seconds = serializers.FloatField(help_text="Of sound, roughly.")
    eta_seconds = serializers.IntegerField(
        allow_null=True, help_text="Until it would be done. Null while no worker is there to do it."
    )
    ahead = serializers.IntegerField(help_text="Requests that would be taken before it.")
    language = serializers.CharField()
    cloning = serializers.CharField(allow_null=True)
    limit = EstimateLimitSerializer(allow_null=True)


class SynthesesView(HoldingView):
    """List and create."""

    required_scopes = {"GET": permissions.SYNTHESES_READ, "POST": permissions.SYNTHESES_WRITE}
    query_names = {"GET": (*SynthesisFilterSerializer().fields, *PAGE), "POST": ("dry_run",)}

    @extend_schema(
        summary="List synthesis requests",
        tags=["Syntheses"],
        parameters=[SynthesisFilterSerializer, LIMIT, CURSOR],
        responses={200: page_of(objects.SynthesisSerializer), **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The team's requests, the newest first."""
        rows = _filtered(requests.visible(self.actor), **self.query(SynthesisFilterSerializer))
        return Response(page(request, rows, lambda row: objects.synthesis(row, request)))

    @extend_schema(
        summary="Submit a text",
        tags=["Syntheses"],
        request=SynthesisCreateSerializer,
        parameters=[DRY_RUN, PREFER, IDEMPOTENCY_KEY],
        responses={
            200: EstimateSerializer,
            201: objects.SynthesisSerializer,
            **errors(*BODY, 409, 422, 429),
        },
    )
    def post(self, request: Request) -> Response | Hold:
        """Queue a text to be spoken. Nothing is charged unless it succeeds."""
        self.hit()
        values = self.read(SynthesisCreateSerializer)
        # Not `query`, for which an empty value is none: whoever meant a dry run must not be charged.
        if request.query_params and self.read(_DryRunSerializer, request.query_params.dict()).get("dry_run"):
            return Response(_estimate(self.actor, submission.plan(actor=self.actor, **values)))

        def work() -> tuple[int, dict[str, Any]]:
            row = submission.submit(actor=self.actor, planned=submission.plan(actor=self.actor, **values))
            return 201, objects.synthesis(row, request, outlook=queue.outlook(row))

        status, body, replayed = idempotency.once(
            actor=self.actor,
            key=self.idempotency_key(),
            payload={"route": "syntheses", **cast(dict[str, Any], request.data)},
            work=work,
        )
        return submitted(self, body, status, replayed)


class _DryRunSerializer(serializers.Serializer):
    dry_run = serializers.BooleanField(required=False)


def _estimate(actor: Actor, planned: submission.Plan) -> dict[str, Any]:
    found = estimate.estimate(actor, planned)
    limit = found.limit
    return {
        "dry_run": True,
        "characters": found.characters,
        "segments_total": found.segments,
        "audio_seconds": found.audio_seconds,
        "eta_seconds": found.wait_seconds,
        "ahead": found.ahead,
        "language": planned.language,
        "cloning": planned.cloning or None,
        "limit": {"code": limit.code, "message": str(limit), **limit.details} if limit else None,
    }


def submitted(view: HoldingView, body: dict[str, Any], status: int, replayed: bool) -> Response | Hold:
    """The answer to a submission, at once or, where `Prefer: wait` asks for it, when the request has ended."""
    wait = wanted_wait(view.request)
    if wait is None:
        return _created(body, status, replayed)
    identifier = parse_id(body["id"])

    def finish() -> Response:
        answer = _created(_shown(view, requests.submitted(view.actor, identifier)), status, replayed)
        answer.headers["Preference-Applied"] = f"wait={wait}"
        return answer

    return Hold(view, identifier, wait, finish)


def _created(body: dict[str, Any], status: int, replayed: bool) -> Response:
    answer = Response(body, status=status, headers={"Location": body["urls"]["get"]})
    if replayed:
        answer.headers["Idempotent-Replayed"] = "true"
    return answer


def _shown(view: ApiView, row: SynthesisRequest) -> dict[str, Any]:
    """The request as it is now, with its place in the queue."""
    outlook = None if row.is_final else queue.outlook(row)
    return objects.synthesis(row, view.request, outlook=outlook)


def _filtered(
    rows: QuerySet[SynthesisRequest], *, status: str = "", voice: UUID | None = None, search: str = ""
) -> QuerySet[SynthesisRequest]:
    if status:
        rows = rows.filter(status=status)
    if voice:
        rows = rows.filter(voice=voice)
    if search:
        rows = rows.filter(Q(title__icontains=search) | Q(text__icontains=search))
    return rows


class SynthesisView(ApiView):
    """One request."""

    required_scopes = {"GET": permissions.SYNTHESES_READ, "DELETE": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Show a synthesis request",
        tags=["Syntheses"],
        responses={200: objects.SynthesisSerializer, **errors(404)},
    )
    def get(self, request: Request, synthesis_id: str) -> Response:
        """With its place in the queue and the seconds until it is done."""
        row = requests.find(self.actor, parse_id(synthesis_id, RequestNotFound))
        return Response(_shown(self, row))

    @extend_schema(
        summary="Delete a synthesis request", tags=["Syntheses"], responses={204: None, **errors(404)}
    )
    def delete(self, request: Request, synthesis_id: str) -> Response:
        """Text and sound are removed for good; one that has not ended is canceled first."""
        requests.delete(actor=self.actor, request_id=parse_id(synthesis_id, RequestNotFound))
        return Response(status=204)


class SynthesisCancelView(ApiView):
    """End a request early."""

    required_scopes = {"POST": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Cancel a synthesis request",
        tags=["Syntheses"],
        request=None,
        responses={200: objects.SynthesisSerializer, **errors(404)},
    )
    def post(self, request: Request, synthesis_id: str) -> Response:
        """Nothing is charged. A request that has ended stays as it is."""
        identifier = parse_id(synthesis_id, RequestNotFound)
        return Response(objects.synthesis(requests.cancel(actor=self.actor, request_id=identifier), request))


class PeaksFilterSerializer(serializers.Serializer):
    """How fine."""

    count = serializers.IntegerField(required=False, default=800, min_value=1, max_value=10_000)


class PeaksSerializer(serializers.Serializer):
    """The outline of the sound."""

    seconds = serializers.FloatField()
    peaks = serializers.ListField(
        child=serializers.FloatField(), help_text="Each the loudest sample of its part, 0 to 1."
    )


class SynthesisPeaksView(ApiView):
    """For waveforms."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}
    query_names = {"GET": tuple(PeaksFilterSerializer().fields)}

    @extend_schema(
        summary="Outline the sound",
        tags=["Syntheses"],
        parameters=[PeaksFilterSerializer],
        responses={200: PeaksSerializer, **errors(400, 404, 409, 410)},
    )
    def get(self, request: Request, synthesis_id: str) -> Response:
        """`count` parts of equal length, or fewer of a very short sound."""
        count = self.query(PeaksFilterSerializer)["count"]
        row = requests.find(self.actor, parse_id(synthesis_id, RequestNotFound))
        output = _output(row)
        return Response({"seconds": output.seconds, "peaks": peaks.of(row, output, count)})


class AudioFilterSerializer(serializers.Serializer):
    """How to name it."""

    download = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Name the file in `Content-Disposition` as an attachment.",
    )


class SynthesisAudioView(ApiView):
    """The finished file."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}
    query_names = {"GET": tuple(AudioFilterSerializer().fields)}

    @extend_schema(
        summary="Fetch the sound",
        tags=["Syntheses"],
        parameters=[
            AudioFilterSerializer,
            OpenApiParameter("Range", str, OpenApiParameter.HEADER),
            OpenApiParameter("If-Range", str, OpenApiParameter.HEADER),
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "audio/*"): OpenApiTypes.BINARY,
            (206, "audio/*"): OpenApiTypes.BINARY,
            302: None,
            304: None,
            **errors(404, 409, 410, 416),
        },
    )
    def get(self, request: Request, synthesis_id: str) -> HttpResponseBase:
        """Whole or in ranges. Redirects to the storage where that has a public address."""
        download = self.query(AudioFilterSerializer)["download"]
        row = requests.find(self.actor, parse_id(synthesis_id, RequestNotFound))
        output = _output(row)
        return delivery.serve(
            request._request,
            key=output.key,
            size=output.bytes,
            content_type=output.content_type,
            filename=bundles.own_name(row),
            download=download,
            etag=output.sha256,
        )


def _output(row: SynthesisRequest) -> Output:
    """NotReady before there is sound, OutputExpired after."""
    output: Output | None = getattr(row, "output", None)
    if output is not None:
        return output
    if row.status == Status.SUCCEEDED:
        raise OutputExpired
    raise NotReady(
        _("There is no sound: the request is %(status)s.") % {"status": row.get_status_display().lower()},
        status=row.status,
    )
