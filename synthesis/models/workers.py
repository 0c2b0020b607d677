"""The worker processes, as they report themselves."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

#: A worker reports every 5 s; three missed reports mean that it is gone.
ALIVE = timedelta(seconds=16)
#: States in which one takes requests, now or next.
READY = ("idle", "busy")


class WorkerQuerySet(models.QuerySet["Worker"]):
    """Queries by health."""

    def alive(self) -> Self:
        """Those that reported lately and have loaded their engine."""
        return self.filter(last_seen__gt=timezone.now() - ALIVE, state__in=READY)

    def loading(self) -> Self:
        """Those that are there and load their engine: a minute or so after a start from zero."""
        return self.filter(last_seen__gt=timezone.now() - ALIVE, state="loading")


class Worker(models.Model):
    """One resident worker."""

    class State(models.TextChoices):
        """`gone` was said by the worker itself; one that was killed just falls silent."""

        LOADING = "loading", _("Loading")
        IDLE = "idle", _("Idle")
        BUSY = "busy", _("Busy")
        DRAINING = "draining", _("Finishing")
        PAUSED = "paused", _("Paused")
        GONE = "gone", _("Gone")

    class Order(models.TextChoices):
        """What an operator wants of it. The first two stay until they are taken back, the worker clears the others."""

        PAUSE = "pause", _("Finish and take nothing more")
        STOP = "stop", _("Stop at once and take nothing more")
        RESTART = "restart", _("Finish and start anew")
        RECYCLE = "recycle", _("Finish and load the engine anew")

    name = models.CharField(_("name"), max_length=128, primary_key=True)
    engine = models.CharField(_("engine"), max_length=32)
    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveIntegerField()
    gpu = models.CharField(_("GPU"), max_length=64, blank=True)
    state = models.CharField(_("state"), max_length=8, choices=State.choices)
    started_at = models.DateTimeField(_("started"))
    last_seen = models.DateTimeField(_("last seen"))
    requests_done = models.PositiveBigIntegerField(_("requests done"), default=0)
    rss_bytes = models.PositiveBigIntegerField(_("memory"), default=0)
    #: Of its GPU, by NVML; null where that cannot be told. Database nulls, so that workers of the version before can
    #: still write their rows.
    gpu_percent = models.PositiveSmallIntegerField(_("GPU load in percent"), null=True)
    gpu_memory_bytes = models.PositiveBigIntegerField(_("GPU memory"), null=True)
    last_error = models.TextField(_("last error"), blank=True)
    #: Serves only the teams of this pool; empty: all teams without one.
    pool = models.CharField(_("pool"), max_length=32, blank=True, default="", db_default="")
    order = models.CharField(
        _("order"), max_length=8, choices=Order.choices, blank=True, default="", db_default=""
    )

    objects = WorkerQuerySet.as_manager()

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")

    def __str__(self) -> str:
        return self.name
