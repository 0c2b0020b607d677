"""Plans, their overrides, the counters that are checked, and the ledger that explains the counters.

A character is one Unicode code point of the submitted text in NFC.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Plan(models.Model):
    """What a team may use unless its own quota says otherwise."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(_("name"), max_length=64, unique=True)
    characters_per_month = models.PositiveBigIntegerField(_("characters per month"), default=1_000_000)
    concurrent_requests = models.PositiveIntegerField(_("requests spoken at once"), default=4)
    queued_requests = models.PositiveIntegerField(_("requests waiting at once"), default=1_000)
    requests_per_minute = models.PositiveIntegerField(_("requests per minute"), default=600)
    characters_per_request = models.PositiveIntegerField(_("characters per request"), default=20_000)
    stored_voices = models.PositiveIntegerField(_("stored voices"), default=100)
    weight = models.FloatField(_("fair-share weight"), default=1.0)
    retention_days = models.PositiveIntegerField(_("days that outputs are kept"), default=90)

    class Meta:
        verbose_name = _("plan")
        verbose_name_plural = _("plans")
        constraints = [models.CheckConstraint(condition=Q(weight__gt=0), name="plan_weight_positive")]

    def __str__(self) -> str:
        return self.name


class Override(models.Model):
    """Limits that replace the plan's; empty means: as the plan says."""

    characters_per_month = models.PositiveBigIntegerField(_("characters per month"), null=True, blank=True)
    concurrent_requests = models.PositiveIntegerField(_("requests spoken at once"), null=True, blank=True)
    queued_requests = models.PositiveIntegerField(_("requests waiting at once"), null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(_("requests per minute"), null=True, blank=True)
    characters_per_request = models.PositiveIntegerField(_("characters per request"), null=True, blank=True)
    stored_voices = models.PositiveIntegerField(_("stored voices"), null=True, blank=True)

    class Meta:
        abstract = True


class TeamQuota(Override):
    """A team's own limits."""

    team = models.OneToOneField(
        "accounts.Team",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="quota",
        verbose_name=_("team"),
    )

    class Meta:
        verbose_name = _("team quota")
        verbose_name_plural = _("team quotas")

    def __str__(self) -> str:
        return str(self.team)


class MemberQuota(Override):
    """One person's limits within a team; empty means: only the team's limits hold."""

    membership = models.OneToOneField(
        "accounts.Membership",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="quota",
        verbose_name=_("member"),
    )

    class Meta:
        verbose_name = _("member quota")
        verbose_name_plural = _("member quotas")

    def __str__(self) -> str:
        return str(self.membership)


class UsageCounter(models.Model):
    """Characters of one month: of a team, of a person in it (`user` set), or of a key (`api_key` set).

    `used + reserved ≤ allowance` is held by the database, whatever runs at once. `allowance` is the limit at the
    time of the latest reservation, and what was `granted` on top of it in this month; null means that nothing but the
    counters above it limits this one.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="usage_counters")
    user = models.ForeignKey("accounts.User", null=True, on_delete=models.CASCADE, related_name="+")
    api_key = models.ForeignKey("accounts.ApiKey", null=True, on_delete=models.CASCADE, related_name="+")
    #: First day of the month in the team's time zone.
    period_start = models.DateField(_("month"))
    allowance = models.PositiveBigIntegerField(_("allowance"), null=True)
    used = models.PositiveBigIntegerField(_("used"), default=0)
    reserved = models.PositiveBigIntegerField(_("reserved"), default=0)
    #: The sum of this month's `grant` and `adjust` entries; below zero after a correction downwards.
    granted = models.BigIntegerField(_("granted"), default=0, db_default=0)

    class Meta:
        verbose_name = _("usage counter")
        verbose_name_plural = _("usage counters")
        constraints = [
            models.UniqueConstraint(
                fields=["team", "user", "api_key", "period_start"],
                name="usage_counter_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(allowance__isnull=True) | Q(allowance__gte=F("used") + F("reserved")),
                name="usage_within_allowance",
            ),
            models.CheckConstraint(
                condition=Q(user__isnull=True) | Q(api_key__isnull=True), name="usage_counter_one_subject"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team_id} {self.period_start}: {self.used} + {self.reserved} / {self.allowance}"


class LedgerEntry(models.Model):
    """Why a counter is what it is. Append-only: a trigger refuses UPDATE and DELETE."""

    class Kind(models.TextChoices):
        """`reserve` at submission, then exactly one of `settle` and `release`. `grant` and `adjust` move the
        allowance of a month and belong to no request."""

        RESERVE = "reserve", _("Reserved")
        SETTLE = "settle", _("Settled")
        RELEASE = "release", _("Released")
        GRANT = "grant", _("Granted")
        ADJUST = "adjust", _("Adjusted")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    #: Plain ids, so that an entry outlives what it names.
    team_id = models.UUIDField()
    user_id = models.UUIDField(null=True)
    api_key_id = models.UUIDField(null=True)
    request_id = models.UUIDField(null=True)
    grant_id = models.UUIDField(null=True)
    #: Below zero only in an `adjust`.
    characters = models.BigIntegerField(_("characters"))
    period_start = models.DateField(_("month"))
    #: Database defaults, so that workers of the previous version can still write while a new one is rolled out.
    note = models.CharField(_("note"), max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(_("when"), default=timezone.now)

    class Meta:
        verbose_name = _("ledger entry")
        verbose_name_plural = _("ledger")
        indexes = [
            models.Index(fields=["team_id", "-created_at"]),
            models.Index(fields=["grant_id"], condition=Q(grant_id__isnull=False), name="ledger_grant"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["request_id"], condition=Q(kind="reserve"), name="ledger_reserved_once"
            ),
            models.UniqueConstraint(
                fields=["request_id"], condition=Q(kind__in=["settle", "release"]), name="ledger_closed_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["reserve", "settle", "release", "grant", "adjust"]),
                name="ledger_kind_known",
            ),
            models.CheckConstraint(
                condition=(
                    Q(
                        kind__in=["reserve", "settle", "release"],
                        request_id__isnull=False,
                        grant_id__isnull=True,
                    )
                    | Q(kind="grant", request_id__isnull=True, grant_id__isnull=False)
                    | Q(kind="adjust", request_id__isnull=True)
                ),
                name="ledger_entry_has_cause",
            ),
            models.CheckConstraint(
                condition=Q(kind="adjust") | Q(characters__gte=0), name="ledger_only_adjust_takes_away"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.characters} ({self.request_id or self.grant_id or self.note})"
