"""Requests that exist: find, cancel, delete."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts import permissions
from accounts.actors import Actor
from accounts.services import audit, idempotency
from synthesis import storage
from synthesis.errors import RequestNotFound
from synthesis.models import Output, SynthesisRequest
from synthesis.services import dispatch

logger = logging.getLogger(__name__)


def visible(actor: Actor) -> QuerySet[SynthesisRequest]:
    """The team's requests, the newest first, with voice and output."""
    actor.require(permissions.SYNTHESES_READ)
    return _of_team(actor)


def _of_team(actor: Actor) -> QuerySet[SynthesisRequest]:
    requests = SynthesisRequest.objects.filter(team=actor.team, deleted_at=None)
    return requests.select_related("voice", "voice_version", "output").order_by("-id")


def find(actor: Actor, request_id: UUID) -> SynthesisRequest:
    """One of the team's requests; RequestNotFound."""
    found = visible(actor).filter(id=request_id).first()
    if found is None:
        raise RequestNotFound
    return found


def submitted(actor: Actor, request_id: UUID) -> SynthesisRequest:
    """The same for who may submit but not read: what they do with a request whose id they know. RequestNotFound."""
    found = _of_team(actor).filter(id=request_id).first()
    if found is None:
        raise RequestNotFound
    return found


def cancel(*, actor: Actor, request_id: UUID) -> SynthesisRequest:
    """End a request that has not ended, without charge; one that has ended stays as it is."""
    actor.require(permissions.SYNTHESES_WRITE)
    with transaction.atomic():
        found = submitted(actor, request_id)
        if dispatch.cancel(found.id):
            audit.record("synthesis.canceled", actor=actor, target=found)
            found.refresh_from_db()
    return found


def delete(*, actor: Actor, request_id: UUID) -> None:
    """Remove what was said: text, title, sound. The row stays, as an account of the characters; one that has not ended
    is canceled first.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    with transaction.atomic():
        found = submitted(actor, request_id)
        dispatch.cancel(found.id)
        SynthesisRequest.objects.filter(id=found.id).update(
            deleted_at=timezone.now(), text="", title="", instruction="", objects_deleted=False
        )
        found.segments.all().delete()
        Output.objects.filter(request=found.id).delete()
        idempotency.forget(team=actor.team, body_id=str(found.id))
        audit.record("synthesis.deleted", actor=actor, target=found)
    try:
        storage.delete_prefix(storage.request_prefix(found.team_id, found.id))
    except storage.StorageUnavailable:
        logger.warning(
            "Storage does not answer: the sweep removes the objects", extra={"synthesis": str(found.id)}
        )
