"""Requests that exist: find, cancel, delete."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts import permissions
from accounts.actors import Actor
from accounts.services import audit, idempotency
from synthesis import storage
from synthesis.errors import RequestNotFound
from synthesis.models import Favourite, Output, SynthesisRequest
from synthesis.services import dispatch, submission

logger = logging.getLogger(__name__)


def visible(actor: Actor) -> QuerySet[SynthesisRequest]:
    """The team's requests, the newest first, with voice and output; without the takes of their segments."""
    actor.require(permissions.SYNTHESES_READ)
    return _of_team(actor).filter(take_of=None)


def _of_team(actor: Actor) -> QuerySet[SynthesisRequest]:
    requests = SynthesisRequest.objects.filter(team=actor.team, deleted_at=None).annotate(
        is_favourite=Exists(Favourite.objects.filter(user=actor.user, request=OuterRef("pk")))
    )
    return requests.select_related("voice", "voice_version", "output").order_by("-id")


def find(actor: Actor, request_id: UUID) -> SynthesisRequest:
    """One of the team's requests; RequestNotFound."""
    actor.require(permissions.SYNTHESES_READ)
    found = _of_team(actor).filter(id=request_id).first()
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


def rename(*, actor: Actor, request_id: UUID, title: str) -> SynthesisRequest:
    """Give a request another title, or none. Raises InvalidInput."""
    actor.require(permissions.SYNTHESES_WRITE)
    found = submitted(actor, request_id)
    found.title = submission.checked_title(title)
    found.save(update_fields=["title"])
    return found


def set_favourite(*, actor: Actor, request_id: UUID, wanted: bool) -> None:
    """Mark a request as the person's favourite, or no more; as often as it is asked for."""
    found = find(actor, request_id)
    if wanted:
        Favourite.objects.get_or_create(user=actor.user, request=found)
    else:
        Favourite.objects.filter(user=actor.user, request=found).delete()


def delete(*, actor: Actor, request_id: UUID) -> None:
    """Remove what was said: text, title, sound. The row stays, as an account of the characters; one that has not ended
    is canceled first.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    for take in SynthesisRequest.objects.filter(
        take_of__request=request_id, team=actor.team, deleted_at=None
    ):
        delete(actor=actor, request_id=take.id)
    with transaction.atomic():
        found = submitted(actor, request_id)
        dispatch.cancel(found.id)
        SynthesisRequest.objects.filter(id=found.id).update(
            deleted_at=timezone.now(), text="", title="", instruction="", webhook="", objects_deleted=False
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
