"""Submitting a text: everything is checked, then quota, request and segments are written in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import InvalidInput, LimitReached, NotAllowed
from accounts.ids import new_id
from accounts.queries import Compiled, insert, prepared
from accounts.services import audit, ledger, limits, operator_settings
from synthesis import doorbell, events, instructions, traces
from synthesis.engines import Capabilities, capabilities
from synthesis.errors import BlockedVoice, UnknownVoice
from synthesis.languages import language_label
from synthesis.models import Format, Segment, SynthesisRequest, Voice
from synthesis.models.voices import sight
from synthesis.services import callbacks, pools
from synthesis.text import clean, language, segmenting

TITLE_CHARACTERS = 200
#: The error for an unknown voice names so many that there are, and repeats a name of so many characters.
VOICES_NAMED = 12
NAME_CHARACTERS = 100
#: Seeds are kept in 31 bits, which every engine's generator takes.
SEED_MAX = 2**31 - 1
#: Comes again in so many seconds when a team's queue is full: about the time of a short request.
QUEUE_FULL_RETRY = 10


@dataclass(frozen=True)
class Plan:
    """A submission that passed every check, and what it will do."""

    voice: Voice
    text: str
    characters: int
    language: str
    instruction: str
    format: str
    speed: float
    seed: int
    title: str
    cloning: str
    #: Of the recording whose words are said instead of a text (`synthesis.services.conversions`).
    source_seconds: float = 0.0
    #: An address that is told of `webhook_events`; empty for none.
    webhook: str = ""
    webhook_events: tuple[str, ...] = ()

    @cached_property
    def segments(self) -> list[segmenting.Segment]:
        """What is spoken in one go; the engine hears each alone, so what a tag begins is ended and begun again."""
        engine = capabilities(settings.CHORUS_ENGINE)
        split = segmenting.split(self.text, language=self.language, limit=engine.segment_characters)
        if not engine.inline_tags:
            return split
        whole = instructions.balanced([segment.text for segment in split])
        return [replace(segment, text=text) for segment, text in zip(split, whole, strict=True)]


def plan(
    *,
    actor: Actor,
    voice: str,
    text: str,
    format: str = Format.MP3,
    speed: float = 1.0,
    language: str = "",
    instruction: str = "",
    seed: int | None = None,
    title: str = "",
    webhook: str = "",
    webhook_events_filter: Sequence[str] | None = None,
    param: str = "text",
    find: Callable[[Actor, str], Voice] | None = None,
) -> Plan:
    """Check a submission without writing anything.

    `voice` is an id or a name; `param` is what the caller's API calls the text; `find` is `find_voice`, or one that
    remembers. Raises InvalidInput (UnknownVoice among them) or NotAllowed.
    """
    check_actor(actor)
    engine = capabilities(settings.CHORUS_ENGINE)
    # As it was submitted, in NFC: what is trimmed before it is spoken counts as well, so that anybody can count along.
    characters = clean.count(text)
    limits.check_length(actor, characters, param=param)
    cleaned = clean.clean(text, param=param)
    instructions.check_tags(cleaned, supported=engine.inline_tags, param=param)
    chosen = (find or find_voice)(actor, voice)
    spoken = choose_language(cleaned, language, chosen, engine)
    check_format(format)
    low, high = engine.speed
    if not low <= speed <= high:  # also refuses NaN
        raise InvalidInput(
            _("The speed must be between %(low)s and %(high)s.") % {"low": low, "high": high},
            code="speed_out_of_range",
            param="speed",
        )
    instruction = instruction.strip()
    if instruction and not engine.instructions:
        raise InvalidInput(
            _("The engine %(engine)s cannot follow instructions. Leave the instruction out.")
            % {"engine": engine.label},
            code="instruction_not_supported",
            param="instruction",
        )
    instruction = instructions.clean_instruction(instruction)
    return Plan(
        voice=chosen,
        text=cleaned,
        characters=characters,
        language=spoken,
        instruction=instruction,
        format=format,
        speed=speed,
        seed=checked_seed(seed),
        title=checked_title(title),
        cloning=engine.cloning if chosen.kind == Voice.Kind.CLONED else "",
        webhook=webhook,
        webhook_events=callbacks.checked(webhook, webhook_events_filter),
    )


def check_actor(actor: Actor) -> None:
    """NotAllowed for who may not submit anything right now."""
    actor.require(permissions.SYNTHESES_WRITE)
    if actor.team.suspended_at is not None:
        raise NotAllowed(_("This team is suspended. Ask your operator."), code="team_suspended")
    operator_settings.require_running()


def check_format(format: str) -> None:
    """InvalidInput for a container that we do not make."""
    if format not in Format.values:
        raise InvalidInput(
            _("“%(format)s” is not a format. There are: %(all)s.")
            % {"format": format, "all": ", ".join(Format.values)},
            code="format_unknown",
            param="format",
        )


def checked_seed(seed: int | None) -> int:
    """`seed`, or one by chance; InvalidInput for one that some engine's generator does not take."""
    if seed is not None and not 0 <= seed <= SEED_MAX:
        raise InvalidInput(
            _("The seed must be a whole number from 0 to %(max)d.") % {"max": SEED_MAX},
            code="seed_out_of_range",
            param="seed",
        )
    return secrets.randbelow(SEED_MAX) if seed is None else seed


def checked_title(title: str) -> str:
    """`title` on one line; InvalidInput when it is too long or cannot be shown."""
    title = " ".join(title.split())
    if len(title) > TITLE_CHARACTERS or not title.isprintable():
        raise InvalidInput(
            _("A title has at most %(max)d characters, none of them a control character.")
            % {"max": TITLE_CHARACTERS},
            code="title_invalid",
            param="title",
        )
    return title


def submit(
    *,
    actor: Actor,
    planned: Plan,
    priority: int = 0,
    streamed: bool = False,
    hold_seconds: float = 0.0,
) -> SynthesisRequest:
    """Reserve the characters and queue the request; a worker is rung when the transaction is committed.

    `streamed` has the worker hand out the sound while it speaks (`synthesis.listening`). For `hold_seconds` no worker
    takes it. Raises LimitReached:
    `quota_exceeded`, or `concurrent_limit_exceeded` when the team's queue is full.
    """
    request, segments = _rows(
        actor=actor,
        planned=planned,
        request_id=new_id(),
        priority=priority,
        streamed=streamed,
        hold_seconds=hold_seconds,
    )
    entry = audit.record(
        "synthesis.submitted",
        save=False,
        actor=actor,
        target=request,
        characters=planned.characters,
        source=actor.source,
    )
    with transaction.atomic():
        insert(request, *segments, entry)
        # Last, since it locks the team's counter: from here on this team's submissions come one after the other, so
        # that the count is exact, and each waits for no more than this statement and the commit of the one before.
        unfinished = ledger.reserve(
            actor=actor,
            request_id=request.id,
            characters=planned.characters,
            then=_UNFINISHED,
            values=_whose(actor),
        )
        _check_room(actor, unfinished, own=1)
        _follow(request)
    return request


def enqueue(
    *,
    actor: Actor,
    planned: Plan,
    request_id: UUID,
    priority: int,
    source: str,
    retry_of_id: UUID | None = None,
) -> SynthesisRequest:
    """Queue a request whose characters are reserved under `request_id`, in the caller's transaction."""
    request, segments = _rows(
        actor=actor,
        planned=planned,
        request_id=request_id,
        priority=priority,
        source=source,
        retry_of_id=retry_of_id,
    )
    insert(request, *segments)
    _follow(request)
    return request


def _rows(
    *,
    actor: Actor,
    planned: Plan,
    request_id: UUID,
    priority: int,
    streamed: bool = False,
    source: str = "",
    retry_of_id: UUID | None = None,
    hold_seconds: float = 0.0,
) -> tuple[SynthesisRequest, list[Segment]]:
    """A request and its segments, not written yet."""
    now = timezone.now()
    request = SynthesisRequest(
        id=request_id,
        created_at=now,
        not_before=now + timedelta(seconds=hold_seconds),
        team=actor.team,
        user=actor.user,
        api_key=actor.api_key,
        source=source or actor.source,
        voice=planned.voice,
        voice_version_id=planned.voice.current_version_id,
        engine=settings.CHORUS_ENGINE,
        cloning=planned.cloning,
        title=planned.title,
        text=planned.text,
        characters=planned.characters,
        language=planned.language,
        instruction=planned.instruction,
        format=planned.format,
        speed=planned.speed,
        seed=planned.seed,
        source_seconds=planned.source_seconds,
        webhook=planned.webhook,
        webhook_events=list(planned.webhook_events) or None,
        streamed=streamed,
        priority=priority,
        segments_total=len(planned.segments),
        retry_of_id=retry_of_id,
    )
    # It has no file yet: whoever shows it need not ask.
    request._state.fields_cache["output"] = None
    segments = [
        Segment(request=request, index=index, text=segment.text, pause=segment.pause_after)
        for index, segment in enumerate(planned.segments)
    ]
    return request, segments


def _follow(request: SynthesisRequest) -> None:
    """Tell workers and watchers, once the transaction that queues `request` is committed."""
    traces.carry(request)
    doorbell.ring(pools.of_team(request.team_id))
    events.announce(request)


#: What a team has waiting and in hand, and how much of it is one person's.
_UNFINISHED = """
SELECT count(*), count(*) FILTER (WHERE user_id = %(user)s) FROM synthesis_synthesisrequest
WHERE team_id = %(team)s AND (status = 'queued' OR status = 'running')
"""


def _whose(actor: Actor) -> dict[str, UUID]:
    return {"team": actor.team.id, "user": actor.user.id}


def check_queue(actor: Actor) -> None:
    """LimitReached (`concurrent_limit_exceeded`) when the team's or the person's queue is full."""
    with prepared() as cursor:
        cursor.execute(_UNFINISHED, _whose(actor))
        _check_room(actor, cursor.fetchone(), own=0)


def _check_room(actor: Actor, unfinished: Any, *, own: int) -> None:
    """`check_queue` for what `_UNFINISHED` said, where `own` of them are the caller's, not committed yet."""
    of_team, of_user = unfinished
    checks = [
        (of_team, limits.of_team(actor.team).queued_requests),
        (of_user, limits.of_member(actor.membership).queued_requests),
    ]
    for count, limit in checks:
        if limit is not None and count - own >= limit:
            raise LimitReached(
                _("%(limit)d requests are waiting already. Wait until some of them are done.")
                % {"limit": limit},
                code="concurrent_limit_exceeded",
                retry_after=QUEUE_FULL_RETRY,
                queued_limit=limit,
            )


def find_voice(actor: Actor, voice: str) -> Voice:
    """The voice with this id or name (any case; a team's own before a preset).

    Nothing is guessed: a name that some other service has, such as “alloy”, is a voice here when the team has called
    one of its own so. Raises UnknownVoice, which tells some that there are, and BlockedVoice for one that an operator
    has forbidden.
    """
    if not voice.isprintable():  # among others NUL, which the database refuses to look for
        raise UnknownVoice(param="voice")
    try:
        found = _BY_ID.first(id=UUID(voice), **sight(actor))
    except ValueError:
        found = _named(actor, voice)
    if found is None:
        raise _unknown(actor, voice)
    if found.taken_down_at is not None:
        raise BlockedVoice(found.taken_down_reason)
    return found


_BY_ID = Compiled(lambda id, **sight: Voice.objects.seen(**sight).filter(id=id).order_by())


def _named(actor: Actor, given: str) -> Voice | None:
    """What may be used before what was taken down, and a team's own before a preset."""
    named = Voice.objects.seen(**sight(actor)).filter(Q(name__iexact=given) | Q(preset=given, team=None))
    return min(
        named, key=lambda match: (match.taken_down_at is not None, match.team_id is None), default=None
    )


def _unknown(actor: Actor, given: str) -> UnknownVoice:
    """Names what was asked for and what there is, the team's own voices first."""
    usable = Voice.objects.usable(actor).order_by("team_id", "name")
    names = list(usable.values_list("name", flat=True)[: VOICES_NAMED + 1])
    if not names or len(given) > NAME_CHARACTERS:
        return UnknownVoice(param="voice")
    listed = ", ".join(names[:VOICES_NAMED]) + (", …" if len(names) > VOICES_NAMED else "")
    return UnknownVoice(
        _(
            "There is no voice “%(voice)s”. There are: %(all)s. GET /v1/voices lists the voices that you can use."
        )
        % {"voice": given, "all": listed},
        param="voice",
        voices=names[:VOICES_NAMED],
    )


def choose_language(text: str, wanted: str, voice: Voice, engine: Capabilities) -> str:
    """The engine's language for `wanted`, or for what the text is written in when nothing was wanted.

    A bare “en” takes the voice's own variety of English. InvalidInput when the engine does not speak it.
    """
    wanted = wanted.strip()
    asked = wanted or language.detect(text)
    if spoken := engine.spoken_as(asked, like=voice.language):
        return spoken
    names = {
        "engine": engine.label,
        "language": language_label(asked),
        "all": ", ".join(language_label(tag) for tag in engine.languages),
    }
    raise InvalidInput(
        _("The engine %(engine)s does not speak “%(language)s”. It speaks: %(all)s.") % names
        if wanted
        else _(
            "The text looks like “%(language)s”, which the engine %(engine)s does not speak. It speaks: %(all)s. If it "
            "is one of these, name it as the language."
        )
        % names,
        code="language_not_supported",
        param="language" if wanted else "text",
        languages=list(engine.languages),
    )
