"""Takes of a segment: said once more, compared, chosen.

A take is a request of its own for the one segment, so that quota, fair share, cancellation and what happens when a
worker is killed are the same as for every other. Choosing one joins the recording anew and changes nothing else: the
first sound is kept, and the choice can be taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, NotFound
from accounts.ids import new_id
from accounts.services import audit
from synthesis import storage
from synthesis.errors import NotReady, OutputExpired
from synthesis.models import Output, Segment, Status, SynthesisRequest
from synthesis.services import requests, sounding, submission
from synthesis.services.dispatch import Made

#: More than can be told apart by ear.
MOST = 10
#: Somebody else may choose at the same time; then it is joined once more.
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A segment of a finished request: where it is heard (seconds), its takes, and the one that is heard."""

    segment: Segment
    start: float
    end: float
    takes: list[SynthesisRequest] = field(default_factory=list)


def parts(actor: Actor, request_id: UUID) -> tuple[SynthesisRequest, list[Part]]:
    """The segments of one of the team's finished requests. Raises RequestNotFound, NotReady and OutputExpired."""
    request, output = _finished(actor, request_id)
    spans = sounding.spans(request, output)
    takes: dict[UUID | None, list[SynthesisRequest]] = {}
    found = SynthesisRequest.objects.filter(take_of__request=request, deleted_at=None)
    for take in found.select_related("output", "user").order_by("id"):
        takes.setdefault(take.take_of_id, []).append(take)
    segments = request.segments.all()
    return request, [
        Part(segment, start, end, takes.get(segment.id, []))
        for segment, (start, end) in zip(segments, spans, strict=True)
    ]


def again(*, actor: Actor, request_id: UUID, index: int) -> SynthesisRequest:
    """Have a segment said once more with another seed; only its characters are reserved and charged.

    Raises what `submission` raises, NotFound, NotReady, OutputExpired, and Conflict (`no_text`, `engine_changed`,
    `takes_limit_reached`).
    """
    actor.require(permissions.SYNTHESES_WRITE)
    request, _output = _finished(actor, request_id)
    segment = _segment(request, index)
    if request.source_seconds:
        raise Conflict(
            _("This part says a recording and no text. Send the recording again with another seed."),
            code="no_text",
        )
    if request.engine != settings.CHORUS_ENGINE:
        raise Conflict(
            _(
                "This was made by another engine than the one in use: it would not sound the same. Use it again."
            ),
            code="engine_changed",
        )
    planned = submission.plan(
        actor=actor,
        voice=str(request.voice_id),
        text=segment.text,
        format=request.format,
        speed=request.speed,
        language=request.language,
        instruction=request.instruction,
    )
    with transaction.atomic():
        # Two at once would both find a place.
        Segment.objects.select_for_update().get(id=segment.id)
        if SynthesisRequest.objects.filter(take_of=segment, deleted_at=None).count() >= MOST:
            raise Conflict(
                _("There are %(limit)d takes of this part already. Choose among them, or change the text.")
                % {"limit": MOST},
                code="takes_limit_reached",
            )
        take = submission.submit(actor=actor, planned=planned)
        # In one piece, as it was, and by the recording of the voice that the rest was made from.
        take.segments.all().delete()
        Segment.objects.create(request=take, index=0, text=segment.text)
        take.take_of, take.voice_version, take.segments_total = segment, request.voice_version, 1
        take.save(update_fields=["take_of", "voice_version", "segments_total"])
    return take


def choose(*, actor: Actor, request_id: UUID, index: int, take_id: UUID | None) -> Output:
    """Let a take be heard in the recording, or (None) the first sound again; the recording is joined anew.

    Raises NotFound, NotReady and OutputExpired.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    request, _output = _finished(actor, request_id)
    segment = _segment(request, index)
    if take_id is not None:
        _check_take(segment, take_id)
    for _try in range(_TRIES):
        before = _choices(request)
        made = _render(request, before | {segment.id: take_id})
        with transaction.atomic():
            output = Output.objects.select_for_update().filter(request=request).first()
            if output is not None and _choices(request) == before:
                transaction.on_commit(partial(_forget, output.key), robust=True)
                for name in ("key", "bytes", "sha256", "seconds"):
                    setattr(output, name, getattr(made, name))
                output.save(update_fields=["key", "bytes", "sha256", "seconds"])
                Segment.objects.filter(id=segment.id).update(take=take_id)
                SynthesisRequest.objects.filter(id=request.id).update(audio_seconds=made.seconds)
                audit.record(
                    "synthesis.take_chosen", actor=actor, target=request, part=index, take=str(take_id or "")
                )
                return output
        _forget(made.key)
        if output is None:
            raise OutputExpired
    raise Conflict(_("Somebody else is changing this recording. Try again."), code="recording_busy")


def sound(actor: Actor, request_id: UUID, index: int) -> str:
    """Where the first sound of a segment is, as FLAC. Raises NotFound, NotReady and OutputExpired."""
    request, _output = _finished(actor, request_id)
    segment = _segment(request, index)
    if not segment.audio_key:
        raise OutputExpired
    return segment.audio_key


def _finished(actor: Actor, request_id: UUID) -> tuple[SynthesisRequest, Output]:
    request = requests.find(actor, request_id)
    if request.status != Status.SUCCEEDED:
        raise NotReady(_("There is no recording: the request has not ended, or its time was over."))
    output: Output | None = getattr(request, "output", None)
    if output is None:
        raise OutputExpired
    return request, output


def _segment(request: SynthesisRequest, index: int) -> Segment:
    found = request.segments.filter(index=index).first()
    if found is None:
        raise NotFound
    return found


def _check_take(segment: Segment, take_id: UUID) -> None:
    take = SynthesisRequest.objects.filter(id=take_id, take_of=segment, deleted_at=None).first()
    if take is None:
        raise NotFound
    if take.status != Status.SUCCEEDED:
        raise NotReady(_("This take is not done yet."))
    if not take.segments.exclude(audio_key="").exists():
        raise OutputExpired


def _choices(request: SynthesisRequest) -> dict[UUID, UUID | None]:
    return dict(request.segments.values_list("id", "take_id"))


def _render(request: SynthesisRequest, choices: dict[UUID, UUID | None]) -> Made:
    """Join the chosen sounds into a file of its own."""
    # Below the request's own prefix, so that it ends with it; in a folder of its own, as are peaks and spans.
    folder = f"{storage.request_prefix(request.team_id, request.id)}{_FOLDER}{new_id()}"
    return sounding.store(
        request, sounding.parts(request, choices), lambda ending: f"{folder}/audio.{ending}"
    )


_FOLDER = "joined-"


def _forget(key: str) -> None:
    """Remove a joined file that is not heard any more; what a worker made stays for the choice to be taken back."""
    folder = key.rpartition("/")[0]
    if folder.rpartition("/")[2].startswith(_FOLDER):
        storage.delete_prefix(f"{folder}/")
