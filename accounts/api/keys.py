"""`/v1/keys`: API keys, by a key that has the scope."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, KnownFields, Text, Whole
from accounts.api.pagination import page
from accounts.api.rendering import render
from accounts.api.schema import BODY, CURSOR, LIMIT, PAGE, errors, page_of
from accounts.models import ApiKey
from accounts.services import keys

#: PostgreSQL's bigint.
_MOST_CHARACTERS = 2**63 - 1
#: And its integer.
_MOST = 2**31 - 1


class KeySerializer(serializers.Serializer):
    """A key, without its secret."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    hint = serializers.CharField(help_text="How the secret begins.")
    owner = serializers.EmailField(help_text="For whom it acts.")
    scopes = serializers.ListField(child=serializers.CharField())
    allowed_ips = serializers.ListField(
        child=serializers.CharField(), help_text="Addresses and networks. Empty: from everywhere."
    )
    characters_per_month = serializers.IntegerField(allow_null=True, help_text="Its own cap.")
    requests_per_minute = serializers.IntegerField(allow_null=True, help_text="Its own cap.")
    concurrent_requests = serializers.IntegerField(
        allow_null=True, help_text="Its own cap on requests that are spoken at once."
    )
    status = serializers.ChoiceField(["active", "expired", "revoked"])
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewKeySerializer(KeySerializer):
    """A key with its secret, which is shown this once."""

    secret = serializers.CharField()


class KeyCreateSerializer(KnownFields, InputSerializer):
    """What the key may do. Never more than the key that creates it."""

    name = Text()
    scopes = serializers.ListField(
        child=Text(),
        required=False,
        max_length=50,
        help_text=f"Of {', '.join(permissions.SCOPES)}. By default everything about speech.",
    )
    expires_at = serializers.DateTimeField(required=False)
    characters_per_month = Whole(required=False, min_value=1, max_value=_MOST_CHARACTERS)
    requests_per_minute = Whole(required=False, min_value=1, max_value=_MOST)
    concurrent_requests = Whole(
        required=False, min_value=1, max_value=_MOST, help_text="Spoken at once; others wait."
    )
    allowed_ips = serializers.ListField(
        child=Text(),
        required=False,
        default=list,
        max_length=100,
        help_text="Addresses (`203.0.113.7`) and networks (`10.0.0.0/8`, `2001:db8::/32`).",
    )


class KeyUpdateSerializer(KnownFields):
    """What is given is changed; null takes a cap or the expiry away."""

    name = Text(required=False)
    scopes = serializers.ListField(
        child=Text(),
        required=False,
        max_length=50,
        help_text="All that it may do from now on. Nothing can be added that the key that changes it may not do.",
    )
    expires_at = serializers.DateTimeField(required=False, allow_null=True)
    characters_per_month = Whole(
        required=False, allow_null=True, min_value=1, max_value=_MOST_CHARACTERS, help_text="Null: no cap."
    )
    requests_per_minute = Whole(
        required=False, allow_null=True, min_value=1, max_value=_MOST, help_text="Null: no cap."
    )
    concurrent_requests = Whole(
        required=False, allow_null=True, min_value=1, max_value=_MOST, help_text="Null: no cap."
    )
    allowed_ips = serializers.ListField(
        child=Text(), required=False, max_length=100, help_text="Empty: from everywhere."
    )


def show(key: ApiKey) -> dict[str, Any]:
    """`key` with `user` selected."""
    status = "revoked" if key.revoked_at else "active" if key.is_usable else "expired"
    return render(
        KeySerializer,
        {
            "id": key.id,
            "name": key.name,
            "hint": key.hint,
            "owner": key.user.email,
            "scopes": key.scopes,
            "allowed_ips": key.allowed_ips,
            "characters_per_month": key.characters_per_month,
            "requests_per_minute": key.requests_per_minute,
            "concurrent_requests": key.concurrent_requests,
            "status": status,
            "created_at": key.created_at,
            "expires_at": key.expires_at,
            "last_used_at": key.last_used_at,
            "revoked_at": key.revoked_at,
        },
    )


class KeysView(ApiView):
    """List and create."""

    required_scopes = {"GET": permissions.KEYS_WRITE, "POST": permissions.KEYS_WRITE}
    query_names = {"GET": PAGE}
    refuses_idempotency_key = True

    @extend_schema(
        summary="List keys",
        tags=["Keys"],
        parameters=[LIMIT, CURSOR],
        responses={200: page_of(KeySerializer), **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """Your own; with the scope `members:write` the whole team's."""
        return Response(page(request, keys.visible(self.actor).select_related("user"), show))

    @extend_schema(
        summary="Create a key",
        tags=["Keys"],
        request=KeyCreateSerializer,
        responses={201: NewKeySerializer, **errors(*BODY, 429)},
    )
    def post(self, request: Request) -> Response:
        """The answer holds the secret, which is never to be had again; so an `Idempotency-Key` is refused."""
        self.hit()
        values = self.read(KeyCreateSerializer)
        key, secret = keys.create(actor=self.actor, **values)
        location = request.build_absolute_uri(f"/v1/keys/{key.id}")
        return Response({**show(key), "secret": secret}, status=201, headers={"Location": location})


class KeyView(ApiView):
    """One key."""

    required_scopes = {
        "GET": permissions.KEYS_WRITE,
        "PATCH": permissions.KEYS_WRITE,
        "DELETE": permissions.KEYS_WRITE,
    }

    @extend_schema(summary="Show a key", tags=["Keys"], responses={200: KeySerializer, **errors(404)})
    def get(self, request: Request, key_id: str) -> Response:
        """Without its secret."""
        return Response(show(keys.find(self.actor, parse_id(key_id))))

    @extend_schema(
        summary="Change a key",
        tags=["Keys"],
        request=KeyUpdateSerializer,
        responses={200: KeySerializer, **errors(*BODY, 404, 409, 429)},
    )
    def patch(self, request: Request, key_id: str) -> Response:
        """It holds from the key's next call on. A key that is bound (a cap, an expiry, addresses) makes no key freer
        than itself, itself included.
        """
        self.hit()
        identifier = parse_id(key_id)
        return Response(
            show(keys.update(actor=self.actor, key_id=identifier, **self.read(KeyUpdateSerializer)))
        )

    @extend_schema(summary="Revoke a key", tags=["Keys"], responses={204: None, **errors(404)})
    def delete(self, request: Request, key_id: str) -> Response:
        """At once, also this very key."""
        keys.revoke(actor=self.actor, key_id=parse_id(key_id))
        return Response(status=204)
