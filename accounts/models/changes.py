"""Changes of limits: made, planned or undone; and characters granted on top of a limit."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class QuotaChange(models.Model):
    """Other limits for a plan, a team or a member: what was there before, what comes, and from when.

    `after` names fields of the target; null means: as the level above says. `before` is filled in when it is applied.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    #: Changes that were made together have the same.
    batch = models.UUIDField(_("batch"), db_index=True)
    plan = models.ForeignKey(
        "accounts.Plan", null=True, on_delete=models.CASCADE, related_name="changes", verbose_name=_("plan")
    )
    team = models.ForeignKey(
        "accounts.Team",
        null=True,
        on_delete=models.CASCADE,
        related_name="quota_changes",
        verbose_name=_("team"),
    )
    membership = models.ForeignKey(
        "accounts.Membership",
        null=True,
        on_delete=models.CASCADE,
        related_name="quota_changes",
        verbose_name=_("member"),
    )
    before = models.JSONField(_("before"), null=True)
    after = models.JSONField(_("after"))
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    apply_at = models.DateTimeField(_("takes effect"))
    applied_at = models.DateTimeField(_("took effect"), null=True)
    #: A planned change that was taken back before it took effect.
    withdrawn_at = models.DateTimeField(_("withdrawn"), null=True)
    #: The change that this one undoes.
    undoes = models.OneToOneField("self", null=True, on_delete=models.SET_NULL, related_name="undone_by")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("change of limits")
        verbose_name_plural = _("changes of limits")
        constraints = [
            models.CheckConstraint(
                condition=(
                    Q(plan__isnull=False, team__isnull=True, membership__isnull=True)
                    | Q(plan__isnull=True, team__isnull=False, membership__isnull=True)
                    | Q(plan__isnull=True, team__isnull=True, membership__isnull=False)
                ),
                name="quota_change_one_target",
            ),
            models.CheckConstraint(
                condition=Q(applied_at__isnull=True) | Q(withdrawn_at__isnull=True),
                name="quota_change_applied_or_withdrawn",
            ),
        ]
        indexes = [
            models.Index(
                fields=["apply_at"],
                condition=Q(applied_at__isnull=True, withdrawn_at__isnull=True),
                name="quota_change_planned",
            )
        ]

    def __str__(self) -> str:
        return str(self.plan or self.team or self.membership)

    @property
    def is_planned(self) -> bool:
        """Whether it is still to take effect."""
        return self.applied_at is None and self.withdrawn_at is None

    @property
    def is_undone(self) -> bool:
        """Whether a later change put back what was there before."""
        return hasattr(self, "undone_by")


class Grant(models.Model):
    """Characters once, on top of the monthly limit of a team or of a person in it.

    The limit is used up first, then grants, the one that expires first before the others. At the end of a month what
    is left goes on to the next, until the grant expires.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        "accounts.Team", on_delete=models.CASCADE, related_name="grants", verbose_name=_("team")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        verbose_name=_("person"),
    )
    characters = models.PositiveBigIntegerField(_("characters"))
    reason = models.CharField(_("reason"), max_length=200)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    #: The month whose counter has it now, and how much of it was put there.
    period_start = models.DateField(_("month"))
    placed = models.PositiveBigIntegerField(_("in this month"))
    #: Used up, expired or revoked.
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("grants")
        constraints = [
            models.CheckConstraint(condition=Q(characters__gt=0), name="grant_positive"),
            models.CheckConstraint(
                condition=Q(placed__lte=models.F("characters")), name="grant_placed_within"
            ),
        ]
        indexes = [
            models.Index(fields=["team", "user"], condition=Q(ended_at__isnull=True), name="grant_active"),
        ]

    def __str__(self) -> str:
        return f"{self.characters:,} · {self.user or self.team}"
