"""Reports of misuse: somebody says that a voice is used as it must not be."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class MisuseReport(models.Model):
    """One report of one voice. It stays when it was decided, as a record."""

    class Kind(models.TextChoices):
        """What is wrong."""

        CONSENT = "consent", _("It is somebody’s voice without their consent")
        DECEPTION = "deception", _("It is used to deceive people")
        HARM = "harm", _("It says what is hateful or illegal")
        OTHER = "other", _("Something else")

    class Decision(models.TextChoices):
        """What the operator made of it."""

        DISMISSED = "dismissed", _("Dismissed")
        TAKEN_DOWN = "taken_down", _("Voice blocked")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    voice = models.ForeignKey("synthesis.Voice", on_delete=models.CASCADE, related_name="misuse_reports")
    kind = models.CharField(_("what is wrong"), max_length=16, choices=Kind.choices)
    details = models.TextField(_("details"))
    #: The member of a team who reported it; empty for somebody without an account, and for those who were erased.
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    #: Who is told of the decision; empty when they did not leave an address.
    email = models.EmailField(_("who is told"), blank=True)
    created_at = models.DateTimeField(_("reported"), default=timezone.now, editable=False)
    decision = models.CharField(_("decision"), max_length=16, choices=Decision.choices, blank=True)
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    #: What the reporter is told.
    note = models.CharField(_("answer"), max_length=500, blank=True)

    class Meta:
        verbose_name = _("report of misuse")
        verbose_name_plural = _("reports of misuse")
        indexes = [models.Index(fields=["voice"], condition=Q(decided_at=None), name="misuse_open")]
        constraints = [
            models.UniqueConstraint(
                fields=["voice", "reporter"], condition=Q(decided_at=None), name="misuse_open_once"
            ),
            models.CheckConstraint(
                condition=Q(decision="", decided_at=None) | (~Q(decision="") & Q(decided_at__isnull=False)),
                name="misuse_decided_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.voice.name}: {self.get_kind_display()}"

    @property
    def is_open(self) -> bool:
        """Nobody has decided yet."""
        return self.decided_at is None
