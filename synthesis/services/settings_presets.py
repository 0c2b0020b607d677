"""Settings of the studio under a name: each person's own, in each team."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotFound
from synthesis.models import SettingsPreset

#: More would not be found again in a menu.
MOST = 30
#: What is kept, as the studio's form names it.
FIELDS = ("voice", "language", "speed", "format", "instruction", "seed", "stream")


def own(actor: Actor) -> QuerySet[SettingsPreset]:
    """The person's, by name."""
    return SettingsPreset.objects.filter(team=actor.team, user=actor.user).order_by("name")


def find(actor: Actor, preset_id: UUID) -> SettingsPreset:
    """One of the person's own; NotFound."""
    found = own(actor).filter(id=preset_id).first()
    if found is None:
        raise NotFound
    return found


def save(*, actor: Actor, name: str, values: dict[str, Any]) -> SettingsPreset:
    """Keep `values` under `name`, in place of what had that name. Raises InvalidInput and Conflict."""
    actor.require(permissions.SYNTHESES_WRITE)
    name = " ".join(name.split())
    if not name or len(name) > 60 or not name.isprintable():
        raise InvalidInput(
            _("Give the settings a name of 1 to 60 characters."), code="name_invalid", param="name"
        )
    kept = {key: str(values[key])[:300] for key in FIELDS if values.get(key) not in (None, "")}
    with transaction.atomic():
        known = own(actor).select_for_update().filter(name=name).exists()
        if not known and own(actor).count() >= MOST:
            raise Conflict(
                _("There are %(limit)d saved settings already. Delete one first.") % {"limit": MOST},
                code="presets_limit_reached",
            )
        found, _made = SettingsPreset.objects.update_or_create(
            team=actor.team, user=actor.user, name=name, defaults={"values": kept}
        )
    return found


def delete(*, actor: Actor, preset_id: UUID) -> None:
    """Forget one of the person's own; NotFound."""
    find(actor, preset_id).delete()
