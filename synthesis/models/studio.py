"""What people keep for themselves while they work: requests and voices that they like, settings that they use again;
and the words by which a team finds its voices.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.ids import new_id


class Favourite(models.Model):
    """A request that somebody wants to find again."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    request = models.ForeignKey(
        "synthesis.SynthesisRequest", on_delete=models.CASCADE, related_name="favourites"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "request"], name="favourite_once")]

    def __str__(self) -> str:
        return f"{self.user_id} \u2661 {self.request_id}"


class VoiceFavourite(models.Model):
    """A voice that somebody wants at hand."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    voice = models.ForeignKey("synthesis.Voice", on_delete=models.CASCADE, related_name="favourites")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "voice"], name="voice_favourite_once")]

    def __str__(self) -> str:
        return f"{self.user_id} \u2661 {self.voice_id}"


class VoiceTag(models.Model):
    """A word by which a team finds a voice: one of its own, or a preset, which each team tags for itself."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    voice = models.ForeignKey("synthesis.Voice", on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint("team", "voice", Lower("name"), name="voice_tag_once")]

    def __str__(self) -> str:
        return self.name


class SettingsPreset(models.Model):
    """Settings of the studio under a name: one person's, in one team."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=60)
    #: voice (id), language, speed, format, instruction, seed: as the studio's form has them.
    values = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "user", "name"], name="settings_preset_name_once")
        ]

    def __str__(self) -> str:
        return self.name
