"""Batches: many texts that were handed in together, and what became of each."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id
from synthesis.models.requests import Status


class Batch(models.Model):
    """A file of texts. Its rows become requests as places in the team's queue fall free."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    api_key = models.ForeignKey("accounts.ApiKey", null=True, on_delete=models.SET_NULL, related_name="+")
    source = models.CharField(max_length=8)
    name = models.CharField(_("name"), max_length=200, blank=True)
    rows_total = models.PositiveIntegerField(_("rows"))
    characters = models.PositiveBigIntegerField(_("characters"))
    #: Some of its rows have not become requests yet: the sweep looks at these batches only.
    waiting = models.BooleanField(default=True)
    #: Its end has not been told yet (`synthesis.services.batch_ends`).
    open = models.BooleanField(default=True, db_default=False)
    #: An address that came with it and is told of its end.
    webhook = models.CharField(max_length=2000, blank=True, default="", db_default="")
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("batch")
        verbose_name_plural = _("batches")
        constraints = [models.CheckConstraint(condition=Q(rows_total__gt=0), name="batch_has_rows")]
        indexes = [
            models.Index("team", models.F("id").desc(), name="batch_list"),
            models.Index(fields=["team", "id"], condition=Q(waiting=True), name="batch_waiting"),
            models.Index(fields=["id"], condition=Q(open=True), name="batch_open"),
        ]

    def __str__(self) -> str:
        return self.name or str(self.id)


_WAITS = Q(request__isnull=True, ended="", input__isnull=False)
_BECAME_A_REQUEST = Q(request__isnull=False, ended="", input__isnull=True)
#: What failed can be tried again, so that its input is kept.
_REFUSED = Q(request__isnull=True, ended=Status.FAILED, input__isnull=False, ended_at__isnull=False)
_CANCELED = Q(request__isnull=True, ended=Status.CANCELED, input__isnull=True, ended_at__isnull=False)


class BatchRow(models.Model):
    """One text of a batch: it waits, or it became a request, or it ended without becoming one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="rows")
    #: From 1, without empty lines and the line of column names.
    number = models.PositiveIntegerField()
    #: Of the file, from 1: where the row begins.
    line = models.PositiveIntegerField()
    characters = models.PositiveIntegerField()
    #: Under this id the characters are reserved from the beginning; the request that the row becomes has it too.
    reservation = models.UUIDField(default=new_id, unique=True)
    #: The arguments of `submission.plan`, until there is a request that has them.
    input = models.JSONField(null=True)
    request = models.OneToOneField(
        "synthesis.SynthesisRequest", null=True, on_delete=models.CASCADE, related_name="batch_row"
    )
    #: The failed request that is tried again.
    retry_of = models.ForeignKey(
        "synthesis.SynthesisRequest", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    #: How it ended before it was a request.
    ended = models.CharField(max_length=12, blank=True)
    ended_at = models.DateTimeField(null=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)

    class Meta:
        verbose_name = _("row of a batch")
        verbose_name_plural = _("rows of batches")
        constraints = [
            models.UniqueConstraint(fields=["batch", "number"], name="batch_row_once"),
            models.CheckConstraint(
                condition=_WAITS | _BECAME_A_REQUEST | _REFUSED | _CANCELED, name="batch_row_state"
            ),
            models.CheckConstraint(
                condition=Q(request__isnull=True) | Q(request=models.F("reservation")),
                name="batch_row_request_is_reserved",
            ),
        ]
        indexes = [
            models.Index(
                fields=["batch", "number"],
                condition=Q(request__isnull=True, ended=""),
                name="batch_row_waiting",
            )
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}#{self.number}"

    @property
    def status(self) -> str:
        """One of the five words of a request; a row that waits is queued."""
        if self.request is not None:
            return self.request.status
        return self.ended or Status.QUEUED
