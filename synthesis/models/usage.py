"""Usage added up by day and month, and what the checks of the ledger found."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Grain(models.TextChoices):
    """How long a row's time is."""

    DAY = "d", _("Day")
    MONTH = "m", _("Month")


class Dimension(models.TextChoices):
    """Whose use a row adds up."""

    SERVICE = "service", _("All")
    TEAM = "team", _("Team")
    USER = "user", _("Person")
    KEY = "key", _("API key")
    VOICE = "voice", _("Voice")


class UsageRollup(models.Model):
    """What was asked for on one day (or in one month) of the team's time zone and has ended since, by one subject.

    Made from the requests by `services.rollup`, and can be made anew at any time: ten million requests are a few
    thousand rows a month. Ids are plain, so that a report outlives what it names.
    """

    grain = models.CharField(max_length=1, choices=Grain.choices)
    dimension = models.CharField(max_length=8, choices=Dimension.choices)
    #: The day, or the first day of the month.
    start = models.DateField(_("day"))
    #: Empty for the whole service.
    team_id = models.UUIDField(null=True)
    #: Person, key or voice; empty for a team as a whole. A request without a key is in no row of keys.
    subject_id = models.UUIDField(null=True)
    requests = models.PositiveBigIntegerField(_("requests"), default=0)
    succeeded = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    canceled = models.PositiveBigIntegerField(default=0)
    #: Of those that succeeded: what was charged.
    characters = models.PositiveBigIntegerField(_("characters"), default=0)
    audio_seconds = models.FloatField(_("audio seconds"), default=0)
    #: Of all, since failing also costs.
    engine_seconds = models.FloatField(_("engine seconds"), default=0)
    #: Sum of the waits between submission and the first claim.
    wait_seconds = models.FloatField(default=0)

    class Meta:
        verbose_name = _("usage")
        verbose_name_plural = _("usage")
        constraints = [
            models.UniqueConstraint(
                fields=["grain", "dimension", "team_id", "start", "subject_id"],
                name="usage_rollup_once",
                nulls_distinct=False,
            )
        ]
        indexes = [models.Index(fields=["grain", "dimension", "start"], name="usage_rollup_range")]

    def __str__(self) -> str:
        return f"{self.dimension} {self.subject_id or self.team_id or ''} {self.start}"


class RollupState(models.Model):
    """Up to when ended requests are in the rollup. One row."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.until)


class LedgerCheck(models.Model):
    """One comparison of ledger, counters and requests."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    started_at = models.DateTimeField(_("started"), default=timezone.now)
    finished_at = models.DateTimeField(_("finished"))
    #: `nightly`, or who asked for it.
    trigger = models.CharField(_("asked for by"), max_length=254)
    entries = models.PositiveBigIntegerField(_("ledger entries"), default=0)
    counters = models.PositiveBigIntegerField(_("counters"), default=0)
    requests = models.PositiveBigIntegerField(_("requests"), default=0)
    #: How many, also beyond those that are listed.
    differences = models.PositiveBigIntegerField(_("differences"), default=0)
    #: The first of them, as plain JSON (`services.verification.Difference`).
    details = models.JSONField(_("details"), default=list)

    class Meta:
        verbose_name = _("check of the ledger")
        verbose_name_plural = _("checks of the ledger")
        indexes = [models.Index(fields=["-started_at"], name="ledger_check_latest")]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}"
