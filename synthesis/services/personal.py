"""What belongs to a person here: the voices that they made, and the texts that they had spoken."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.errors import NotFound
from accounts.models import User
from synthesis import storage
from synthesis.models import (
    Batch,
    BatchRow,
    Callback,
    Favourite,
    MisuseReport,
    Output,
    Script,
    Segment,
    SettingsPreset,
    SynthesisRequest,
    Voice,
    VoiceConsent,
    VoiceFavourite,
    VoiceVersion,
)
from synthesis.services import batches, clips, dispatch

logger = logging.getLogger(__name__)


def export(user: User) -> Iterator[tuple[str, bytes | Iterator[bytes]]]:
    """Voices with their recordings, requests with their texts, and what was made of them."""
    for voice in Voice.objects.filter(created_by=user).order_by("created_at"):
        folder = f"voices/{voice.pk}"
        versions = list(voice.versions.order_by("number"))
        yield f"{folder}/voice.json", _json(_voice(voice, versions))
        for version in versions:
            sent = {clip["key"]: f"recording-{clip['number']}" for clip in clips.of(version)}
            files = sent | {version.original_key: "original", version.processed_key: "prepared.wav"}
            for key, kind in files.items():
                if (content := _stored(key)) is not None:
                    yield f"{folder}/{version.number}-{kind}", content
    yield "requests.jsonl", _requests(user)
    yield "waiting.jsonl", _waiting(user)
    yield (
        "misuse-reports.json",
        _json(
            list(
                MisuseReport.objects.filter(reporter=user)
                .order_by("created_at")
                .values("id", "voice_id", "kind", "details", "created_at", "decision", "decided_at", "note")
            )
        ),
    )
    made = Output.objects.filter(request__user=user).select_related("request").order_by("request")
    for output in made.iterator(chunk_size=200):
        if (content := _stored(output.key)) is not None:
            yield f"audio/{output.request_id}.{output.request.format}", content


def _voice(voice: Voice, versions: list[VoiceVersion]) -> dict[str, Any]:
    return {
        "id": voice.pk,
        "name": voice.name,
        "team": voice.team_id,
        "language": voice.language,
        "created": voice.created_at,
        "deleted": voice.deleted_at,
        "versions": [
            {
                "number": one.number,
                "file": one.original_name,
                "transcript": one.transcript,
                "consent": one.consent_statement,
                "consent_language": one.consent_language,
                "consent_version": one.consent_version,
                "consent_at": one.consent_at,
            }
            for one in versions
        ],
    }


def _requests(user: User) -> Iterator[bytes]:
    for one in SynthesisRequest.objects.filter(user=user).order_by("id").iterator(chunk_size=500):
        yield (
            json.dumps(
                {
                    "id": one.pk,
                    "team": one.team_id,
                    "created": one.created_at,
                    "status": one.status,
                    "title": one.title,
                    "text": one.text,
                    "instruction": one.instruction,
                    "language": one.language,
                    "voice": one.voice_id,
                    "characters": one.characters,
                },
                ensure_ascii=False,
                default=str,
            ).encode()
            + b"\n"
        )


def _waiting(user: User) -> Iterator[bytes]:
    """Rows of batches that are no requests (yet)."""
    rows = BatchRow.objects.filter(batch__user=user, input__isnull=False).order_by("batch", "number")
    for row in rows.iterator(chunk_size=500):
        entry = {"batch": row.batch_id, "row": row.number, **(row.input or {})}
        yield json.dumps(entry, ensure_ascii=False, default=str).encode() + b"\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str).encode()


def _stored(key: str) -> bytes | None:
    if not key:
        return None
    try:
        return storage.get(key)
    except NotFound:
        return None


def erase(user: User) -> dict[str, int]:
    """Remove texts, sound and voices; in the caller's transaction, and the stored objects after it."""
    now = timezone.now()
    # Takes of this person's texts, whoever asked for them, hold the same words.
    takes = list(SynthesisRequest.objects.filter(take_of__request__user=user).values_list("pk", flat=True))
    requests = SynthesisRequest.objects.filter(Q(user=user) | Q(pk__in=takes))
    # As in `synthesis.contributions.cancel_waiting`: everything is locked before the first counter.
    held = batches.hold_all_waiting(user_id=user.pk)
    unfinished = requests.filter(completed_at=None).select_for_update(of=("self",)).order_by("pk")
    ids = list(unfinished.values_list("pk", flat=True))
    for batch in held:
        batches.end_waiting(batch)
    for request_id in ids:
        dispatch.cancel(request_id)
    prefixes = [storage.request_prefix(team, pk) for team, pk in requests.values_list("team_id", "pk")]
    voices = list(Voice.objects.filter(created_by=user))
    prefixes += [storage.voice_prefix(voice.team_id, voice.pk) for voice in voices if voice.team_id]
    consents = VoiceConsent.objects.filter(created_by=user)
    VoiceVersion.objects.filter(consent_recording__in=consents).update(consent_recording=None)
    counts = {
        "texts": requests.exclude(text="").count(),
        "recordings": Output.objects.filter(request__in=requests).delete()[0],
        "voices": len(voices),
        "voice_recordings": VoiceVersion.objects.filter(voice__in=voices).count(),
        "consent_recordings": consents.filter(deleted_at=None).update(deleted_at=now),
        # That a voice was reported stays, for whoever decides about it; who said what does not.
        "misuse_reports": MisuseReport.objects.filter(reporter=user).update(
            reporter=None, email="", details=""
        ),
    }
    Segment.objects.filter(request__in=requests).delete()
    made = Batch.objects.filter(user=user)
    Callback.objects.filter(Q(about__in=requests.values("id")) | Q(about__in=made.values("id"))).delete()
    made.delete()
    Script.objects.filter(user=user).delete()
    Favourite.objects.filter(user=user).delete()
    VoiceFavourite.objects.filter(user=user).delete()
    SettingsPreset.objects.filter(user=user).delete()
    requests.update(text="", title="", instruction="", webhook="", deleted_at=now, objects_deleted=False)
    VoiceVersion.objects.filter(voice__in=voices).update(
        transcript="",
        original_name="",
        nearest={},
        clips=[],
        origin={},
        consent_by=None,
        original_key="",
        processed_key="",
    )
    for voice in voices:
        # The row stays, since requests of others name it; nobody can speak with it.
        Voice.objects.filter(pk=voice.pk).update(
            name=f"{_('Erased')} {str(voice.pk)[:8]}",
            style="",
            created_by=None,
            deleted_at=now,
            objects_deleted=False,
        )
    transaction.on_commit(lambda: _remove(prefixes), robust=True)
    return counts


def _remove(prefixes: list[str]) -> None:
    try:
        for prefix in prefixes:
            storage.delete_prefix(prefix)
    except storage.StorageUnavailable:
        # Rows are marked: the sweep removes what is left.
        logger.warning("Storage does not answer: the sweep removes an erased person's objects")
