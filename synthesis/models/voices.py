"""Voices: the engine's presets, which every team may use, and a team's own."""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Prefetch, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import permissions
from accounts.actors import Actor
from accounts.ids import new_id
from synthesis.engines import capabilities
from synthesis.models.studio import VoiceFavourite, VoiceTag


class VoiceQuerySet(models.QuerySet["Voice"]):
    """Queries by what somebody may see."""

    def usable(self, actor: Actor) -> Self:
        """The presets of the engine that this installation runs, and the team's own voices."""
        return self.seen(**sight(actor)).filter(taken_down_at=None)

    def blocked(self, actor: Actor) -> Self:
        """What `usable` would have as well, had an operator not forbidden it."""
        return self.seen(**sight(actor)).filter(taken_down_at__isnull=False)

    def own(self, actor: Actor) -> Self:
        """The team's own voices, as far as `actor` may see them; also those that were taken down."""
        return self.filter(_own(**_whose(actor)), deleted_at=None)

    def seen(self, *, engine: str, team: UUID, user: UUID | None = None) -> Self:
        """An engine's presets and a team's own voices: all of them, or what `user` made and what is shared."""
        return self.filter(Q(team=None, engine=engine) | _own(team, user), deleted_at=None)

    def marked(self, actor: Actor) -> Self:
        """With what `actor` and their team have marked: `is_favourite`, and `team_tags` by name."""
        tags = VoiceTag.objects.filter(team=actor.team).order_by(Lower("name"))
        favourites = VoiceFavourite.objects.filter(user=actor.user, voice=OuterRef("pk"))
        return self.annotate(is_favourite=Exists(favourites)).prefetch_related(
            Prefetch("tags", tags, to_attr="team_tags")
        )


def sight(actor: Actor) -> dict[str, Any]:
    """What an actor sees, as `VoiceQuerySet.seen` takes it: the presets of the engine that runs, and the team's."""
    return {"engine": settings.CHORUS_ENGINE, **_whose(actor)}


def _whose(actor: Actor) -> dict[str, UUID]:
    """Who manages the team answers for all of its voices."""
    if actor.can(permissions.MEMBERS_WRITE):
        return {"team": actor.team.id}
    return {"team": actor.team.id, "user": actor.user.id}


def _own(team: UUID, user: UUID | None = None) -> Q:
    """A team's voices: all, or those that are shared within it or the user's."""
    return Q(team=team) if user is None else Q(team=team) & (Q(shared=True) | Q(created_by=user))


class Voice(models.Model):
    """A voice. A preset has no team; a team's own voice has versions, of which one is current."""

    class Kind(models.TextChoices):
        """Where its sound comes from."""

        PRESET = "preset", _("Preset")
        CLONED = "cloned", _("Cloned")

    class Gender(models.TextChoices):
        """As it is heard."""

        FEMALE = "female", _("Female")
        MALE = "male", _("Male")
        NEUTRAL = "neutral", _("Neutral")
        UNKNOWN = "", _("Not stated")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        "accounts.Team", null=True, blank=True, on_delete=models.CASCADE, related_name="voices"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices)
    name = models.CharField(_("name"), max_length=100)
    language = models.CharField(_("language"), max_length=16)
    gender = models.CharField(
        _("gender"), max_length=8, choices=Gender.choices, blank=True, default=Gender.UNKNOWN
    )
    style = models.CharField(_("style"), max_length=200, blank=True)
    #: A preset's engine, and what that engine calls it.
    engine = models.CharField(max_length=32, blank=True)
    preset = models.CharField(max_length=64, blank=True)
    current_version = models.ForeignKey(
        "synthesis.VoiceVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    #: For the whole team; otherwise for who made it, and for who manages the team.
    shared = models.BooleanField(_("shared with the team"), default=True, db_default=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    #: Also set while a new voice's files are on their way to storage: a voice that nobody finished is swept away.
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)
    #: The sweep has removed the stored sound of a deleted voice.
    objects_deleted = models.BooleanField(default=False)
    #: An operator has forbidden its use; its files stay, as evidence, and so that it can be restored.
    taken_down_at = models.DateTimeField(_("taken down"), null=True, blank=True)
    taken_down_reason = models.CharField(
        _("why it was taken down"), max_length=200, blank=True, db_default=""
    )

    objects = VoiceQuerySet.as_manager()

    class Meta:
        verbose_name = _("voice")
        verbose_name_plural = _("voices")
        constraints = [
            models.UniqueConstraint(
                "team",
                Lower("name"),
                condition=Q(deleted_at=None, team__isnull=False),
                name="voice_name_once",
            ),
            models.UniqueConstraint(
                "engine", Lower("name"), condition=Q(team__isnull=True), name="preset_name_once"
            ),
            models.UniqueConstraint("engine", "preset", condition=Q(team__isnull=True), name="preset_once"),
            models.CheckConstraint(
                condition=Q(kind="preset", team__isnull=True) | Q(kind="cloned", team__isnull=False),
                name="voice_kind_matches_team",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def cloning(self) -> str:
        """How this installation's engine speaks a cloned voice (`Capabilities.cloning`); empty for a preset."""
        return capabilities(settings.CHORUS_ENGINE).cloning if self.kind == self.Kind.CLONED else ""


class VoiceVersion(models.Model):
    """One recording of a cloned voice, as uploaded and as prepared; requests keep the version they were made with."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    voice = models.ForeignKey(Voice, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    original_key = models.CharField(max_length=255)
    original_name = models.CharField(_("file name"), max_length=255, blank=True)
    processed_key = models.CharField(max_length=255)
    #: Of the prepared clip, Hz and seconds.
    sample_rate = models.PositiveIntegerField()
    seconds = models.FloatField()
    #: The part of the original that was used, seconds.
    window_start = models.FloatField()
    window_end = models.FloatField()
    original_seconds = models.FloatField()
    transcript = models.TextField(_("transcript"), blank=True)
    #: What `synthesis.audio.quality` measured, as plain JSON.
    quality = models.JSONField(default=dict)
    #: Where several recordings were sent: what each was worth, as `synthesis.services.clips` says.
    clips = models.JSONField(default=list, db_default=[])
    #: Of an imported voice: what its file said of where it comes from and of the speaker's consent.
    origin = models.JSONField(default=dict, db_default={})
    #: The preset that sounds most like it, for engines that cannot clone: {engine: preset}.
    nearest = models.JSONField(default=dict)
    #: Word for word as it was agreed to; its language and number in `synthesis.consent` (none: from before there were).
    consent_statement = models.TextField(_("consent statement"))
    consent_language = models.CharField(max_length=16, blank=True, default="", db_default="")
    consent_version = models.PositiveSmallIntegerField(null=True, blank=True)
    consent_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    consent_at = models.DateTimeField(_("consent given"))
    #: Where the speaker said so themselves.
    consent_recording = models.ForeignKey(
        "synthesis.VoiceConsent", null=True, blank=True, on_delete=models.PROTECT, related_name="versions"
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["voice", "number"], name="voice_version_once")]

    def __str__(self) -> str:
        return f"{self.voice_id} v{self.number}"
