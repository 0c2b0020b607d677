"""Teams, who is in them, and who is asked to join."""

from __future__ import annotations

import zoneinfo

from django.core.exceptions import ValidationError
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Role(models.TextChoices):
    """What a member may do; see `accounts.permissions`."""

    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Admin")
    MEMBER = "member", _("Member")
    VIEWER = "viewer", _("Viewer")


def validate_time_zone(value: str) -> None:
    """ValidationError unless `value` is in the IANA database."""
    if value not in zoneinfo.available_timezones():
        raise ValidationError(
            _("“%(value)s” is not a time zone. An example: Asia/Shanghai."), params={"value": value}
        )


class Team(models.Model):
    """A tenant: everything that is made belongs to a team, and no team sees another's."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(_("name"), max_length=100)
    plan = models.ForeignKey("accounts.Plan", verbose_name=_("plan"), on_delete=models.PROTECT)
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="UTC", validators=[validate_time_zone]
    )
    #: Days that outputs are kept, where the team wants less than its plan allows.
    retention_days = models.PositiveIntegerField(_("days that outputs are kept"), null=True, blank=True)
    #: The voice that the studio begins with, for who has not chosen one yet.
    default_voice = models.UUIDField(_("default voice"), null=True, blank=True)
    suspended_at = models.DateTimeField(_("suspended"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    members = models.ManyToManyField(
        "accounts.User", through="accounts.Membership", related_name="teams", verbose_name=_("members")
    )

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a team."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("team")
    )
    user = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.MEMBER)
    created_at = models.DateTimeField(_("joined"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.team}"


class Invitation(models.Model):
    """A link by which one person may join a team. Only its digest is stored."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, related_name="invitations", verbose_name=_("team")
    )
    email = models.EmailField(_("e-mail address"))
    role = models.CharField(_("role"), max_length=16, choices=Role.choices, default=Role.MEMBER)
    token_digest = models.BinaryField(unique=True)
    invited_by = models.ForeignKey(
        "accounts.User", null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("invited by")
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"))
    accepted_at = models.DateTimeField(_("accepted"), null=True, blank=True)

    class Meta:
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")
        constraints = [
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(accepted_at__isnull=True),
                name="invitation_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} → {self.team}"

    @property
    def is_open(self) -> bool:
        """Whether the link still works."""
        return self.accepted_at is None and self.expires_at > timezone.now()
