"""What an operator changes without a deployment. Names and types are in `accounts.services.operator_settings`."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class OperatorSetting(models.Model):
    """A value that differs from the default. The panel's own permissions live here, for want of a better table."""

    key = models.CharField(_("setting"), max_length=64, primary_key=True)
    value = models.JSONField(_("value"))
    updated_at = models.DateTimeField(_("changed"), default=timezone.now)
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("by")
    )

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
        permissions = [
            ("manage_staff", "Can decide who enters the panel and what they may do there"),
            ("act_as", "Can use the service as somebody else"),
            ("export_person", "Can export a person's data"),
            ("erase_person", "Can erase a person's data"),
        ]

    def __str__(self) -> str:
        return self.key
