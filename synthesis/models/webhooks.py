"""Who is told of what, and how that went."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Webhook(models.Model):
    """An address of a team's own that is posted to when something happens."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="webhooks")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    url = models.CharField(_("address"), max_length=2000)
    #: Signs each delivery, so it is kept as it is.
    secret = models.CharField(max_length=64, editable=False)
    events = ArrayField(models.CharField(max_length=32), verbose_name=_("events"))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    #: Since when no delivery has arrived; empty while they do.
    failing_since = models.DateTimeField(null=True)
    #: It failed for so long that it is left alone.
    disabled_at = models.DateTimeField(_("disabled"), null=True)

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        indexes = [models.Index(fields=["team"], condition=Q(disabled_at=None), name="webhook_active")]

    def __str__(self) -> str:
        return self.url


class OnItsWay(models.Model):
    """One event for one address, written in the transaction in which it happened."""

    class State(models.TextChoices):
        """`pending` until it arrived or was given up."""

        PENDING = "pending", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    #: The same for each delivery of one event, so that a receiver can tell a repetition.
    event_id = models.UUIDField(default=new_id)
    event = models.CharField(max_length=32)
    body = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True, default=timezone.now)
    response_status = models.PositiveSmallIntegerField(null=True)
    #: Why the last attempt did not arrive, when nobody answered.
    error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    attempted_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.event} ({self.state})"


class Delivery(OnItsWay):
    """One event for one webhook of the team."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="pending"), name="delivery_due"),
            models.Index(fields=["webhook", "-id"], name="delivery_log"),
        ]


class Callback(OnItsWay):
    """One event for the address that a request or a batch named for itself."""

    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    #: Id of the request or batch.
    about = models.UUIDField()
    url = models.CharField(max_length=2000)

    class Meta:
        verbose_name = _("callback")
        verbose_name_plural = _("callbacks")
        constraints = [
            # A request is claimed again when its worker was lost.
            models.UniqueConstraint(fields=["about"], condition=Q(event="start"), name="callback_start_once")
        ]
        indexes = [
            models.Index(fields=["next_attempt_at"], condition=Q(state="pending"), name="callback_due"),
            models.Index(fields=["about", "-id"], name="callback_log"),
            models.Index(fields=["team"], name="callback_team"),
        ]


class SigningSecret(models.Model):
    """What signs a team's callbacks; kept as it is, since it must sign."""

    team = models.OneToOneField("accounts.Team", primary_key=True, on_delete=models.CASCADE, related_name="+")
    secret = models.CharField(max_length=64, editable=False)
    #: Signs as well until `previous_until`.
    previous = models.CharField(max_length=64, blank=True, editable=False)
    previous_until = models.DateTimeField(null=True)
    rotated_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("signing secret")
        verbose_name_plural = _("signing secrets")

    def __str__(self) -> str:
        return str(self.team_id)
