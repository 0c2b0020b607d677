"""Dialogues: lines with speakers, each speaker a voice, spoken as requests of their own and joined."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id
from synthesis.models.requests import Format


class Script(models.Model):
    """A dialogue of a team."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    title = models.CharField(_("title"), max_length=200, blank=True)
    format = models.CharField(_("format"), max_length=8, choices=Format.choices, default=Format.MP3)
    #: Seconds between two lines that do not say otherwise.
    pause = models.FloatField(_("pause"), default=0.5)
    #: {speaker: id of a voice}
    cast = models.JSONField(default=dict)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("script")
        verbose_name_plural = _("scripts")
        constraints = [models.CheckConstraint(condition=Q(pause__gte=0), name="script_pause_not_negative")]
        indexes = [models.Index("team", models.F("id").desc(), name="script_list")]

    def __str__(self) -> str:
        return self.title or str(self.id)


class ScriptLine(models.Model):
    """What one speaker says in one go; `request` is its latest attempt to be spoken."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="lines")
    number = models.PositiveIntegerField()
    speaker = models.CharField(max_length=100, blank=True)
    text = models.TextField()
    #: Seconds of silence after it; none: as the script says.
    pause = models.FloatField(null=True)
    request = models.ForeignKey(
        "synthesis.SynthesisRequest", null=True, on_delete=models.SET_NULL, related_name="script_lines"
    )

    class Meta:
        ordering = ["number"]
        verbose_name = _("line of a script")
        verbose_name_plural = _("lines of scripts")
        constraints = [models.UniqueConstraint(fields=["script", "number"], name="script_line_once")]

    def __str__(self) -> str:
        return f"{self.script_id}#{self.number}"
