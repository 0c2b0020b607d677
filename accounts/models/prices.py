"""What use costs, and who is told when a limit comes near."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Price(models.Model):
    """A line of the price table: what a plan's use costs from a day on, until the next line. For chargeback."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    plan = models.ForeignKey(
        "accounts.Plan",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="prices",
        verbose_name=_("plan"),
        help_text=_("Empty: every plan without a price of its own."),
    )
    valid_from = models.DateField(_("from"))
    per_million_characters = models.DecimalField(
        _("per million characters"), max_digits=14, decimal_places=4, default=0
    )
    per_audio_hour = models.DecimalField(_("per hour of audio"), max_digits=14, decimal_places=4, default=0)
    per_engine_hour = models.DecimalField(
        _("per hour of engine time"), max_digits=14, decimal_places=4, default=0
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("price")
        verbose_name_plural = _("prices")
        constraints = [
            models.UniqueConstraint(fields=["plan", "valid_from"], name="price_once", nulls_distinct=False),
            models.CheckConstraint(
                condition=Q(per_million_characters__gte=0, per_audio_hour__gte=0, per_engine_hour__gte=0),
                name="price_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan or _('every plan')} · {self.valid_from}"


class AlertRule(models.Model):
    """Tell somebody when a team (or each team) has taken a share of its month's characters."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        "accounts.Team",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="alert_rules",
        verbose_name=_("team"),
        help_text=_("Empty: every team."),
    )
    percent = models.PositiveSmallIntegerField(
        _("at percent"), validators=[MinValueValidator(1), MaxValueValidator(100)]
    )
    tell_owners = models.BooleanField(_("tell the team's owners and admins"), default=True)
    emails = ArrayField(models.EmailField(), verbose_name=_("and these addresses"), default=list, blank=True)
    webhook_url = models.URLField(_("webhook"), max_length=500, blank=True)
    webhook_secret = models.CharField(max_length=64, blank=True, editable=False)
    enabled = models.BooleanField(_("on"), default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        constraints = [
            models.CheckConstraint(
                condition=Q(percent__gte=1, percent__lte=100), name="alert_percent_in_range"
            )
        ]

    def __str__(self) -> str:
        return f"{self.percent} % · {self.team or _('every team')}"


class Alert(models.Model):
    """An alert that was raised: once for a rule, a team and a month."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    rule = models.ForeignKey(
        AlertRule, on_delete=models.CASCADE, related_name="alerts", verbose_name=_("alert")
    )
    team = models.ForeignKey(
        "accounts.Team", on_delete=models.CASCADE, related_name="alerts", verbose_name=_("team")
    )
    period_start = models.DateField(_("month"))
    taken = models.BigIntegerField(_("characters taken"))
    limit = models.BigIntegerField(_("of"))
    created_at = models.DateTimeField(_("when"), default=timezone.now, editable=False)
    #: Each way out (`email`, `webhook`): empty while it is to be tried, `sent`, or the last error.
    email_state = models.CharField(_("by e-mail"), max_length=200, blank=True)
    webhook_state = models.CharField(_("by webhook"), max_length=200, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("raised alert")
        verbose_name_plural = _("raised alerts")
        constraints = [models.UniqueConstraint(fields=["rule", "team", "period_start"], name="alert_once")]
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(next_attempt_at__isnull=False), name="alert_to_send"
            )
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.period_start}: {self.taken:,} / {self.limit:,}"
