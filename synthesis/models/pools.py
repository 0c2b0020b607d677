"""Pools: workers that serve only some teams, so that no other team's load ever touches them."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Pool(models.Model):
    """A name that workers are started with (`CHORUS_POOL`) and teams are assigned to. Teams and workers without one
    share what is left."""

    name = models.CharField(
        _("name"),
        max_length=32,
        primary_key=True,
        validators=[
            RegexValidator(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", _("Small letters, digits and hyphens."))
        ],
    )
    note = models.CharField(_("note"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("made"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")

    def __str__(self) -> str:
        return self.name


class TeamPool(models.Model):
    """The pool whose workers speak for a team, and only they."""

    team = models.OneToOneField(
        "accounts.Team", primary_key=True, on_delete=models.CASCADE, related_name="+", verbose_name=_("team")
    )
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="teams", verbose_name=_("pool"))

    class Meta:
        verbose_name = _("team in a pool")
        verbose_name_plural = _("teams in pools")

    def __str__(self) -> str:
        return f"{self.team} · {self.pool_id}"
