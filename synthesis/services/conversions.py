"""Saying the words of a recording in another voice.

A conversion is a synthesis request without a text: its segments are the pieces of a recording, which lie in storage
below the request. The request is written first and held back until they are there, so that a process killed in
between leaves nothing that nobody knows of: when its time is over a worker takes it, finds no recording, and it fails
like any other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import soxr
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import InvalidInput
from accounts.services import idempotency, limits
from synthesis import doorbell, events, storage
from synthesis.audio import pieces, prepare, speech
from synthesis.audio.decode import Clip, Samples, decode
from synthesis.engines import capabilities
from synthesis.models import Format, Status, SynthesisRequest
from synthesis.services import callbacks, pools, requests, submission
from synthesis.text import segmenting

#: What a second of the recording counts: as much as English text that takes a second to say (150 words of 6 characters
#: a minute; ElevenLabs counts 1,000 a minute, which is 17).
CHARACTERS_PER_SECOND = 15
#: CosyVoice3's tokenizer of speech takes 30 s at once.
_LONGEST_PIECE = 25.0
_LEAST_SPEECH_SECONDS = 0.3
#: So long a request waits for its recording; no upload takes longer, since no connection does.
UPLOAD_SECONDS = 600


@dataclass(frozen=True)
class Conversion(submission.Plan):
    """A conversion that passed every check; `pieces` are (n,) float32 mono at the engine's rate."""

    pieces: Sequence[Samples] = ()

    @cached_property
    def segments(self) -> list[segmenting.Segment]:
        """One for each piece."""
        return [segmenting.Segment(text="", pause_after=0.0, kind="sentence") for _piece in self.pieces]


def plan(
    *,
    actor: Actor,
    voice: str,
    audio: bytes,
    filename: str = "",
    format: str = Format.MP3,
    seed: int | None = None,
    title: str = "",
    webhook: str = "",
    webhook_events_filter: Sequence[str] | None = None,
) -> Conversion:
    """Check a conversion without writing anything.

    Raises InvalidInput (an engine that converts nothing, what is no speech, UnknownVoice, …) or NotAllowed.
    """
    submission.check_actor(actor)
    engine = capabilities(settings.CHORUS_ENGINE)
    if not engine.conversion:
        raise InvalidInput(
            _("The engine %(engine)s cannot say a recording in another voice. Send its words as text.")
            % {"engine": engine.label},
            code="conversion_not_supported",
            param="audio",
        )
    chosen = submission.find_voice(actor, voice)
    submission.check_format(format)
    seed = submission.checked_seed(seed)
    title = submission.checked_title(title) or _name_of(filename)
    told = callbacks.checked(webhook, webhook_events_filter)
    clip = decode(audio)
    if speech.find_speech(clip.samples, clip.rate).seconds < _LEAST_SPEECH_SECONDS:
        raise InvalidInput(
            _("We could not hear anyone speak here. Send a recording of speech."),
            code="audio_no_speech",
            param="audio",
        )
    characters = math.ceil(clip.seconds * CHARACTERS_PER_SECOND)
    limits.check_length(actor, characters, param="audio")
    return Conversion(
        voice=chosen,
        text="",
        characters=characters,
        language=chosen.language,
        instruction="",
        format=format,
        speed=1.0,
        seed=seed,
        title=title,
        cloning=engine.cloning if chosen.kind == chosen.Kind.CLONED else "",
        source_seconds=clip.seconds,
        webhook=webhook,
        webhook_events=told,
        pieces=_pieces(clip, engine.sample_rate),
    )


def _name_of(filename: str) -> str:
    """A title from a file's name, which is the sender's: only what can be shown of it."""
    name, dot, _ending = filename.rpartition(".")
    shown = "".join(character for character in (name if dot else filename) if character.isprintable())
    return shown.strip()[: submission.TITLE_CHARACTERS] or _("Converted recording")


def _pieces(clip: Clip, rate: int) -> list[Samples]:
    cut = pieces.cut(clip, longest=_LONGEST_PIECE)
    if clip.rate == rate:
        return cut
    return [np.asarray(soxr.resample(piece, clip.rate, rate), np.float32) for piece in cut]


def submit(*, actor: Actor, planned: Conversion) -> SynthesisRequest:
    """Reserve the characters and write the request down; no worker takes it before `upload`.

    Raises LimitReached, as `submission.submit` does.
    """
    return submission.submit(actor=actor, planned=planned, hold_seconds=UPLOAD_SECONDS)


def upload(*, actor: Actor, request: SynthesisRequest, planned: Conversion) -> None:
    """Store the recording of what was submitted, outside any transaction, and let the workers have it.

    Raises StorageUnavailable; the request is canceled then, and an Idempotency-Key may be used again.
    """
    rate = capabilities(request.engine).sample_rate
    try:
        for index, piece in enumerate(planned.pieces):
            storage.put(storage.source_key(request, index), prepare.to_wav(piece, rate), "audio/wav")
    except storage.StorageUnavailable:
        idempotency.forget(team=actor.team, body_id=str(request.id))
        requests.cancel(actor=actor, request_id=request.id)
        raise
    with transaction.atomic():
        held = SynthesisRequest.objects.filter(id=request.id, status=Status.QUEUED)
        if held.update(not_before=timezone.now()):
            doorbell.ring(pools.of_team(request.team_id))
            events.announce(request, queue_moved=True)
