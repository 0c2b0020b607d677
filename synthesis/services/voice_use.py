"""Who speaks with a voice, and what depends on it: what somebody asks before they change or delete one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, Max, Q, Sum
from django.utils import timezone

from accounts import permissions
from accounts.actors import Actor
from accounts.ids import first_id
from accounts.models import ApiKey, User
from accounts.services import keys
from synthesis.models import Batch, Script, SettingsPreset, Status, SynthesisRequest, Voice

#: Days that can be asked about.
RANGES = (30, 90)


@dataclass(frozen=True, slots=True)
class Use:
    """What one person had spoken with a voice: by one of their keys (`key` None: one that is no more), or on the pages.

    `key` is told to whom may see it; `characters` are those that were charged.
    """

    user: User
    by_key: bool
    key: ApiKey | None
    requests: int
    characters: int
    last: datetime


def users(actor: Actor, voice: Voice, *, days: int) -> list[Use]:
    """Who of the team used `voice` in the last `days`, the most requests first. Presets: other teams' use is theirs."""
    actor.require(permissions.VOICES_READ)
    since = timezone.now() - timedelta(days=days)
    # By the id as well, which the team's history has an index of: a preset is everybody's.
    found = SynthesisRequest.objects.filter(
        team=actor.team, id__gte=first_id(since - timedelta(hours=1)), voice=voice, created_at__gte=since
    )
    rows = list(
        found.values("user", "source", "api_key")
        .annotate(
            requests=Count("id"),
            spoken=Sum("characters", filter=Q(status=Status.SUCCEEDED), default=0),
            last=Max("created_at"),
        )
        .order_by("-requests", "-last")
    )
    people = User.objects.in_bulk({row["user"] for row in rows})
    known = keys.visible(actor).in_bulk({row["api_key"] for row in rows if row["api_key"]})
    return [
        Use(
            user=people[row["user"]],
            by_key=row["source"] == "api",
            key=known.get(row["api_key"]),
            requests=row["requests"],
            characters=row["spoken"],
            last=row["last"],
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Dependents:
    """What would notice if a voice were gone: requests that wait for it, texts of batches, scripts, saved settings."""

    waiting: int
    batches: int
    scripts: list[Script]
    settings: int
    is_default: bool
    recordings: int

    def __bool__(self) -> bool:
        return bool(self.waiting or self.batches or self.scripts or self.settings or self.is_default)


def dependents(actor: Actor, voice: Voice) -> Dependents:
    """Of one of the team's own voices. `recordings` were made with it and stay."""
    actor.require(permissions.VOICES_READ)
    of_voice = SynthesisRequest.objects.filter(team=actor.team, voice=voice)
    # A script names its cast by id, whoever speaks which part.
    scripts = [
        script
        for script in Script.objects.filter(team=actor.team).order_by("-id")
        if str(voice.id) in script.cast.values()
    ]
    return Dependents(
        waiting=of_voice.filter(status__in=[Status.QUEUED, Status.RUNNING]).count(),
        batches=Batch.objects.filter(
            team=actor.team,
            waiting=True,
            rows__input__voice=str(voice.id),
            rows__request=None,
            rows__ended="",
        )
        .distinct()
        .count(),
        scripts=scripts,
        settings=SettingsPreset.objects.filter(team=actor.team, values__voice=str(voice.id)).count(),
        is_default=_is(actor.team.default_voice, voice.id),
        recordings=of_voice.filter(output__isnull=False, deleted_at=None, take_of=None).count(),
    )


def _is(one: UUID | None, other: UUID) -> bool:
    return one == other
