"""Dialogues: each line is a request of its own, so that a failed one is retried alone; together they are one file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, cast
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import ChorusError, Conflict, InvalidInput, NotFound
from accounts.services import audit
from synthesis.audio import encode
from synthesis.audio.join import Samples, join
from synthesis.engines import capabilities
from synthesis.errors import NotReady, OutputExpired
from synthesis.models import Format, Script, ScriptLine, Status, SynthesisRequest
from synthesis.services import requests, sounding, submission, subtitles
from synthesis.text.dialogue import Line

#: A scene; a book is for a batch.
MOST_LINES = 200
MOST_PAUSE = 10.0


def visible(actor: Actor) -> QuerySet[Script]:
    """The team's, the newest first."""
    actor.require(permissions.SYNTHESES_READ)
    return Script.objects.filter(team=actor.team).select_related("user").order_by("-id")


def find(actor: Actor, script_id: UUID) -> Script:
    """One of the team's; NotFound."""
    found = visible(actor).filter(id=script_id).first()
    if found is None:
        raise NotFound
    return found


def lines(script: Script) -> list[ScriptLine]:
    """In order, with their requests, voices and outputs."""
    return list(script.lines.select_related("request__voice", "request__voice_version", "request__output"))


def create(
    *,
    actor: Actor,
    title: str,
    lines: Sequence[Line],
    cast: Mapping[str, str],
    format: str = Format.MP3,
    pause: float = 0.5,
) -> Script:
    """Have a dialogue spoken: all of its lines, or (quota, a voice that is gone, a text that cannot be) none.

    `cast` has a voice (its id) for each speaker; `pause` in seconds between lines that say nothing themselves. Raises
    what `submission` raises, with the number of the line in its message, as its author counts them.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    if not lines:
        raise InvalidInput(_("Write at least one line."), code="script_empty", param="text")
    if len(lines) > MOST_LINES:
        raise InvalidInput(
            _("A script has at most %(max)d lines; this one has %(n)d.")
            % {"max": MOST_LINES, "n": len(lines)},
            code="script_too_long",
            param="text",
        )
    if not 0 <= pause <= MOST_PAUSE:
        raise InvalidInput(
            _("A pause lasts 0 to %(max)d seconds.") % {"max": MOST_PAUSE},
            code="pause_out_of_range",
            param="pause",
        )
    title = " ".join(title.split())[: submission.TITLE_CHARACTERS]
    with transaction.atomic():
        script = Script.objects.create(
            team=actor.team, user=actor.user, title=title, format=format, pause=pause, cast=dict(cast)
        )
        for number, line in enumerate(lines, 1):
            request = _speak(actor, script, number, line.speaker, line.text, at=line.line)
            ScriptLine.objects.create(
                script=script,
                number=number,
                speaker=line.speaker[:100],
                text=line.text,
                pause=line.pause,
                request=request,
            )
        audit.record("script.created", actor=actor, target=script, lines=len(lines))
    return script


def retry(*, actor: Actor, script_id: UUID, number: int) -> ScriptLine:
    """Have one line spoken again: one that failed, was cancelled or whose sound is gone. Conflict for others."""
    actor.require(permissions.SYNTHESES_WRITE)
    script = find(actor, script_id)
    with transaction.atomic():
        line = script.lines.select_for_update().filter(number=number).first()
        if line is None:
            raise NotFound
        before = line.request
        if before is not None and (not before.is_final or hasattr(before, "output")):
            raise Conflict(_("This line is spoken already, or about to be."), code="line_not_failed")
        line.request = _speak(actor, script, number, line.speaker, line.text)
        line.save(update_fields=["request"])
    return line


def _speak(
    actor: Actor, script: Script, number: int, speaker: str, text: str, *, at: int = 0
) -> SynthesisRequest:
    """Submit a line; `at` is where it stands in the text that it came in."""
    try:
        planned = submission.plan(
            actor=actor,
            voice=str(script.cast.get(speaker, "")),
            text=text,
            format=script.format,
            title=" · ".join(part for part in (script.title, f"{number:03}", speaker) if part)[
                : submission.TITLE_CHARACTERS
            ],
        )
        return submission.submit(actor=actor, planned=planned)
    except InvalidInput as error:
        raise InvalidInput(
            _("Line %(n)d: %(problem)s") % {"n": at or number, "problem": error},
            code=error.code,
            param="text",
        ) from None


def spoken(script: Script) -> list[SynthesisRequest]:
    """The requests of all lines. Raises NotReady unless every one is done, OutputExpired when sound is gone."""
    found = []
    for line in lines(script):
        if line.request is None or line.request.status != Status.SUCCEEDED:
            raise NotReady(_("Line %(n)d is not spoken yet.") % {"n": line.number})
        if not hasattr(line.request, "output"):
            raise OutputExpired
        found.append(line.request)
    return found


def write_joined(script: Script, container: str, target: IO[bytes]) -> encode.Encoded:
    """The whole dialogue as one file, with its pauses. Raises NotReady and OutputExpired."""
    made = spoken(script)
    rate = capabilities(made[0].engine).sample_rate
    return encode.encode_file(
        target,
        join(_sounds(script, made), rate=rate),
        format=cast(encode.Format, container),
        rate=rate,
        title=script.title,
        comment="Chorus",
    )


def _sounds(script: Script, made: list[SynthesisRequest]) -> Iterator[tuple[Samples, float]]:
    """As of `sounding.parts`, of all lines one after the other."""
    for line, request in zip(script.lines.all(), made, strict=True):
        pieces = list(sounding.parts(request))
        for place, (samples, own) in enumerate(pieces):
            yield samples, pause_after(script, line) if place == len(pieces) - 1 else own


def pause_after(script: Script, line: ScriptLine) -> float:
    """Seconds of silence after a line: its own, else the script's."""
    return script.pause if line.pause is None else line.pause


def write_subtitles(script: Script, format: str) -> str:
    """`srt` or `vtt` of the joined file, a cue a segment, who speaks before their words. As `write_joined` raises."""
    made = spoken(script)
    words = []
    for line, request in zip(script.lines.all(), made, strict=True):
        first, *more = subtitles.texts(request)
        words += [f"{line.speaker}: {first}" if line.speaker else first, *more]
    spans = sounding.spans_of(_sounds(script, made), capabilities(made[0].engine).sample_rate)
    return subtitles.write(spans, words, format)


def delete(*, actor: Actor, script_id: UUID) -> None:
    """Remove a script with the words and the sound of its lines."""
    actor.require(permissions.SYNTHESES_WRITE)
    script = find(actor, script_id)
    for request_id in script.lines.values_list("request_id", flat=True):
        if request_id is None:
            continue
        try:
            requests.delete(actor=actor, request_id=request_id)
        except ChorusError as error:
            # Deleted in the history before.
            if error.status != 404:
                raise
    with transaction.atomic():
        audit.record("script.deleted", actor=actor, target=script)
        script.delete()
