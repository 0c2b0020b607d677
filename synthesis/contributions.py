"""What this app tells `accounts`, which may not import it: what is in use, and how to cancel what waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q

from accounts.extensions import PersonalData, registry

if TYPE_CHECKING:
    from accounts.models import User


def register() -> None:
    """Called once, when Django starts."""
    registry.in_use.append(in_use)
    registry.cancel_waiting.append(cancel_waiting)
    registry.personal_data.append(PersonalData("synthesis", export=export_person, erase=erase_person))


def in_use(team_id: UUID, user_id: UUID | None) -> dict[str, int]:
    """Requests running and not ended, and voices stored."""
    from synthesis.models import Status, SynthesisRequest, Voice

    requests = SynthesisRequest.objects.filter(team=team_id, status__in=[Status.QUEUED, Status.RUNNING])
    voices = Voice.objects.filter(team=team_id, deleted_at=None)
    if user_id is not None:
        requests, voices = requests.filter(user=user_id), voices.filter(created_by=user_id)
    counts = requests.aggregate(all=Count("id"), running=Count("id", filter=Q(status=Status.RUNNING)))
    return {
        "concurrent_requests": counts["running"],
        "queued_requests": counts["all"],
        "stored_voices": voices.count(),
    }


def cancel_waiting(*, team_id: UUID | None, user_id: UUID | None) -> int:
    """Cancel queued requests and waiting rows of batches, without charge; what runs is finished."""
    from synthesis.models import Status, SynthesisRequest
    from synthesis.services import batches, dispatch

    waiting = SynthesisRequest.objects.filter(status=Status.QUEUED)
    if team_id is not None:
        waiting = waiting.filter(team=team_id)
    if user_id is not None:
        waiting = waiting.filter(user=user_id)
    with transaction.atomic():
        # All batches, whose rows would take the places of the requests, and all requests before the first counter, as
        # whoever ends one of them has it: nobody waits in a circle.
        held = batches.hold_all_waiting(team_id=team_id, user_id=user_id)
        ids = list(waiting.select_for_update(of=("self",)).order_by("id").values_list("id", flat=True))
        return sum(map(batches.end_waiting, held)) + sum(map(dispatch.cancel, ids))


def export_person(user: User) -> Iterator[tuple[str, bytes | Iterator[bytes]]]:
    """A person's voices, texts and sound."""
    from synthesis.services import personal

    return personal.export(user)


def erase_person(user: User) -> dict[str, int]:
    """Remove them."""
    from synthesis.services import personal

    return personal.erase(user)
