"""Who did what."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class AuditEntry(models.Model):
    """One action. Never changed, never deleted (a trigger sees to it); outlives the people it names."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team_id = models.UUIDField(null=True)
    actor_id = models.UUIDField(null=True)
    #: The e-mail address or command at the time, readable when the account is gone.
    actor_name = models.CharField(_("who"), max_length=254, blank=True)
    api_key_id = models.UUIDField(null=True)
    action = models.CharField(_("action"), max_length=64)
    target_type = models.CharField(_("kind of object"), max_length=32, blank=True)
    target_id = models.CharField(_("object"), max_length=64, blank=True)
    data = models.JSONField(_("details"), default=dict)
    created_at = models.DateTimeField(_("when"), default=timezone.now)

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit log")
        indexes = [models.Index(fields=["team_id", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.actor_name}: {self.action}"
