"""Fields of several routes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api.fields import Text


class ServerSentEventSerializer(serializers.Serializer):
    """One event of a stream (`text/event-stream`), of which there are many."""

    event = serializers.CharField(required=False)
    data = serializers.CharField(help_text="JSON.")  # type: ignore[assignment]  # the field's own name


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        ]
    }
)
class VoiceField(Text):
    """A voice by id or name; OpenAI's clients also send `{"id": …}`."""

    def to_internal_value(self, data: Any) -> str:
        """The id or name."""
        if isinstance(data, dict) and isinstance(data.get("id"), str):
            data = data["id"]
        return super().to_internal_value(data)
