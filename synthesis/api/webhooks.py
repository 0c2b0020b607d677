"""`/v1/webhooks`: who is told when something happens, and how that went."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.api.base import ApiView, parse_id
from accounts.api.fields import InputSerializer, KnownFields, Text
from accounts.api.pagination import page
from accounts.api.rendering import render
from accounts.api.schema import BODY, CURSOR, LIMIT, PAGE, errors, page_of
from synthesis.errors import BatchNotFound, DeliveryNotFound, RequestNotFound, WebhookNotFound
from synthesis.models import Delivery, OnItsWay, SigningSecret, Webhook
from synthesis.services import batches, callbacks, deliveries, requests, webhooks

_SCOPE = permissions.WEBHOOKS_WRITE


class WebhookSerializer(serializers.Serializer):
    """A webhook, without its secret."""

    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(deliveries.EVENTS))
    enabled = serializers.BooleanField(
        help_text="False also when it was disabled after a day without success."
    )
    failing_since = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class NewWebhookSerializer(WebhookSerializer):
    """A webhook with its secret, which is shown this once."""

    secret = serializers.CharField(
        help_text="Signs each delivery: `Chorus-Signature: t=<seconds>,v1=<HMAC-SHA256 of '<t>.<body>', in hex>`. "
        "Refuse what is older than five minutes."
    )


class WebhookCreateSerializer(KnownFields, InputSerializer):
    """Where to, and what."""

    url = Text(
        max_length=2000, help_text="http or https, never an internal address; redirects are not followed."
    )
    events = serializers.ListField(
        child=Text(), max_length=20, help_text=f"Of {', '.join(deliveries.EVENTS)}."
    )


class WebhookUpdateSerializer(KnownFields, InputSerializer):
    """What is given is changed."""

    url = Text(required=False, max_length=2000)
    events = serializers.ListField(child=Text(), required=False, max_length=20)
    enabled = serializers.BooleanField(required=False)


class DeliverySerializer(serializers.Serializer):
    """One event on its way."""

    id = serializers.UUIDField()
    event_id = serializers.UUIDField(help_text="The same when an event is delivered again.")
    event = serializers.CharField()
    state = serializers.ChoiceField(Delivery.State.values)
    attempts = serializers.IntegerField()
    response_status = serializers.IntegerField(allow_null=True, help_text="Of the last attempt.")
    error = serializers.CharField(allow_blank=True, help_text="When nobody answered.")
    created_at = serializers.DateTimeField()
    attempted_at = serializers.DateTimeField(allow_null=True)
    next_attempt_at = serializers.DateTimeField(allow_null=True)
    body = serializers.DictField(
        help_text="What was sent: `id`, `type`, `created_at`, `data`; to the `webhook` of a request, the object itself."
    )


DeliveryPageSerializer = page_of(DeliverySerializer)


def _show(webhook: Webhook) -> dict[str, Any]:
    return render(
        WebhookSerializer,
        {
            "id": webhook.id,
            "url": webhook.url,
            "events": webhook.events,
            "enabled": webhook.disabled_at is None,
            "failing_since": webhook.failing_since,
            "created_at": webhook.created_at,
        },
    )


def _show_delivery(delivery: OnItsWay) -> dict[str, Any]:
    return render(DeliverySerializer, delivery)


class WebhooksView(ApiView):
    """List and create."""

    required_scopes = {"GET": _SCOPE, "POST": _SCOPE}
    query_names = {"GET": PAGE}
    refuses_idempotency_key = True

    @extend_schema(
        summary="List webhooks",
        tags=["Webhooks"],
        parameters=[LIMIT, CURSOR],
        responses={200: page_of(WebhookSerializer), **errors(400)},
    )
    def get(self, request: Request) -> Response:
        """The team's."""
        return Response(page(request, webhooks.visible(self.actor), _show))

    @extend_schema(
        summary="Create a webhook",
        tags=["Webhooks"],
        request=WebhookCreateSerializer,
        responses={201: NewWebhookSerializer, **errors(*BODY, 409, 429)},
    )
    def post(self, request: Request) -> Response:
        """The answer holds the secret, which is not shown again; so an `Idempotency-Key` is refused."""
        self.hit()
        values = self.read(WebhookCreateSerializer)
        created = webhooks.create(actor=self.actor, **values)
        location = request.build_absolute_uri(f"/v1/webhooks/{created.id}")
        return Response(
            {**_show(created), "secret": created.secret}, status=201, headers={"Location": location}
        )


class WebhookView(ApiView):
    """One webhook."""

    required_scopes = {"GET": _SCOPE, "PATCH": _SCOPE, "DELETE": _SCOPE}

    @extend_schema(
        summary="Show a webhook", tags=["Webhooks"], responses={200: WebhookSerializer, **errors(404)}
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        """Without its secret."""
        return Response(_show(webhooks.find(self.actor, parse_id(webhook_id, WebhookNotFound))))

    @extend_schema(
        summary="Change a webhook",
        tags=["Webhooks"],
        request=WebhookUpdateSerializer,
        responses={200: WebhookSerializer, **errors(*BODY, 404)},
    )
    def patch(self, request: Request, webhook_id: str) -> Response:
        """`enabled: true` brings back one that was disabled."""
        identifier = parse_id(webhook_id, WebhookNotFound)
        values = self.read(WebhookUpdateSerializer)
        return Response(_show(webhooks.update(actor=self.actor, webhook_id=identifier, **values)))

    @extend_schema(summary="Delete a webhook", tags=["Webhooks"], responses={204: None, **errors(404)})
    def delete(self, request: Request, webhook_id: str) -> Response:
        """With its log; what waits is not delivered."""
        webhooks.delete(actor=self.actor, webhook_id=parse_id(webhook_id, WebhookNotFound))
        return Response(status=204)


class WebhookTestView(ApiView):
    """Try it."""

    required_scopes = {"POST": _SCOPE}
    refuses_idempotency_key = True

    @extend_schema(
        summary="Test a webhook",
        tags=["Webhooks"],
        request=None,
        responses={200: DeliverySerializer, **errors(400, 404, 429)},
    )
    def post(self, request: Request, webhook_id: str) -> Response:
        """Post a `ping` now; the answer tells what came back, after at most ten seconds."""
        self.hit()
        identifier = parse_id(webhook_id, WebhookNotFound)
        return Response(_show_delivery(webhooks.test(actor=self.actor, webhook_id=identifier)))


class DeliveriesView(ApiView):
    """The log."""

    required_scopes = {"GET": _SCOPE}
    query_names = {"GET": PAGE}

    @extend_schema(
        summary="List deliveries",
        tags=["Webhooks"],
        parameters=[LIMIT, CURSOR],
        responses={200: DeliveryPageSerializer, **errors(400, 404)},
    )
    def get(self, request: Request, webhook_id: str) -> Response:
        """Of the last thirty days, the newest first."""
        webhook = webhooks.find(self.actor, parse_id(webhook_id, WebhookNotFound))
        return Response(page(request, webhook.deliveries.all(), _show_delivery))


class RedeliverView(ApiView):
    """Once more."""

    required_scopes = {"POST": _SCOPE}
    refuses_idempotency_key = True

    @extend_schema(
        summary="Deliver again",
        tags=["Webhooks"],
        request=None,
        responses={202: DeliverySerializer, **errors(400, 404, 409, 429)},
    )
    def post(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """A new delivery of the same event, which is sent within seconds."""
        self.hit()
        delivery = webhooks.redeliver(
            actor=self.actor,
            webhook_id=parse_id(webhook_id, WebhookNotFound),
            delivery_id=parse_id(delivery_id, DeliveryNotFound),
        )
        return Response(_show_delivery(delivery), status=202)


class SigningSecretSerializer(serializers.Serializer):
    """What signs the deliveries to addresses that requests and batches name for themselves."""

    key = serializers.CharField(
        help_text="`Chorus-Signature: t=<seconds>,v1=<HMAC-SHA256 of '<t>.<body>', in hex>`, as for webhooks."
    )
    rotated_at = serializers.DateTimeField(allow_null=True)
    previous_until = serializers.DateTimeField(
        allow_null=True, help_text="Until then each delivery has a second `v1`, by the secret before."
    )


def _secret(kept: SigningSecret) -> Response:
    body = {
        "key": kept.secret,
        "rotated_at": kept.rotated_at,
        "previous_until": kept.previous_until,
    }
    # Unlike other answers, this one is kept nowhere.
    return Response(render(SigningSecretSerializer, body), headers={"Cache-Control": "no-store"})


class SigningSecretView(ApiView):
    """Of the team, for `webhook` of a submission."""

    required_scopes = {"GET": _SCOPE, "POST": _SCOPE}
    refuses_idempotency_key = True

    @extend_schema(
        summary="Show the signing secret",
        tags=["Webhooks"],
        responses={200: SigningSecretSerializer, **errors()},
    )
    def get(self, request: Request) -> Response:
        """It signs what is sent to the `webhook` of a synthesis request or a batch; other webhooks have their own."""
        return _secret(callbacks.secret_of(self.actor))

    @extend_schema(
        summary="Rotate the signing secret",
        tags=["Webhooks"],
        request=None,
        responses={200: SigningSecretSerializer, **errors(400, 429)},
    )
    def post(self, request: Request) -> Response:
        """A new one, at once. For a day the one before signs as well, so that receivers can change over."""
        self.hit()
        return _secret(callbacks.rotate(self.actor))


class SynthesisDeliveriesView(ApiView):
    """What the request's own `webhook` was told."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}
    query_names = {"GET": PAGE}

    @extend_schema(
        summary="List deliveries of a synthesis request",
        tags=["Webhooks"],
        parameters=[LIMIT, CURSOR],
        responses={200: DeliveryPageSerializer, **errors(400, 404)},
    )
    def get(self, request: Request, synthesis_id: str) -> Response:
        """To the `webhook` that came with it, of the last thirty days, the newest first."""
        row = requests.find(self.actor, parse_id(synthesis_id, RequestNotFound))
        return Response(page(request, callbacks.log(self.actor, row.id), _show_delivery))


class BatchDeliveriesView(ApiView):
    """What the batch's own `webhook` was told."""

    required_scopes = {"GET": permissions.SYNTHESES_READ}
    query_names = {"GET": PAGE}

    @extend_schema(
        summary="List deliveries of a batch",
        tags=["Webhooks"],
        parameters=[LIMIT, CURSOR],
        responses={200: DeliveryPageSerializer, **errors(400, 404)},
    )
    def get(self, request: Request, batch_id: str) -> Response:
        """To the `webhook` that came with it, of the last thirty days, the newest first."""
        batch = batches.find(self.actor, parse_id(batch_id, BatchNotFound))
        return Response(page(request, callbacks.log(self.actor, batch.id), _show_delivery))
