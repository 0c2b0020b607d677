"""Webhooks of a team: made, changed, tried, removed. What they are told is in `services.deliveries`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput
from accounts.models import Team
from accounts.services import audit
from synthesis.errors import DeliveryNotFound, WebhookNotFound
from synthesis.models import Delivery, Webhook
from synthesis.services import callbacks, deliveries

#: Of one team.
MOST = 20


def create(*, actor: Actor, url: str, events: Sequence[str]) -> Webhook:
    """A webhook with a new secret. Raises InvalidInput (an event or address that cannot be) and Conflict (too many)."""
    actor.require(permissions.WEBHOOKS_WRITE)
    chosen = _checked_events(events)
    callbacks.check_address(url, param="url")
    with transaction.atomic():
        # Locks the team: two cannot both take the last place.
        Team.objects.select_for_update(of=("self",), no_key=True).get(id=actor.team.id)
        if Webhook.objects.filter(team=actor.team).count() >= MOST:
            raise Conflict(
                _("A team has at most %(max)d webhooks. Delete one first.") % {"max": MOST},
                code="webhook_limit_reached",
            )
        webhook = Webhook.objects.create(
            team=actor.team,
            created_by=actor.user,
            url=url,
            events=chosen,
            secret=f"whsec_{secrets.token_hex(24)}",
        )
        audit.record("webhook.created", actor=actor, target=webhook, url=url, events=chosen)
    return webhook


def update(
    *,
    actor: Actor,
    webhook_id: UUID,
    url: str | None = None,
    events: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> Webhook:
    """Change what is given; `enabled` also brings back one that was disabled."""
    actor.require(permissions.WEBHOOKS_WRITE)
    chosen = None if events is None else _checked_events(events)
    if url is not None:
        callbacks.check_address(url, param="url")
    with transaction.atomic():
        webhook = _locked(actor, webhook_id)
        webhook.url = url or webhook.url
        webhook.events = chosen or webhook.events
        if enabled is not None:
            webhook.disabled_at = None if enabled else webhook.disabled_at or timezone.now()
            webhook.failing_since = None
        webhook.save(update_fields=["url", "events", "disabled_at", "failing_since"])
        audit.record(
            "webhook.updated",
            actor=actor,
            target=webhook,
            url=webhook.url,
            events=webhook.events,
            enabled=webhook.disabled_at is None,
        )
    return webhook


def delete(*, actor: Actor, webhook_id: UUID) -> None:
    """Remove it with its log; what waits is not delivered."""
    actor.require(permissions.WEBHOOKS_WRITE)
    with transaction.atomic():
        webhook = _locked(actor, webhook_id)
        audit.record("webhook.deleted", actor=actor, target=webhook, url=webhook.url)
        webhook.delete()


def visible(actor: Actor) -> QuerySet[Webhook]:
    """The team's, the newest first."""
    actor.require(permissions.WEBHOOKS_WRITE)
    return Webhook.objects.filter(team=actor.team).order_by("-id")


def find(actor: Actor, webhook_id: UUID) -> Webhook:
    """One of them; WebhookNotFound."""
    found = visible(actor).filter(id=webhook_id).first()
    if found is None:
        raise WebhookNotFound
    return found


def test(*, actor: Actor, webhook_id: UUID) -> Delivery:
    """Post a `ping` now and wait for what comes back; also to one that is disabled."""
    webhook = find(actor, webhook_id)
    delivery = deliveries.ping(webhook)
    deliveries.attempt(delivery)
    return delivery


def redeliver(*, actor: Actor, webhook_id: UUID, delivery_id: UUID) -> Delivery:
    """Deliver an event once more, as a delivery of its own."""
    webhook = find(actor, webhook_id)
    old = webhook.deliveries.filter(id=delivery_id).first()
    if old is None:
        raise DeliveryNotFound
    if webhook.disabled_at is not None:
        raise Conflict(_("This webhook is disabled. Enable it first."), code="webhook_disabled")
    return Delivery.objects.create(webhook=webhook, event_id=old.event_id, event=old.event, body=old.body)


def _locked(actor: Actor, webhook_id: UUID) -> Webhook:
    found = Webhook.objects.select_for_update().filter(team=actor.team, id=webhook_id).first()
    if found is None:
        raise WebhookNotFound
    return found


def _checked_events(events: Sequence[str]) -> list[str]:
    for event in events:
        if event not in deliveries.EVENTS:
            raise InvalidInput(
                _("“%(event)s” is not an event. There are: %(all)s.")
                % {"event": event, "all": ", ".join(deliveries.EVENTS)},
                code="event_unknown",
                param="events",
            )
    if not events:
        raise InvalidInput(_("Choose at least one event."), code="event_missing", param="events")
    return list(dict.fromkeys(events))
