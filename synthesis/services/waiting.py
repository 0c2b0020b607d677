"""What waits, what runs and what failed, for operators: by team, by request and by cause, with the reason for each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import MemberQuota, Team
from accounts.services import limits
from synthesis.models import Status, SynthesisRequest, TeamPool, Worker
from synthesis.models.workers import ALIVE, READY


@dataclass(frozen=True)
class TeamQueue:
    """A team with something unfinished. Waits are in seconds."""

    team: Team
    waiting: int
    running: int
    characters: int
    oldest_wait: float
    allowed: int
    weight: float
    pool: str
    engines: tuple[str, ...]
    why: str


class _Scene:
    """What decides whether something is taken: workers, pools, what runs."""

    def __init__(self, team_ids: Sequence[UUID]) -> None:
        self.now = timezone.now()
        #: By state, engine and pool.
        self.workers = set(
            Worker.objects.filter(last_seen__gt=self.now - ALIVE).values_list("state", "engine", "pool")
        )
        self.pools = dict(TeamPool.objects.filter(team__in=team_ids).values_list("team_id", "pool_id"))
        self.running: Counter[UUID] = Counter()
        self.running_of: Counter[tuple[UUID, UUID]] = Counter()
        for team, user in SynthesisRequest.objects.filter(status=Status.RUNNING).values_list(
            "team_id", "user_id"
        ):
            self.running[team] += 1
            self.running_of[team, user] += 1

    def why_team(self, team: Team, engines: Sequence[str]) -> str:
        """Why nothing of a team is taken right now; empty when it could be."""
        if team.suspended_at is not None:
            return _("The team is suspended.")
        pool = self.pools.get(team.pk, "")
        if not self._any(READY, pool, engines):
            return self._no_worker(pool, engines)
        allowed = limits.of_team(team).concurrent_requests or 0
        if self.running[team.pk] >= allowed:
            return ngettext(
                "Its limit of %(n)d at once is reached.", "Its limit of %(n)d at once is reached.", allowed
            ) % {"n": allowed}
        return ""

    def _any(self, states: Sequence[str], pool: str, engines: Sequence[str]) -> bool:
        return any((state, engine, pool) in self.workers for state in states for engine in engines)

    def _no_worker(self, pool: str, engines: Sequence[str]) -> str:
        """Whether they load, rest, or are not there: three different things to do about it."""
        words = {"pool": pool, "engines": ", ".join(engines)}
        if self._any([Worker.State.LOADING], pool, engines):
            return _("The workers for %(engines)s are loading.") % words
        if self._any([Worker.State.PAUSED, Worker.State.DRAINING], pool, engines):
            return _("The workers for %(engines)s are paused.") % words
        if pool:
            return _("No worker of the pool %(pool)s is alive.") % words
        return _("No worker for %(engines)s is alive.") % words


def by_team() -> list[TeamQueue]:
    """Teams with something unfinished, those that wait longest first."""
    rows = list(
        SynthesisRequest.objects.filter(status__in=[Status.QUEUED, Status.RUNNING])
        .values("team")
        .annotate(
            waiting=Count("id", filter=Q(status=Status.QUEUED)),
            running=Count("id", filter=Q(status=Status.RUNNING)),
            characters=Sum("characters", filter=Q(status=Status.QUEUED)),
            oldest=Min("created_at", filter=Q(status=Status.QUEUED)),
            ready=Min("not_before", filter=Q(status=Status.QUEUED)),
        )
    )
    ids = [row["team"] for row in rows]
    teams = {team.pk: team for team in Team.objects.select_related("plan", "quota").filter(pk__in=ids)}
    engines: dict[UUID, set[str]] = defaultdict(set)
    unfinished = SynthesisRequest.objects.filter(status=Status.QUEUED, team__in=ids)
    for team_id, engine in unfinished.values_list("team_id", "engine").distinct():
        engines[team_id].add(engine)
    scene = _Scene(ids)
    found = []
    for row in rows:
        team = teams[row["team"]]
        names = tuple(sorted(engines[team.pk]))
        why = ""
        if row["waiting"]:
            why = scene.why_team(team, names)
            if not why and row["ready"] > scene.now:
                why = _("All of them pause after an error.")
            why = why or _("The workers are busy; its turn comes by fair share.")
        found.append(
            TeamQueue(
                team,
                row["waiting"],
                row["running"],
                row["characters"] or 0,
                _seconds(row["oldest"], scene.now),
                limits.of_team(team).concurrent_requests or 0,
                team.plan.weight,
                scene.pools.get(team.pk, ""),
                names,
                why,
            )
        )
    return sorted(found, key=lambda one: -one.oldest_wait)


def reasons(requests: Sequence[SynthesisRequest]) -> dict[UUID, str]:
    """Why each of some queued requests (with `team__plan`, `team__quota`) waits, in words."""
    scene = _Scene([one.team_id for one in requests])
    own = {
        (quota.membership.team_id, quota.membership.user_id): quota.concurrent_requests
        for quota in MemberQuota.objects.select_related("membership").filter(
            membership__team__in={one.team_id for one in requests}, concurrent_requests__isnull=False
        )
    }
    found = {}
    for one in requests:
        why = scene.why_team(one.team, [one.engine])
        limit = own.get((one.team_id, one.user_id))
        if not why and limit is not None and scene.running_of[one.team_id, one.user_id] >= limit:
            why = _("The person's own limit of %(n)d at once is reached.") % {"n": limit}
        if not why and one.not_before > scene.now:
            why = _("It pauses for %(seconds)d s after an error.") % {
                "seconds": max(1, round((one.not_before - scene.now).total_seconds()))
            }
        found[one.pk] = why or _("The workers are busy; its turn comes by fair share.")
    return found


def queued(*, team: UUID | None = None, limit: int = 100) -> list[SynthesisRequest]:
    """The first of what waits, the oldest first, with `why` on each."""
    rows = SynthesisRequest.objects.filter(status=Status.QUEUED).defer("text", "instruction")
    if team is not None:
        rows = rows.filter(team=team)
    found = list(
        rows.select_related("team__plan", "team__quota", "user", "voice").order_by("-priority", "created_at")[
            :limit
        ]
    )
    why = reasons(found)
    for one in found:
        one.why = why[one.pk]  # type: ignore[attr-defined]
    return found


def running(*, limit: int = 200) -> list[SynthesisRequest]:
    """What is being spoken, by whom and since when."""
    return list(
        SynthesisRequest.objects.filter(status=Status.RUNNING)
        .defer("text", "instruction")
        .select_related("team", "user", "voice")
        .order_by("started_at")[:limit]
    )


@dataclass(frozen=True)
class Failure:
    """Requests that failed with the same code."""

    code: str
    message: str
    count: int
    teams: int
    first: datetime
    last: datetime
    retried: int
    example: UUID
    engines: tuple[str, ...]

    @property
    def open(self) -> int:
        """Those that nobody has tried again."""
        return self.count - self.retried


def failures(*, hours: int = 24) -> list[Failure]:
    """What failed lately, by cause, the most frequent first."""
    lately = failed(hours=hours)
    groups: Any = (
        lately.values("error_code")
        .annotate(
            n=Count("id"),
            teams=Count("team", distinct=True),
            first=Min("completed_at"),
            last=Max("completed_at"),
        )
        .order_by("-n")
    )
    found = []
    for group in groups:
        of_code = lately.filter(error_code=group["error_code"])
        example = of_code.order_by("-completed_at").only("pk", "error_message").first()
        if example is None:  # retried or deleted in this very moment
            continue
        engines = tuple(sorted(of_code.order_by().values_list("engine", flat=True).distinct()))
        again = SynthesisRequest.objects.filter(retry_of__in=of_code.values("pk"))
        found.append(
            Failure(
                group["error_code"],
                example.error_message,
                group["n"],
                group["teams"],
                group["first"],
                group["last"],
                again.values("retry_of").distinct().count(),
                example.pk,
                engines,
            )
        )
    return found


def failed(*, hours: int, code: str | None = None) -> Any:
    """Requests that failed within so many hours, of one cause or of all."""
    since = timezone.now() - timedelta(hours=hours)
    rows = SynthesisRequest.objects.filter(status=Status.FAILED, completed_at__gt=since)
    return rows if code is None else rows.filter(error_code=code)


def _seconds(start: datetime | None, now: datetime) -> float:
    return max(0.0, (now - start).total_seconds()) if start else 0.0
