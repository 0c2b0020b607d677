"""Which team comes next, worked out beforehand, so that a claim looks at a few rows however many wait."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Turn(models.Model):
    """A team's place among those that wait for an engine. Only `services.turns` writes it; anything else may be lost.

    Ids are plain: a row of a team that is gone does no harm.
    """

    team_id = models.UUIDField()
    engine = models.CharField(max_length=32)
    pool = models.CharField(max_length=32)
    #: Characters that the team had been given, divided by its weight, when this request is begun: the lowest is next.
    #: Null while nothing of it may be taken.
    share = models.FloatField(null=True)
    #: What `share` becomes by what was taken last.
    finish = models.FloatField(db_default=0.0)
    #: When that request was submitted or the team was last served, whichever is later: among equal shares the earliest
    #: is next.
    since = models.DateTimeField(null=True)
    served_at = models.DateTimeField(null=True)
    #: When a pause ends, and the row has to be worked out again though nothing has changed.
    look_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team_id", "engine"], name="turn_once")]
        indexes = [
            models.Index(
                fields=["engine", "pool", "share", "since"],
                condition=Q(share__isnull=False),
                name="turn_next",
            ),
            models.Index(fields=["look_at"], condition=Q(look_at__isnull=False), name="turn_look"),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} {self.engine}: {self.share}"


class FairClock(models.Model):
    """The share at which a pool's last request began: who comes back after a pause begins there, and not at zero."""

    engine = models.CharField(max_length=32)
    pool = models.CharField(max_length=32)
    now = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "pool"], name="fair_clock_once")]

    def __str__(self) -> str:
        return f"{self.engine} {self.pool}: {self.now}"


class QueueChange(models.Model):
    """A team whose turn has to be worked out again. Triggers write it, in the transaction that changes something.

    Rows are only added and removed, never changed: nobody waits for anybody.
    """

    team_id = models.UUIDField()
    #: Empty when it concerns whatever the team has queued.
    engine = models.CharField(max_length=32)

    def __str__(self) -> str:
        return f"{self.team_id} {self.engine}"
