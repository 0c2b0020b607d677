"""Which workers speak for which teams."""

from __future__ import annotations

import threading
import time
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import Team
from accounts.operators import Operator
from synthesis.models import Pool, SynthesisRequest, TeamPool

PERMISSION = "synthesis.change_pool"
#: What commands take for “in no pool”.
NO_POOL = "none"
#: Seconds that a process remembers which team is in which pool: it only decides which bell is rung.
_FRESH = 5.0

_lock = threading.Lock()
_known: dict[UUID, str] = {}
_read_at = float("-inf")


def of_team(team_id: UUID) -> str:
    """The pool of a team, empty for none; at most some seconds old."""
    global _known, _read_at
    if time.monotonic() - _read_at > _FRESH:
        found = dict(TeamPool.objects.values_list("team_id", "pool_id"))
        with _lock:
            _known, _read_at = found, time.monotonic()
    return _known.get(team_id, "")


def forget() -> None:
    """Read anew at the next question."""
    global _read_at
    _read_at = float("-inf")


def names() -> list[str]:
    """Every pool, and the empty name of what all others share."""
    return ["", *Pool.objects.order_by("name").values_list("name", flat=True)]


def within(requests: QuerySet[SynthesisRequest], pool: str) -> QuerySet[SynthesisRequest]:
    """Those of `requests` that the workers of `pool` may take."""
    if pool:
        return requests.filter(team__in=TeamPool.objects.filter(pool=pool).values("team"))
    return requests.exclude(team__in=TeamPool.objects.values("team"))


def create(*, by: Operator, name: str, note: str = "") -> Pool:
    """A new pool; start workers for it with CHORUS_POOL=<name>."""
    by.require(PERMISSION)
    pool = Pool(name=name.strip().lower(), note=note.strip()[:200])
    if pool.name == NO_POOL:
        raise InvalidInput(
            _("“%(name)s” means no pool at all. Choose another name.") % {"name": NO_POOL},
            code="name_invalid",
            param="name",
        )
    try:
        pool.clean_fields()
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), code="name_invalid", param="name") from None
    with transaction.atomic():
        if Pool.objects.filter(pk=pool.pk).exists():
            raise Conflict(_("There is a pool with this name."), code="pool_exists", param="name")
        pool.save(force_insert=True)
        by.record("pool.created", target=pool, note=pool.note)
    return pool


def delete(*, by: Operator, name: str) -> None:
    """Remove a pool. Conflict while a team is in it: its requests would wait for ever."""
    by.require(PERMISSION)
    with transaction.atomic():
        pool = _locked(name)
        teams = pool.teams.count()
        if teams:
            raise Conflict(
                _("%(teams)d teams are in this pool. Take them out first.") % {"teams": teams},
                code="pool_in_use",
            )
        by.record("pool.deleted", target=pool)
        pool.delete()


def assign(*, by: Operator, team_id: UUID, name: str, reason: str = "") -> None:
    """Put a team into a pool; an empty name takes it out. What is being spoken is finished where it is."""
    by.require(PERMISSION)
    with transaction.atomic():
        team = Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team_id).first()
        if team is None:
            raise NotFound
        pool = _locked(name) if name else None
        before = TeamPool.objects.filter(team=team).values_list("pool_id", flat=True).first() or ""
        if before == name:
            return
        if pool is None:
            TeamPool.objects.filter(team=team).delete()
        else:
            TeamPool.objects.update_or_create(team=team, defaults={"pool": pool})
        by.record("pool.assigned", target=team, team_id=team_id, before=before, after=name, reason=reason)
        transaction.on_commit(forget)


def teams_in(names: list[str]) -> dict[str, int]:
    """How many teams are in each pool."""
    counted = TeamPool.objects.filter(pool__in=names).values("pool").annotate(n=Count("team"))
    return {row["pool"]: row["n"] for row in counted}


def _locked(name: str) -> Pool:
    pool = Pool.objects.select_for_update().filter(pk=name).first()
    if pool is None:
        raise InvalidInput(
            _("There is no pool “%(name)s”.") % {"name": name}, code="pool_unknown", param="pool"
        )
    return pool
