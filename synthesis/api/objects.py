"""What voices and synthesis requests look like in the API."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.reverse import reverse

from accounts.api.rendering import render
from synthesis import presets
from synthesis.audio import quality
from synthesis.audio.decode import UnreadableAudio
from synthesis.engines import capabilities
from synthesis.models import Format, Status, SynthesisRequest, Voice, VoiceVersion
from synthesis.services import callbacks, clips, shown, voice_marks
from synthesis.services.queue import Outlook

#: Of a recording that could not be listened to at all.
_REFUSED = UnreadableAudio.message
_CLONING = ("none", "nearest_preset", "zero_shot")
_CLONING_HELP = (
    "How a cloned voice is really spoken: `zero_shot`, or `nearest_preset` by an engine that cannot clone. Null for a "
    "preset."
)


class WarningSerializer(serializers.Serializer):
    """Something about a recording."""

    code = serializers.CharField(help_text=f"One of {', '.join(f'`{code}`' for code in quality.MESSAGES)}, …")
    message = serializers.CharField(help_text="What it is and what to do about it, in the caller's language.")


class VoiceQualitySerializer(serializers.Serializer):
    """What was measured in the recording."""

    seconds = serializers.FloatField(help_text="Length of the prepared clip.")
    window_start = serializers.FloatField(help_text="The part of the recording that is used, in seconds.")
    window_end = serializers.FloatField()
    original_seconds = serializers.FloatField()
    measured = serializers.DictField(help_text="Levels, clipping, noise, and `flaws` by code.")
    warnings = WarningSerializer(many=True, help_text="What could be better, the worst first.")


class RecordingSerializer(serializers.Serializer):
    """One of the recordings that were sent; the best is used."""

    number = serializers.IntegerField()
    name = serializers.CharField(allow_blank=True, help_text="Of the file.")
    used = serializers.BooleanField()
    score = serializers.FloatField(
        allow_null=True, help_text="How well it would do, higher is better; null when it cannot be used."
    )
    warnings = WarningSerializer(many=True)


class ConsentSerializer(serializers.Serializer):
    """Who said that the speaker agrees, and to what."""

    statement = serializers.CharField(help_text="Word for word as it was agreed to.")
    language = serializers.CharField(
        allow_blank=True, help_text="Of the statement; empty before statements had one."
    )
    version = serializers.IntegerField(allow_null=True, help_text="Of the statement in that language.")
    by = serializers.EmailField(allow_null=True)
    at = serializers.DateTimeField()


class VoiceSerializer(serializers.Serializer):
    """A voice: a preset of the engine, or one of the team's own."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Voice.Kind.values)
    language = serializers.CharField()
    gender = serializers.CharField(allow_blank=True)
    style = serializers.CharField(allow_blank=True)  # type: ignore[assignment]  # the API's name, also REST framework's
    engine = serializers.CharField()
    cloning = serializers.ChoiceField(_CLONING, allow_null=True, help_text=_CLONING_HELP)
    nearest_preset = serializers.CharField(
        allow_null=True, help_text="The name of the preset that speaks instead."
    )
    version = serializers.IntegerField(allow_null=True, help_text="Of the recording; null for a preset.")
    transcript = serializers.CharField(allow_null=True)
    quality = VoiceQualitySerializer(allow_null=True)
    recordings = RecordingSerializer(many=True)
    consent = ConsentSerializer(allow_null=True)
    shared = serializers.BooleanField(
        help_text="With the whole team. Otherwise only who made it and who manages the team see it."
    )
    owner = serializers.EmailField(allow_null=True, help_text="Who made it; null for a preset.")
    tags = serializers.ListField(
        child=serializers.CharField(), help_text="Your team's, also of a preset; by name."
    )
    sample_url = serializers.URLField(help_text="Fetch it with the key.")
    created_at = serializers.DateTimeField()
    voice_id = serializers.UUIDField(help_text="`id`, as ElevenLabs calls it; so are the next four fields.")
    category = serializers.ChoiceField(["premade", "cloned"])
    description = serializers.CharField(allow_blank=True)
    labels = serializers.DictField(child=serializers.CharField())
    preview_url = serializers.URLField()


def voice(row: Voice, request: Request) -> dict[str, Any]:
    """`row` with `created_by`, and `current_version` with its `consent_by`, selected."""
    engine = capabilities(settings.CHORUS_ENGINE)
    version = row.current_version
    cloning = engine.cloning if row.kind == Voice.Kind.CLONED else None
    nearest = version.nearest.get(engine.name, "") if version and cloning == "nearest_preset" else ""
    speaks = presets.find(engine.name, nearest)
    style = _(row.style) if row.style else ""
    sample = reverse("api_voice_sample", args=[row.id], request=request)
    return render(
        VoiceSerializer,
        {
            "id": row.id,
            "name": row.name,
            "kind": row.kind,
            "language": row.language,
            "gender": row.gender,
            "style": style,
            "engine": row.engine or engine.name,
            "cloning": cloning,
            "nearest_preset": speaks.name if speaks else None,
            "version": version.number if version else None,
            "transcript": version.transcript if version else None,
            "quality": _quality(version) if version else None,
            "recordings": _recordings(version) if version else [],
            "consent": _consent(version) if version else None,
            "shared": row.shared,
            "owner": row.created_by.email if row.created_by else None,
            "tags": voice_marks.tags_of(request.auth.team, row),  # type: ignore[union-attr]
            "sample_url": sample,
            "created_at": row.created_at,
            "voice_id": row.id,
            "category": category(row),
            "description": style,
            "labels": {
                name: value for name, value in (("language", row.language), ("gender", row.gender)) if value
            },
            "preview_url": sample,
        },
    )


def category(row: Voice) -> str:
    """ElevenLabs' word for the kind of a voice."""
    return "cloned" if row.kind == Voice.Kind.CLONED else "premade"


def _quality(version: VoiceVersion) -> dict[str, Any]:
    return {
        "seconds": version.seconds,
        "window_start": version.window_start,
        "window_end": version.window_end,
        "original_seconds": version.original_seconds,
        "measured": version.quality,
        "warnings": _warnings(version.quality.get("flaws", [])),
    }


def _recordings(version: VoiceVersion) -> list[dict[str, Any]]:
    return [
        {
            "number": clip["number"],
            "name": clip["name"],
            "used": clip["chosen"],
            "score": clip["score"],
            "warnings": _warnings(clip["problems"]),
        }
        for clip in clips.of(version)
    ]


def _warnings(codes: list[str]) -> list[dict[str, str]]:
    return [{"code": code, "message": str(quality.MESSAGES.get(code, _REFUSED))} for code in codes]


def _consent(version: VoiceVersion) -> dict[str, Any]:
    by = version.consent_by
    return {
        "statement": version.consent_statement,
        "language": version.consent_language,
        "version": version.consent_version,
        "by": by.email if by else None,
        "at": version.consent_at,
    }


class VoiceVersionSerializer(serializers.Serializer):
    """A recording of a voice; requests keep the one that they were made with."""

    version = serializers.IntegerField()
    current = serializers.BooleanField(help_text="Whether it is what is spoken with now.")
    transcript = serializers.CharField(allow_blank=True)
    quality = VoiceQualitySerializer()
    recordings = RecordingSerializer(many=True)
    consent = ConsentSerializer()
    origin = serializers.DictField(
        help_text="Of an imported voice: what its file said of where it comes from and of the first consent."
    )
    sample_url = serializers.URLField(help_text="Fetch it with the key.")
    created_at = serializers.DateTimeField()


def voice_version(row: VoiceVersion, voice: Voice, request: Request) -> dict[str, Any]:
    """`row` with `consent_by` selected."""
    sample = reverse("api_voice_sample", args=[voice.id], request=request)
    return render(
        VoiceVersionSerializer,
        {
            "version": row.number,
            "current": row.id == voice.current_version_id,
            "transcript": row.transcript,
            "quality": _quality(row),
            "recordings": _recordings(row),
            "consent": _consent(row),
            "origin": row.origin,
            "sample_url": f"{sample}?version={row.number}",
            "created_at": row.created_at,
        },
    )


class SynthesisEchoSerializer(serializers.Serializer):
    """What was asked for, after defaults."""

    text = serializers.CharField(help_text="Empty for a conversion.")
    source_seconds = serializers.FloatField(
        allow_null=True, help_text="Of the recording that is said in another voice; null for a text."
    )
    voice = serializers.UUIDField()
    language = serializers.CharField()
    instruction = serializers.CharField(allow_blank=True)
    format = serializers.ChoiceField(Format.values)
    speed = serializers.FloatField()
    seed = serializers.IntegerField()
    title = serializers.CharField(allow_blank=True)


class SynthesisOutputSerializer(serializers.Serializer):
    """The finished file."""

    url = serializers.URLField(help_text="Fetch it with the key.")
    content_type = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    seconds = serializers.FloatField()
    sample_rate = serializers.IntegerField(help_text="Hz")
    expires_at = serializers.DateTimeField()


class SynthesisErrorSerializer(serializers.Serializer):
    """Why it failed."""

    code = serializers.CharField()
    message = serializers.CharField()


class SynthesisVoiceSerializer(serializers.Serializer):
    """The voice, as far as a list needs it."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Voice.Kind.values)


class MetricsSerializer(serializers.Serializer):
    """Times in seconds; null until they are known."""

    queue_seconds = serializers.FloatField(allow_null=True)
    engine_seconds = serializers.FloatField()
    audio_seconds = serializers.FloatField(allow_null=True)
    real_time_factor = serializers.FloatField(allow_null=True)
    characters = serializers.IntegerField()


class UrlsSerializer(serializers.Serializer):
    """Where to go from here."""

    get = serializers.URLField()
    cancel = serializers.URLField()
    audio = serializers.URLField()
    events = serializers.URLField()
    stream = serializers.URLField(help_text="`events`, by the name that Replicate's clients know.")
    web = serializers.URLField()


class SynthesisSerializer(serializers.Serializer):
    """A synthesis request."""

    id = serializers.UUIDField()
    status = serializers.ChoiceField(Status.values)
    title = serializers.CharField(allow_blank=True)
    voice = SynthesisVoiceSerializer()
    engine = serializers.CharField()
    cloning = serializers.ChoiceField(_CLONING, allow_null=True, help_text=_CLONING_HELP)
    characters = serializers.IntegerField(help_text="What it costs when it succeeds.")
    segments_total = serializers.IntegerField()
    segments_done = serializers.IntegerField()
    queue_position = serializers.IntegerField(
        allow_null=True, help_text="1 for the next one. Null unless queued, and in lists."
    )
    ahead = serializers.IntegerField(
        allow_null=True, help_text="Requests that will be taken before this one."
    )
    eta_seconds = serializers.IntegerField(
        allow_null=True, help_text="Until it is done. Null in lists, and while no worker is there to do it."
    )
    workers = serializers.IntegerField(
        allow_null=True, help_text="Workers that could speak it. Null in lists."
    )
    input = SynthesisEchoSerializer()
    output = SynthesisOutputSerializer(
        allow_null=True, help_text="Null until it succeeded, and again when the file's time is over."
    )
    error = SynthesisErrorSerializer(allow_null=True)
    metrics = MetricsSerializer()
    source = serializers.ChoiceField(["api", "web"])  # type: ignore[assignment]  # the API's name, also REST framework's
    webhook = serializers.CharField(
        allow_null=True, help_text="The address that came with it and is told of `webhook_events_filter`."
    )
    webhook_events_filter = serializers.ListField(child=serializers.ChoiceField(callbacks.EVENTS))
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True)
    urls = UrlsSerializer()


def synthesis(row: SynthesisRequest, request: Request, *, outlook: Outlook | None = None) -> dict[str, Any]:
    """`row` with `voice` and `output` selected; `outlook` is left out of lists, where it would cost too much."""
    urls = {
        "get": reverse("api_synthesis", args=[row.id], request=request),
        "cancel": reverse("api_synthesis_cancel", args=[row.id], request=request),
        "audio": reverse("api_synthesis_audio", args=[row.id], request=request),
        "events": reverse("api_synthesis_events", args=[row.id], request=request),
        "web": reverse("request", args=[row.id], request=request),
    }
    body = shown.request(row, urls=urls, output=getattr(row, "output", None), outlook=outlook)
    return render(SynthesisSerializer, body)
