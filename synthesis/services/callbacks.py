"""Addresses that requests and batches name for themselves: what they are told, and what signs it.

The shape is that of Replicate's predictions: `webhook` and `webhook_events_filter` of a submission, and the object
itself as the body. Sent like what webhooks of the team are told (`synthesis.services.deliveries`); signed with a secret
that the team has for all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts import outgoing, permissions
from accounts.actors import Actor
from accounts.errors import InvalidInput
from accounts.models import Team
from accounts.services import audit
from synthesis.models import Callback, Output, SigningSecret, SynthesisRequest
from synthesis.services import shown

#: What `webhook_events_filter` can name: a worker began, another piece was spoken, nothing more will happen.
START, OUTPUT, COMPLETED = "start", "output", "completed"
EVENTS = (START, OUTPUT, COMPLETED)
URL_CHARACTERS = 2000
#: After a rotation the old secret signs as well for so long, so that receivers can change over.
OVERLAP = timedelta(days=1)


def check_address(url: str, *, param: str, secure: bool = False) -> None:
    """InvalidInput for an address that must not or cannot be posted to; `secure` takes https only.

    Looks the name up. Where the operator has allowed internal addresses, those may do without TLS.
    """
    internal = settings.CHORUS_INTERNAL_WEBHOOKS
    if len(url) > URL_CHARACTERS or (secure and not internal and not url.lower().startswith("https://")):
        raise InvalidInput(
            _("This address begins with https:// and has at most %(max)d characters.")
            % {"max": URL_CHARACTERS},
            code="address_refused",
            param=param,
        )
    try:
        outgoing.check(url, internal=internal)
    except outgoing.Refused as error:
        error.param = param
        raise
    except outgoing.Unreachable:
        raise InvalidInput(
            _("Nobody knows the name in this address."), code="address_unknown", param=param
        ) from None


def checked(webhook: str, events: Sequence[str] | None) -> tuple[str, ...]:
    """What a submission's `webhook` is to be told, `completed` when nobody chose; empty without a webhook.

    InvalidInput for an address as in `check_address`, an unknown event, or events without an address.
    """
    for event in events or ():
        if event not in EVENTS:
            raise InvalidInput(
                _("“%(event)s” is not an event. There are: %(all)s.")
                % {"event": event, "all": ", ".join(EVENTS)},
                code="event_unknown",
                param="webhook_events_filter",
            )
    if not webhook:
        if events:
            raise InvalidInput(
                _("Say in “webhook” where the events are to be sent."), code="missing_field", param="webhook"
            )
        return ()
    check_address(webhook, param="webhook", secure=True)
    return tuple(event for event in EVENTS if event in (events or (COMPLETED,)))


# --- What happened ------------------------------------------------------------------------------------------------


def started(request: SynthesisRequest) -> None:
    """A worker has taken `request`. However often that happens, it is told once: a process that died before it wrote
    this is made good by the next claim.
    """
    if START in (request.webhook_events or ()):
        body = about(request, None)
        Callback.objects.bulk_create(
            [_callback(request.team_id, request.id, request.webhook, START, body)], ignore_conflicts=True
        )


def progressed(request: SynthesisRequest) -> None:
    """Another segment is spoken, in the caller's transaction. One that waits to be sent is brought up to date, so that
    a long text is not a flood.
    """
    if OUTPUT not in (request.webhook_events or ()):
        return
    # As it is in the database by now; the worker's own object is as it was claimed.
    now = SynthesisRequest.objects.select_related("voice").get(id=request.id)
    body = about(now, None)
    waiting = Callback.objects.filter(
        about=request.id,
        event=OUTPUT,
        state=Callback.State.PENDING,
        attempts=0,
        next_attempt_at__lte=timezone.now(),
    )
    if not waiting.update(body=body):
        _callback(request.team_id, request.id, request.webhook, OUTPUT, body).save(force_insert=True)


def ended(request: SynthesisRequest, output: Output | None) -> None:
    """`request` has ended, in the caller's transaction."""
    if COMPLETED in (request.webhook_events or ()):
        now = SynthesisRequest.objects.select_related("voice").get(id=request.id)
        body = about(now, output)
        _callback(request.team_id, request.id, request.webhook, COMPLETED, body).save(force_insert=True)


def batch_ended(*, team_id: UUID, batch_id: UUID, url: str, body: dict[str, Any]) -> None:
    """The last row of a batch has ended, in the caller's transaction."""
    _callback(team_id, batch_id, url, COMPLETED, body).save(force_insert=True)


def _callback(team_id: UUID, about_id: UUID, url: str, event: str, body: dict[str, Any]) -> Callback:
    return Callback(team_id=team_id, about=about_id, url=url, event=event, body=body)


def about(row: SynthesisRequest, output: Output | None) -> dict[str, Any]:
    """What `GET /v1/syntheses/{id}` shows of `row` (with `voice` selected), without what is to be spoken: deliveries
    are kept, and deleting a request removes its words.
    """
    address = f"{settings.CHORUS_BASE_URL}/v1/syntheses/{row.id}"
    urls = {
        "get": address,
        **{name: f"{address}/{name}" for name in ("cancel", "audio", "events")},
        "web": f"{settings.CHORUS_BASE_URL}/requests/{row.id}/",
    }
    with translation.override("en"):  # in nobody's language, whoever's doing ends it
        body = shown.request(row, urls=urls, output=output)
    for words in ("text", "instruction"):
        del body["input"][words]
    return shown.plain(body)


# --- What signs it ------------------------------------------------------------------------------------------------


def signing_secrets(team_id: UUID) -> list[str]:
    """The team's secret for these deliveries, made when it is first needed; after a rotation also the one before."""
    kept, _new = SigningSecret.objects.get_or_create(team_id=team_id, defaults={"secret": _secret()})
    overlaps = kept.previous and kept.previous_until and kept.previous_until > timezone.now()
    return [kept.secret, kept.previous] if overlaps else [kept.secret]


def secret_of(actor: Actor) -> SigningSecret:
    """The team's, for who manages webhooks."""
    actor.require(permissions.WEBHOOKS_WRITE)
    signing_secrets(actor.team.id)
    return SigningSecret.objects.get(team=actor.team)


def rotate(actor: Actor) -> SigningSecret:
    """A new secret; the one before signs beside it for OVERLAP."""
    actor.require(permissions.WEBHOOKS_WRITE)
    with transaction.atomic():
        # Locks the team: of two rotations at once neither loses the other's secret.
        Team.objects.select_for_update(of=("self",), no_key=True).get(id=actor.team.id)
        kept = secret_of(actor)
        kept.previous, kept.previous_until = kept.secret, timezone.now() + OVERLAP
        kept.secret, kept.rotated_at = _secret(), timezone.now()
        kept.save()
        audit.record("webhook.secret_rotated", actor=actor, target=actor.team)
    return kept


def _secret() -> str:
    return f"whsec_{secrets.token_hex(24)}"


def log(actor: Actor, about_id: UUID) -> QuerySet[Callback]:
    """What the address of a request or batch of the team was told, the newest first."""
    actor.require(permissions.SYNTHESES_READ)
    return Callback.objects.filter(team=actor.team, about=about_id).order_by("-id")
