"""Synthesis requests, their segments, attempts and outputs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id


class Status(models.TextChoices):
    """`queued` ⇄ `running` → one of the three ends, which is never left."""

    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    SUCCEEDED = "succeeded", _("Done")
    FAILED = "failed", _("Failed")
    CANCELED = "canceled", _("Canceled")


FINAL = (Status.SUCCEEDED, Status.FAILED, Status.CANCELED)


class Format(models.TextChoices):
    """Containers of outputs. `aac` is ADTS, `opus` is Ogg, `pcm` is 16-bit little-endian without a header."""

    MP3 = "mp3", "MP3"
    WAV = "wav", "WAV"
    FLAC = "flac", "FLAC"
    OPUS = "opus", "Opus"
    AAC = "aac", "AAC"
    PCM = "pcm", "PCM"


class SynthesisRequest(models.Model):
    """One text to be spoken. This row, and no queue, says what is to be done."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    api_key = models.ForeignKey("accounts.ApiKey", null=True, on_delete=models.SET_NULL, related_name="+")
    source = models.CharField(max_length=8)

    voice = models.ForeignKey("synthesis.Voice", on_delete=models.PROTECT, related_name="+")
    voice_version = models.ForeignKey(
        "synthesis.VoiceVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    engine = models.CharField(_("engine"), max_length=32)
    #: none | nearest_preset | zero_shot: how a cloned voice is really spoken. Empty for a preset.
    cloning = models.CharField(max_length=16, blank=True)
    title = models.CharField(_("title"), max_length=200, blank=True)
    text = models.TextField(_("text"))
    characters = models.PositiveIntegerField(_("characters"))
    language = models.CharField(_("language"), max_length=16)
    instruction = models.TextField(_("instruction"), blank=True)
    format = models.CharField(_("format"), max_length=8, choices=Format.choices, default=Format.MP3)
    speed = models.FloatField(_("speed"), default=1.0)
    seed = models.PositiveIntegerField(_("seed"))
    #: Somebody listens while it is spoken: the worker hands out each piece of sound as it comes (`synthesis.streams`).
    streamed = models.BooleanField(default=False, db_default=False)

    status = models.CharField(_("status"), max_length=12, choices=Status.choices, default=Status.QUEUED)
    priority = models.SmallIntegerField(_("priority"), default=0)
    #: Rises with each claim; every write of a worker names it, so that a superseded worker writes nothing.
    attempt = models.PositiveIntegerField(default=0)
    #: Attempts that ended in an error (not those whose worker was lost).
    failures = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(default=timezone.now)
    lease_until = models.DateTimeField(null=True)
    worker = models.CharField(max_length=128, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_message = models.TextField(blank=True)

    segments_total = models.PositiveIntegerField()
    segments_done = models.PositiveIntegerField(default=0)
    #: Seconds the engine was busy for this request, over all attempts.
    engine_seconds = models.FloatField(default=0)
    #: Seconds of sound of the finished file; outlives the file itself.
    audio_seconds = models.FloatField(default=0, db_default=0)
    #: Of the recording whose words are said in the voice (a conversion, without a text); 0 for a text.
    source_seconds = models.FloatField(default=0, db_default=0)
    #: An address that came with it and is told of `webhook_events` (`synthesis.services.callbacks`).
    webhook = models.CharField(max_length=2000, blank=True, default="", db_default="")
    webhook_events = ArrayField(models.CharField(max_length=16), null=True)
    #: The sweep has removed the stored sound of a request that ended badly.
    objects_deleted = models.BooleanField(default=False)

    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    started_at = models.DateTimeField(_("started"), null=True)
    completed_at = models.DateTimeField(_("completed"), null=True)
    #: The failed request that this one tries again.
    retry_of = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        verbose_name=_("tries again"),
    )
    #: The segment of another request that this one says once more, for comparison; not shown as a request of its own.
    take_of = models.ForeignKey(
        "synthesis.Segment",
        null=True,
        on_delete=models.SET_NULL,
        related_name="takes",
        db_index=False,
        verbose_name=_("take of"),
    )
    #: The words and the sound are gone; the row accounts for the characters.
    deleted_at = models.DateTimeField(_("deleted"), null=True)

    class Meta:
        verbose_name = _("synthesis request")
        verbose_name_plural = _("synthesis requests")
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="request_status_known"),
            models.CheckConstraint(
                condition=~Q(status="running") | Q(lease_until__isnull=False),
                name="request_running_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running"]) | Q(completed_at__isnull=False),
                name="request_ended_has_time",
            ),
            models.CheckConstraint(
                condition=Q(segments_done__lte=F("segments_total")), name="request_segments_within_total"
            ),
        ]
        indexes = [
            models.Index(fields=["take_of"], condition=Q(take_of__isnull=False), name="request_take"),
            models.Index(fields=["retry_of"], condition=Q(retry_of__isnull=False), name="request_retry"),
            # What ended lately: the reports look at it every few seconds.
            models.Index("completed_at", condition=Q(completed_at__isnull=False), name="request_ended"),
            models.Index(
                "team",
                F("priority").desc(),
                "created_at",
                condition=Q(status="queued"),
                name="request_queued",
            ),
            # Without the lease: renewing it then changes no index at all.
            models.Index(fields=["team", "user"], condition=Q(status="running"), name="request_at_work"),
            # What waits until a moment after its submission: retries.
            models.Index(
                fields=["team", "not_before"],
                condition=Q(status="queued", not_before__gt=F("created_at")),
                name="request_paused",
            ),
            models.Index("team", F("id").desc(), name="request_history"),
            models.Index("team", "user", F("id").desc(), name="request_history_user"),
            models.Index(
                "engine", F("completed_at").desc(), condition=Q(status="succeeded"), name="request_recent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.status})"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in FINAL

    @property
    def queue_seconds(self) -> float | None:
        """Seconds between submission and the first claim; None while it waits."""
        return (self.started_at - self.created_at).total_seconds() if self.started_at else None


class Segment(models.Model):
    """A piece of the text. Its sound is kept as soon as it exists, so that a retry resumes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(SynthesisRequest, on_delete=models.CASCADE, related_name="segments")
    index = models.PositiveIntegerField()
    text = models.TextField()
    #: Seconds of silence after it.
    pause = models.FloatField(default=0)
    audio_key = models.CharField(max_length=255, blank=True)
    seconds = models.FloatField(null=True)
    #: Attempt that made the sound.
    attempt = models.PositiveIntegerField(null=True)
    #: The take that is heard instead of the first sound; none for the first.
    take = models.ForeignKey(
        SynthesisRequest, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["request", "index"], name="segment_once")]

    def __str__(self) -> str:
        return f"{self.request_id}#{self.index}"


class Attempt(models.Model):
    """One claim of a request by a worker, and how it ended."""

    class Outcome(models.TextChoices):
        """Empty while it runs."""

        SUCCEEDED = "succeeded", _("Done")
        FAILED = "failed", _("Failed")
        LOST = "lost", _("Worker lost")
        CANCELED = "canceled", _("Canceled")
        RETURNED = "returned", _("Returned to the queue")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    request = models.ForeignKey(SynthesisRequest, on_delete=models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=128)
    started_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, choices=Outcome.choices, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    #: For operators; never shown to the user, never user text.
    detail = models.TextField(blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["request", "number"], name="attempt_once")]

    def __str__(self) -> str:
        return f"{self.request_id} attempt {self.number}"


class Output(models.Model):
    """The finished file, in object storage under a key that names team, request and attempt."""

    request = models.OneToOneField(
        SynthesisRequest, primary_key=True, on_delete=models.CASCADE, related_name="output"
    )
    key = models.CharField(max_length=255)
    content_type = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    seconds = models.FloatField()
    sample_rate = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
