"""`/v1/usage`: what was used, by day, month, person, key, voice or model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, F, Q, Sum
from django.http.response import HttpResponseBase
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import exports, permissions
from accounts.actors import Actor
from accounts.api.base import ApiView
from accounts.api.rendering import render
from accounts.api.schema import errors
from accounts.errors import InvalidInput
from accounts.services import keys, limits
from synthesis.models import Status, SynthesisRequest
from synthesis.services import reports

GROUPS = ("day", "month", "user", "key", "voice", "model")
#: Lines of a JSON answer; a CSV has all.
_MOST_ROWS = 1_000
_COLUMNS = (
    "group",
    "id",
    "name",
    "requests",
    "succeeded",
    "failed",
    "canceled",
    "characters",
    "audio_seconds",
    "engine_seconds",
)


class UsageFilterSerializer(serializers.Serializer):
    """Which days, in the team's time zone, and what a line is about."""

    by = serializers.ChoiceField(GROUPS, required=False, default="day")
    first = serializers.DateField(required=False, help_text="By default the first day of this month.")
    last = serializers.DateField(required=False, help_text="Included; by default today.")
    format = serializers.ChoiceField(["json", "csv"], required=False, default="json")


class UsageRowSerializer(serializers.Serializer):
    """One line: what was submitted then and has ended since."""

    group = serializers.CharField(help_text="What `by` said.")
    id = serializers.CharField(
        allow_null=True,
        help_text="The day, the first day of the month, an id, or the model's name; null by key: what was spoken on "
        "the pages, without a key.",
    )
    name = serializers.CharField(
        allow_blank=True, help_text="What that is called; empty for what was deleted."
    )
    requests = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    canceled = serializers.IntegerField()
    characters = serializers.IntegerField(help_text="What was charged.")
    audio_seconds = serializers.FloatField()
    engine_seconds = serializers.FloatField()


class UsageSerializer(serializers.Serializer):
    """At most 1,000 lines; the CSV has all."""

    first = serializers.DateField()
    last = serializers.DateField()
    by = serializers.ChoiceField(GROUPS)
    results = UsageRowSerializer(many=True)


class UsageView(ApiView):
    """Usage of the team."""

    required_scopes = {"GET": permissions.USAGE_READ}
    query_names = {"GET": tuple(UsageFilterSerializer().fields)}

    @extend_schema(
        summary="Show what was used",
        tags=["Usage"],
        parameters=[UsageFilterSerializer],
        responses={
            (200, "application/json"): UsageSerializer,
            (200, "text/csv"): OpenApiTypes.STR,
            **errors(400),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        """The team's; by person or key only your own, unless you have the scope `members:write`. Up to half a minute
        behind.
        """
        query = self.query(UsageFilterSerializer)
        today = timezone.now().astimezone(ZoneInfo(self.actor.team.time_zone)).date()
        first = query.get("first") or limits.period(self.actor.team).key
        last = query.get("last") or max(today, first)
        rows = _rows(self.actor, query["by"], first, last)
        if query["format"] == "csv":
            table = (tuple(row[name] for name in _COLUMNS) for row in rows)
            name = f"usage-{query['by']}-{first}-{last}"
            return exports.respond(rows=table, columns=_COLUMNS, format="csv", name=name)
        found = [row for row, _number in zip(rows, range(_MOST_ROWS), strict=False)]
        body = {"first": first, "last": last, "by": query["by"], "results": found}
        return Response(render(UsageSerializer, body))


def _rows(actor: Actor, by: str, first: date, last: date) -> Iterator[dict[str, Any]]:
    query = reports.Query(first, last, by="day" if by == "model" else by, team=actor.team.id)
    try:
        query.check()
    except InvalidInput as error:
        error.param = {"from": "first", "to": "last"}.get(error.param or "", error.param)
        raise
    if by == "model":
        return _by_model(actor, first, last)
    return _by_rollup(actor, query)


def _by_rollup(actor: Actor, query: reports.Query) -> Iterator[dict[str, Any]]:
    own = _own(actor, query.by)
    numbers = _COLUMNS[3:]
    listed: dict[str, Any] = dict.fromkeys(numbers, 0)
    for row in reports.stream(query):
        if own is not None and row.subject_id not in own:
            continue
        for name in numbers:
            listed[name] += getattr(row, name)
        yield {
            "group": query.by,
            "id": str(row.start or row.subject_id),
            "name": str(row.start) if row.start else row.name,
            **_rounded({name: getattr(row, name) for name in numbers}),
        }
    if query.by == "key" and own is None:
        whole = reports.report(replace(query, by="month"), limit=0).total
        left = _rounded({name: max(0, getattr(whole, name) - listed[name]) for name in numbers})
        if left["requests"]:
            yield {"group": "key", "id": None, "name": "", **left}


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Seconds to the millisecond: sums of many have digits that mean nothing."""
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}


def _own(actor: Actor, by: str) -> set[UUID] | None:
    """The people or keys that the actor may see the use of; None for all."""
    if by not in ("user", "key") or actor.can(permissions.MEMBERS_WRITE):
        return None
    if by == "user":
        return {actor.user.id}
    return set(keys.visible(actor).values_list("id", flat=True))


def _by_model(actor: Actor, first: date, last: date) -> Iterator[dict[str, Any]]:
    """From the requests: the rollup does not know models, of which an installation has one or two."""
    zone = ZoneInfo(actor.team.time_zone)
    start = datetime.combine(first, time.min, zone)
    end = datetime.combine(last + timedelta(days=1), time.min, zone)
    requests = SynthesisRequest.objects.filter(
        team=actor.team, created_at__gte=start, created_at__lt=end, completed_at__isnull=False
    )
    good = Q(status=Status.SUCCEEDED)
    found = (
        requests.values("engine")
        .annotate(
            requests=Count("id"),
            succeeded=Count("id", filter=good),
            failed=Count("id", filter=Q(status=Status.FAILED)),
            canceled=Count("id", filter=Q(status=Status.CANCELED)),
            spoken=Sum("characters", filter=good, default=0),
            heard=Sum("audio_seconds", default=0.0),
            busy=Sum("engine_seconds", default=0.0),
        )
        .order_by(F("spoken").desc(), "engine")
    )
    for row in found:
        yield {
            "group": "model",
            "id": row["engine"],
            "name": row["engine"],
            **{name: row[name] for name in ("requests", "succeeded", "failed", "canceled")},
            "characters": row["spoken"],
            "audio_seconds": round(row["heard"], 3),
            "engine_seconds": round(row["busy"], 3),
        }
