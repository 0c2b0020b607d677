"""What webhooks are told: written with what happened, sent by the sweep, tried again for a day.

Each delivery is taken before it is sent (its next attempt lies ahead from then on), so that a process that dies in
between repeats at most one attempt, and none is lost.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.db import close_old_connections, connection, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts import outgoing
from accounts.ids import new_id
from accounts.models import Membership, Role
from accounts.services import audit
from synthesis.models import Callback, Delivery, OnItsWay, Output, Status, SynthesisRequest, Webhook
from synthesis.services import callbacks

logger = logging.getLogger(__name__)

#: What can be listened to; `ping` comes by a test only.
EVENTS = ("synthesis.succeeded", "synthesis.failed", "synthesis.canceled", "batch.completed")
#: Minutes before each further attempt: a day in all.
BACK_OFF_MINUTES = (1, 2, 5, 15, 30, 60, 120, 240, 480, 480)
#: A webhook that took nothing for so long is left alone.
DISABLE_AFTER = timedelta(days=1)
#: Deliveries that have ended are kept so long.
KEEP = timedelta(days=30)
SIGNATURE_HEADER = "Chorus-Signature"
#: Sent at the same time, so that a slow receiver holds up none but itself for long.
_AT_ONCE = 8
_BATCH = 200


def ended(request: SynthesisRequest, output: Output | None = None) -> None:
    """Write down, in the caller's transaction, that a request has ended; `request.status` says how.

    Without the text: who may read it fetches it.
    """
    tell(request.team_id, f"synthesis.{request.status}", _about(request, output))
    callbacks.ended(request, output)


def tell(team_id: UUID, event: str, data: dict[str, Any]) -> None:
    """Write down, in the caller's transaction, what the team's webhooks that listen to `event` are to be told."""
    webhooks = Webhook.objects.filter(team=team_id, disabled_at=None, events__contains=[event])
    listening = list(webhooks.values_list("id", flat=True))
    if not listening:
        return
    event_id = new_id()
    body = _body(event_id, event, data)
    Delivery.objects.bulk_create(
        Delivery(webhook_id=webhook, event_id=event_id, event=event, body=body) for webhook in listening
    )


def _about(request: SynthesisRequest, output: Output | None) -> dict[str, Any]:
    address = f"{settings.CHORUS_BASE_URL}/v1/syntheses/{request.id}"
    error = None
    if request.status == Status.FAILED:
        error = {"code": request.error_code, "message": request.error_message}
    return {
        "id": str(request.id),
        "status": request.status,
        "title": request.title,
        "characters": request.characters,
        "format": request.format,
        "error": error,
        "output": {"bytes": output.bytes, "seconds": output.seconds} if output else None,
        "created_at": request.created_at.isoformat(),
        "urls": {"get": address, "audio": f"{address}/audio"},
    }


def ping(webhook: Webhook) -> Delivery:
    """A delivery that only says that somebody is there; the caller sends it."""
    event_id = new_id()
    return Delivery.objects.create(
        webhook=webhook,
        event_id=event_id,
        event="ping",
        body=_body(event_id, "ping", {"webhook": str(webhook.id)}),
        next_attempt_at=None,
    )


def _body(event_id: UUID, event: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"id": str(event_id), "type": event, "created_at": timezone.now().isoformat(), "data": data}


def send_due() -> int:
    """For the sweep: attempt what is due; how many arrived."""
    waiting: list[tuple[type[OnItsWay], UUID]] = []
    for kind in (Delivery, Callback):
        due = kind.objects.filter(state=kind.State.PENDING, next_attempt_at__lte=timezone.now())
        ids = due.order_by("next_attempt_at").values_list("id", flat=True)[:_BATCH]
        waiting += [(kind, one) for one in ids]
    if not waiting:
        return 0
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhook") as pool:
        return sum(pool.map(_send_in_thread, waiting))


def _send_in_thread(which: tuple[type[OnItsWay], UUID]) -> bool:
    close_old_connections()
    try:
        found = _take(*which)
        return found is not None and attempt(found)
    finally:
        connection.close()


def _take(kind: type[OnItsWay], identifier: UUID) -> Delivery | Callback | None:
    """What is to be sent, if it is still due and nobody else has it; its next attempt is set."""
    with transaction.atomic():
        rows: Any = kind._default_manager.select_for_update(of=("self",), skip_locked=True)
        if kind is Delivery:
            rows = rows.select_related("webhook__team")
        found: Delivery | Callback | None = rows.filter(
            id=identifier, state=kind.State.PENDING, next_attempt_at__lte=timezone.now()
        ).first()
        if found is None:
            return None
        if isinstance(found, Delivery) and found.webhook.disabled_at is not None:
            found.state, found.next_attempt_at = Delivery.State.FAILED, None
            found.error = "webhook disabled"
            found.save(update_fields=["state", "next_attempt_at", "error"])
            return None
        pause = BACK_OFF_MINUTES[min(found.attempts, len(BACK_OFF_MINUTES) - 1)]
        found.next_attempt_at = timezone.now() + timedelta(minutes=pause)
        found.save(update_fields=["next_attempt_at"])
        return found


def attempt(delivery: Delivery | Callback) -> bool:
    """Post it once and write down what came back; whether it arrived."""
    webhook = delivery.webhook if isinstance(delivery, Delivery) else None
    if isinstance(delivery, Delivery):
        url, secret, previous = delivery.webhook.url, delivery.webhook.secret, []
    else:
        url, (secret, *previous) = delivery.url, callbacks.signing_secrets(delivery.team_id)
    body = json.dumps(delivery.body, ensure_ascii=False).encode()
    headers = {
        SIGNATURE_HEADER: outgoing.signature(secret, body, previous=previous),
        "Chorus-Event": delivery.event,
        "Chorus-Delivery": str(delivery.id),
    }
    status, problem = None, ""
    try:
        status = outgoing.post(url, body, headers=headers, internal=settings.CHORUS_INTERNAL_WEBHOOKS)
    except (outgoing.Refused, outgoing.Unreachable) as error:
        problem = str(error)[:200]
    arrived = status is not None and 200 <= status < 300
    with transaction.atomic():
        delivery.attempts += 1
        delivery.attempted_at = timezone.now()
        delivery.response_status, delivery.error = status, problem
        if arrived:
            delivery.state, delivery.next_attempt_at = OnItsWay.State.DELIVERED, None
        elif delivery.next_attempt_at is None or delivery.attempts > len(BACK_OFF_MINUTES):
            delivery.state, delivery.next_attempt_at = OnItsWay.State.FAILED, None
        delivery.save(
            update_fields=[
                "attempts",
                "attempted_at",
                "response_status",
                "error",
                "state",
                "next_attempt_at",
            ]
        )
        if webhook is not None and delivery.event != "ping":
            _note_health(webhook, arrived)
    return arrived


def _note_health(webhook: Webhook, arrived: bool) -> None:
    """Remember since when a webhook fails; disable it, and tell the team, when that is too long."""
    now = timezone.now()
    if arrived:
        Webhook.objects.filter(id=webhook.id, failing_since__isnull=False).update(failing_since=None)
        return
    Webhook.objects.filter(id=webhook.id, failing_since=None).update(failing_since=now)
    long_failing = Webhook.objects.filter(
        id=webhook.id, disabled_at=None, failing_since__lt=now - DISABLE_AFTER
    )
    if long_failing.update(disabled_at=now):
        audit.record("webhook.disabled", team_id=webhook.team_id, target=webhook, by="sweep", url=webhook.url)
        transaction.on_commit(lambda: _tell_the_team(webhook), robust=True)


def _tell_the_team(webhook: Webhook) -> None:
    """By e-mail, to who can mend it."""
    members = Membership.objects.filter(
        team=webhook.team_id, role__in=[Role.OWNER, Role.ADMIN], user__is_active=True
    )
    for member in members.select_related("user"):
        with translation.override(member.user.language or settings.LANGUAGE_CODE):
            subject = _("A webhook of your team was disabled")
            text = _(
                "Nothing has arrived at %(url)s for a day, so nothing is sent there any more. Enable it again by the "
                "API when it can be reached.\n"
            ) % {"url": webhook.url}
        try:
            send_mail(subject, text, None, [member.user.email])
        except OSError:
            logger.warning("A team could not be told of its webhook", extra={"webhook": str(webhook.id)})


def forget_old() -> int:
    """Delete the log of deliveries that ended long ago; how many."""
    count = 0
    for kind in (Delivery, Callback):
        old = kind.objects.exclude(state=kind.State.PENDING).filter(created_at__lt=timezone.now() - KEEP)
        count += old.delete()[0]
    return count
