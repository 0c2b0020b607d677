"""`/v1/instructions`: how a voice can be told to speak."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView
from accounts.api.schema import errors
from synthesis import instructions
from synthesis.engines import capabilities


class LabelsSerializer(serializers.Serializer):
    """What people call it."""

    en = serializers.CharField()
    zh = serializers.CharField()


class InstructionSerializer(serializers.Serializer):
    """One way to speak."""

    key = serializers.CharField(help_text="What `instruction` of a request takes.")
    group = serializers.ChoiceField(list(instructions.GROUPS))
    label = LabelsSerializer()  # type: ignore[assignment]  # the API's name, also REST framework's


class TagSerializer(serializers.Serializer):
    """Something that may stand in the text."""

    tag = serializers.CharField(help_text="As it is written; of a pair, what begins it.")
    end = serializers.CharField(allow_null=True, help_text="What ends it, of a pair.")
    meaning = serializers.CharField(help_text="In the language of `Accept-Language`.")


class InstructionsSerializer(serializers.Serializer):
    """What the engine of this installation can be told."""

    engine = serializers.CharField()
    instructions_supported = serializers.BooleanField(
        help_text="Whether requests may carry one. Where they may, it is one of these keys or free text."
    )
    tags_supported = serializers.BooleanField(help_text="Whether a text may have tags in it.")
    conversion_supported = serializers.BooleanField(help_text="Whether `/v1/conversions` works.")
    instructions = InstructionSerializer(many=True)
    tags = TagSerializer(many=True)


class InstructionsView(ApiView):
    """The catalogue."""

    required_scopes = {"GET": permissions.VOICES_READ}

    @extend_schema(
        summary="List instructions and tags",
        tags=["Syntheses"],
        responses={200: InstructionsSerializer, **errors()},
    )
    def get(self, request: Request) -> Response:
        """Dialects, emotions, pace, volume and roles that the model is known to follow, with labels in English and
        Chinese; and the tags that it understands. Empty where the engine follows none.
        """
        engine = capabilities(settings.CHORUS_ENGINE)
        listed: list[dict[str, Any]] = [
            {"key": entry.key, "group": entry.group, "label": {"en": entry.english, "zh": entry.chinese}}
            for entry in (instructions.CATALOGUE if engine.instructions else ())
        ]
        sounds: list[dict[str, Any]] = [
            {"tag": tag, "end": None, "meaning": str(meaning)}
            for tag, meaning in (instructions.SOUNDS.items() if engine.inline_tags else ())
        ]
        pairs: list[dict[str, Any]] = [
            {"tag": f"<{name}>", "end": f"</{name}>", "meaning": str(meaning)}
            for name, meaning in (instructions.SPANS.items() if engine.inline_tags else ())
        ]
        return Response(
            InstructionsSerializer(
                {
                    "engine": engine.name,
                    "instructions_supported": engine.instructions,
                    "tags_supported": engine.inline_tags,
                    "conversion_supported": engine.conversion,
                    "instructions": listed,
                    "tags": sounds + pairs,
                }
            ).data
        )
