"""Answers that a repeated request gets again."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from accounts.ids import new_id


class IdempotentAnswer(models.Model):
    """The answer to a request that carried an `Idempotency-Key`; written in the transaction that did the work."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.BinaryField()
    status = models.PositiveSmallIntegerField(default=0)
    body = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return f"{self.team_id}: {self.status}"
