"""`/v1/audit`: who did what."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView
from accounts.api.pagination import page
from accounts.api.rendering import render
from accounts.api.schema import CURSOR, LIMIT, PAGE, errors, page_of
from accounts.models import AuditEntry


class AuditEntrySerializer(serializers.Serializer):
    """One action. Never changed, never deleted."""

    id = serializers.UUIDField()
    action = serializers.CharField()
    actor = serializers.CharField(help_text="E-mail address, or the command that did it.")
    actor_id = serializers.UUIDField(allow_null=True)
    api_key_id = serializers.UUIDField(allow_null=True, help_text="Null when it was done in a session.")
    target_type = serializers.CharField()
    target_id = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]  # the API's name, also REST framework's
    created_at = serializers.DateTimeField()


class AuditFilterSerializer(serializers.Serializer):
    """Which actions to list."""

    action = serializers.CharField(required=False, max_length=64, help_text="Such as `voice.created`.")
    actor = serializers.CharField(required=False, max_length=254, help_text="An e-mail address.")
    target_id = serializers.CharField(required=False, max_length=64)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False, help_text="Not included.")


def _show(entry: AuditEntry) -> dict[str, Any]:
    return render(
        AuditEntrySerializer,
        {
            "id": entry.id,
            "action": entry.action,
            "actor": entry.actor_name,
            "actor_id": entry.actor_id,
            "api_key_id": entry.api_key_id,
            "target_type": entry.target_type,
            "target_id": entry.target_id,
            "data": entry.data,
            "created_at": entry.created_at,
        },
    )


class AuditView(ApiView):
    """List."""

    required_scopes = {"GET": permissions.AUDIT_READ}
    query_names = {"GET": (*AuditFilterSerializer().fields, *PAGE)}

    @extend_schema(
        summary="List what was done",
        tags=["Audit"],
        parameters=[AuditFilterSerializer, LIMIT, CURSOR],
        responses={200: page_of(AuditEntrySerializer), **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The team's actions, the newest first."""
        query = self.query(AuditFilterSerializer)
        entries = AuditEntry.objects.filter(team_id=self.actor.team.id)
        conditions = {
            "action": query.get("action"),
            "actor_name__iexact": query.get("actor"),
            "target_id": query.get("target_id"),
            "created_at__gte": query.get("since"),
            "created_at__lt": query.get("until"),
        }
        entries = entries.filter(**{name: value for name, value in conditions.items() if value is not None})
        return Response(page(request, entries, _show, by_time=True))
