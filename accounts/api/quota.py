"""`/v1/quota`: what may be used, and what is left of it."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView
from accounts.api.rendering import render
from accounts.api.schema import ERRORS
from accounts.services import limits


class QuotaSerializer(serializers.Serializer):
    """Flat whole numbers. Characters are those of the current month."""

    plan = serializers.CharField(help_text="Name of the team's plan.")
    characters_limit = serializers.IntegerField(
        help_text="Characters a month: the tightest of the team's, your own and this key's limit."
    )
    characters_used = serializers.IntegerField()
    characters_reserved = serializers.IntegerField(help_text="By requests that have not ended.")
    characters_remaining = serializers.IntegerField()
    characters_per_request = serializers.IntegerField()
    concurrent_limit = serializers.IntegerField(help_text="Requests spoken at once.")
    queued_limit = serializers.IntegerField(help_text="Requests that have not ended.")
    requests_per_minute = serializers.IntegerField()
    voices_limit = serializers.IntegerField()
    period_start = serializers.DateTimeField(help_text="First moment of the month, in the team's time zone.")
    period_end = serializers.DateTimeField(help_text="When the characters are counted from zero again.")


class QuotaView(ApiView):
    """The limits that hold for this key, and this month's use."""

    required_scopes = {"GET": permissions.USAGE_READ}

    @extend_schema(summary="Show the quota", tags=["Usage"], responses={200: QuotaSerializer, **ERRORS})
    def get(self, request: Request) -> Response:
        """The tightest limits of team, person and key."""
        standing = limits.standing(self.actor)
        tightest = limits.tightest(self.actor)
        return Response(
            render(
                QuotaSerializer,
                {
                    "plan": self.actor.team.plan.name,
                    "characters_limit": standing.limit,
                    "characters_used": standing.used,
                    "characters_reserved": standing.reserved,
                    "characters_remaining": standing.remaining,
                    "characters_per_request": tightest.characters_per_request,
                    "concurrent_limit": tightest.concurrent_requests,
                    "queued_limit": tightest.queued_requests,
                    "requests_per_minute": tightest.requests_per_minute,
                    "voices_limit": tightest.stored_voices,
                    "period_start": standing.period.start,
                    "period_end": standing.period.end,
                },
            )
        )
