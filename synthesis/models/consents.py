"""Recorded consents: a speaker says in their own voice that it may be cloned."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class VoiceConsent(models.Model):
    """One recording. Voices that were made with it keep it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="voice_consents")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    name = models.CharField(_("name"), max_length=100)
    language = models.CharField(_("language"), max_length=16)
    recording_key = models.CharField(max_length=255)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    #: Also set until the recording is in storage.
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("voice consent")
        verbose_name_plural = _("voice consents")
        indexes = [models.Index(fields=["team", "-id"])]

    def __str__(self) -> str:
        return self.name
