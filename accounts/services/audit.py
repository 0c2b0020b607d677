"""The audit log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from accounts.acting import acting_by
from accounts.actors import Actor
from accounts.models import AuditEntry, User


def record(
    action: str,
    *,
    actor: Actor | None = None,
    user: User | None = None,
    team_id: UUID | None = None,
    target: Any = None,
    by: str = "",
    save: bool = True,
    **data: Any,
) -> AuditEntry:
    """Write one entry in the caller's transaction; without `save` the caller does, with other rows.

    Give `actor`, or `user` where no team is involved (signing in), or `by` for a command. `data` holds plain JSON,
    never secrets and never the text of a request.
    """
    person = actor.user if actor else user
    if acting := acting_by.get():
        data["acting_by"] = acting
    entry = AuditEntry(
        team_id=actor.team.id if actor else team_id,
        actor_id=person.id if person else None,
        actor_name=by or (person.email if person else ""),
        api_key_id=actor.api_key.id if actor and actor.api_key else None,
        action=action,
        target_type=target._meta.model_name if target is not None else "",
        target_id=str(target.pk) if target is not None else "",
        data=data,
    )
    if save:
        entry.save(force_insert=True)
    return entry
