"""What a text would cost, how long it would take, and what limit it would meet; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from accounts.actors import Actor
from accounts.errors import LimitReached
from accounts.services import ledger, limits
from synthesis.models import Status, SynthesisRequest
from synthesis.services import queue, submission
from synthesis.text.characters import weigh

#: Letters of English that are read in a second (`synthesis.text.characters` weighs other scripts in them).
_LETTERS_PER_SECOND = 15.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """`audio_seconds` of sound; `wait_seconds` until it is done, None when no worker is there to do it."""

    characters: int
    segments: int
    audio_seconds: float
    wait_seconds: int | None
    ahead: int
    limit: LimitReached | None


def estimate(actor: Actor, planned: submission.Plan) -> Estimate:
    """For a submission that passed every check of `submission.plan`."""
    unsaved = SynthesisRequest(
        team=actor.team,
        engine=settings.CHORUS_ENGINE,
        status=Status.QUEUED,
        characters=planned.characters,
        segments_total=len(planned.segments),
    )
    outlook = queue.outlook(unsaved)
    pauses = sum(segment.pause_after for segment in planned.segments[:-1])
    return Estimate(
        characters=planned.characters,
        segments=len(planned.segments),
        audio_seconds=round(weigh(planned.text) / _LETTERS_PER_SECOND / planned.speed + pauses, 1),
        wait_seconds=outlook.seconds,
        ahead=outlook.place.ahead if outlook.place else 0,
        limit=_limit(actor, planned.characters),
    )


def _limit(actor: Actor, characters: int) -> LimitReached | None:
    try:
        if limits.standing(actor).remaining < characters:
            raise ledger.exceeded(actor, characters)
        submission.check_queue(actor)
    except LimitReached as reached:
        return reached
    return None
