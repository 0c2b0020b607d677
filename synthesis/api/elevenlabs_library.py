"""ElevenLabs' `/v1/user/subscription`, `/v1/history` and the shapes of their voices and models."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import parse_id
from accounts.services import limits
from synthesis import delivery
from synthesis.api import objects
from synthesis.api.elevenlabs_base import ElevenLabsView, elevenlabs_errors
from synthesis.api.objects import category
from synthesis.api.voices import filtered
from synthesis.engines import capabilities
from synthesis.errors import OutputExpired, RequestNotFound
from synthesis.models import Status, SynthesisRequest, Voice
from synthesis.services import bundles, requests

#: Theirs.
_CATEGORIES = ("premade", "cloned", "generated", "professional")
#: Theirs: 100, and at most 1,000.
_PAGE, _PAGE_MAX = 100, 1000


class SubscriptionSerializer(serializers.Serializer):
    """The quota as their clients read it; what has to do with money is always the same here."""

    tier = serializers.CharField(help_text="Name of the team's plan.")
    character_count = serializers.IntegerField(help_text="Used and reserved this month.")
    character_limit = serializers.IntegerField()
    max_credit_limit_extension = serializers.IntegerField()
    can_extend_character_limit = serializers.BooleanField()
    allowed_to_extend_character_limit = serializers.BooleanField()
    next_character_count_reset_unix = serializers.IntegerField()
    voice_slots_used = serializers.IntegerField()
    voice_limit = serializers.IntegerField()
    voice_add_edit_counter = serializers.IntegerField()
    professional_voice_slots_used = serializers.IntegerField()
    professional_voice_slots_used_in_workspace = serializers.IntegerField()
    professional_voice_limit = serializers.IntegerField()
    can_extend_voice_limit = serializers.BooleanField()
    can_use_instant_voice_cloning = serializers.BooleanField()
    can_use_professional_voice_cloning = serializers.BooleanField()
    status = serializers.CharField()
    character_refresh_period = serializers.CharField()
    current_overage = serializers.DictField()
    open_invoices = serializers.ListField()
    has_open_invoices = serializers.BooleanField()


class SubscriptionView(ElevenLabsView):
    """The quota."""

    required_scopes = {"GET": permissions.USAGE_READ}

    @extend_schema(
        summary="Show the quota as ElevenLabs does",
        tags=["ElevenLabs"],
        responses={200: SubscriptionSerializer, **elevenlabs_errors()},
    )
    def get(self, request: Request) -> Response:
        """The tightest limits of team, person and key."""
        standing = limits.standing(self.actor)
        stored = Voice.objects.filter(team=self.actor.team, deleted_at=None).count()
        return Response(
            {
                "tier": self.actor.team.plan.name,
                "character_count": standing.used + standing.reserved,
                "character_limit": standing.limit,
                "max_credit_limit_extension": 0,
                "can_extend_character_limit": False,
                "allowed_to_extend_character_limit": False,
                "next_character_count_reset_unix": int(standing.period.end.timestamp()),
                "voice_slots_used": stored,
                "voice_limit": limits.tightest(self.actor).stored_voices,
                "voice_add_edit_counter": 0,
                "professional_voice_slots_used": 0,
                "professional_voice_slots_used_in_workspace": 0,
                "professional_voice_limit": 0,
                "can_extend_voice_limit": False,
                "can_use_instant_voice_cloning": capabilities(settings.CHORUS_ENGINE).cloning != "none",
                "can_use_professional_voice_cloning": False,
                "status": "active",
                "character_refresh_period": "monthly_period",
                "current_overage": {"amount": "0", "currency": "usd"},
                "open_invoices": [],
                "has_open_invoices": False,
            }
        )


class VoicesPageSerializer(serializers.Serializer):
    """One page, the newest first."""

    voices = objects.VoiceSerializer(many=True)
    has_more = serializers.BooleanField()
    total_count = serializers.IntegerField()
    next_page_token = serializers.CharField(allow_null=True)


class VoicesFilterSerializer(serializers.Serializer):
    """Their query; how to sort is left alone."""

    page_size = serializers.IntegerField(required=False, default=10, min_value=1, max_value=100)
    next_page_token = serializers.UUIDField(required=False)
    search = serializers.CharField(required=False, help_text="As of `GET /v1/voices`.")
    category = serializers.ChoiceField(
        _CATEGORIES, required=False, help_text="There are only `premade` and `cloned` ones here."
    )


class ElevenLabsVoicesView(ElevenLabsView):
    """Their second list of voices."""

    required_scopes = {"GET": permissions.VOICES_READ}

    @extend_schema(
        summary="Search voices as ElevenLabs does",
        tags=["ElevenLabs"],
        parameters=[VoicesFilterSerializer],
        responses={200: VoicesPageSerializer, **elevenlabs_errors(422)},
    )
    def get(self, request: Request) -> Response:
        """The presets of the engine and the team's own voices, a page at a time."""
        query = self.query(VoicesFilterSerializer)
        rows = filtered(self.actor, search=query.get("search", "")).order_by("-id")
        if kind := query.get("category"):
            kinds = {"premade": Voice.Kind.PRESET, "cloned": Voice.Kind.CLONED}
            rows = rows.filter(kind=kinds[kind]) if kind in kinds else rows.none()
        total = rows.count()
        if after := query.get("next_page_token"):
            rows = rows.filter(id__lt=after)
        found = list(rows[: query["page_size"] + 1])
        shown = found[: query["page_size"]]
        more = len(found) > len(shown)
        return Response(
            {
                "voices": [objects.voice(row, request) for row in shown],
                "has_more": more,
                "total_count": total,
                "next_page_token": str(shown[-1].id) if more else None,
            }
        )


class HistoryItemSerializer(serializers.Serializer):
    """A request that has succeeded."""

    history_item_id = serializers.CharField()
    request_id = serializers.CharField()
    voice_id = serializers.CharField()
    voice_name = serializers.CharField()
    voice_category = serializers.CharField()
    model_id = serializers.CharField()
    text = serializers.CharField()
    date_unix = serializers.IntegerField()
    character_count_change_from = serializers.IntegerField()
    character_count_change_to = serializers.IntegerField()
    content_type = serializers.CharField()
    state = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # the API's name, also REST framework's
    settings = serializers.DictField()


class HistorySerializer(serializers.Serializer):
    """One page, the newest first."""

    history = HistoryItemSerializer(many=True)
    last_history_item_id = serializers.CharField(allow_null=True)
    has_more = serializers.BooleanField()


class HistoryFilterSerializer(serializers.Serializer):
    """Their query; `search` is in the text."""

    page_size = serializers.IntegerField(required=False, default=_PAGE, min_value=1, max_value=_PAGE_MAX)
    start_after_history_item_id = serializers.UUIDField(required=False)
    voice_id = serializers.UUIDField(required=False)
    search = serializers.CharField(required=False)


def _item(row: SynthesisRequest) -> dict[str, Any]:
    return {
        "history_item_id": str(row.id),
        "request_id": str(row.id),
        "voice_id": str(row.voice_id),
        "voice_name": row.voice.name,
        "voice_category": category(row.voice),
        "model_id": row.engine,
        "text": row.text,
        "date_unix": int(row.created_at.timestamp()),
        "character_count_change_from": 0,
        "character_count_change_to": row.characters,
        "content_type": row.output.content_type if hasattr(row, "output") else "",
        "state": "created",
        "source": "TTS",
        "settings": {"speed": row.speed},
    }


class HistoryView(ElevenLabsView):
    """What was spoken."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}

    @extend_schema(
        summary="List the history as ElevenLabs does",
        tags=["ElevenLabs"],
        parameters=[HistoryFilterSerializer],
        responses={200: HistorySerializer, **elevenlabs_errors(422)},
    )
    def get(self, request: Request) -> Response:
        """The team's requests that have succeeded, the newest first."""
        query = self.query(HistoryFilterSerializer)
        rows = requests.visible(self.actor).filter(status=Status.SUCCEEDED)
        if after := query.get("start_after_history_item_id"):
            rows = rows.filter(id__lt=after)
        if voice := query.get("voice_id"):
            rows = rows.filter(voice=voice)
        if search := query.get("search"):
            rows = rows.filter(text__icontains=search)
        found = list(rows[: query["page_size"] + 1])
        items = [_item(row) for row in found[: query["page_size"]]]
        return Response(
            {
                "history": items,
                "last_history_item_id": items[-1]["history_item_id"] if items else None,
                "has_more": len(found) > len(items),
            }
        )


class HistoryItemView(ElevenLabsView):
    """One of them."""

    required_scopes = {"GET": permissions.SYNTHESES_READ, "DELETE": permissions.SYNTHESES_WRITE}

    @extend_schema(
        summary="Show an item of the history as ElevenLabs does",
        tags=["ElevenLabs"],
        responses={200: HistoryItemSerializer, **elevenlabs_errors(404)},
    )
    def get(self, request: Request, history_item_id: str) -> Response:
        """One that has succeeded."""
        return Response(_item(_spoken(self, history_item_id)))

    @extend_schema(
        summary="Delete an item of the history as ElevenLabs does",
        tags=["ElevenLabs"],
        responses={
            200: {"type": "object", "properties": {"status": {"type": "string"}}},
            **elevenlabs_errors(404),
        },
    )
    def delete(self, request: Request, history_item_id: str) -> Response:
        """Text and sound are removed for good."""
        requests.delete(actor=self.actor, request_id=parse_id(history_item_id, RequestNotFound))
        return Response({"status": "ok"})


def _spoken(view: ElevenLabsView, history_item_id: str) -> SynthesisRequest:
    """RequestNotFound for one that has not succeeded, which their history does not know."""
    row = requests.find(view.actor, parse_id(history_item_id, RequestNotFound))
    if row.status != Status.SUCCEEDED:
        raise RequestNotFound
    return row


class HistoryAudioView(ElevenLabsView):
    """Its sound."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}

    @extend_schema(
        summary="Fetch the sound of an item of the history as ElevenLabs does",
        tags=["ElevenLabs"],
        parameters=[
            OpenApiParameter(name, str, OpenApiParameter.HEADER)
            for name in ("Range", "If-Range", "If-None-Match")
        ],
        responses={
            (200, "audio/*"): OpenApiTypes.BINARY,
            (206, "audio/*"): OpenApiTypes.BINARY,
            302: None,
            304: None,
            **elevenlabs_errors(404, 410, 416),
        },
    )
    def get(self, request: Request, history_item_id: str) -> HttpResponseBase:
        """Whole or in ranges."""
        row = _spoken(self, history_item_id)
        output = getattr(row, "output", None)
        if output is None:
            raise OutputExpired
        return delivery.serve(
            request._request,
            key=output.key,
            size=output.bytes,
            content_type=output.content_type,
            filename=bundles.own_name(row),
            etag=output.sha256,
        )
