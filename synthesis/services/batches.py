"""Batches: many texts handed in together, checked whole, reserved whole, and spoken row by row.

The characters of all rows are reserved when a batch is made, so that it cannot run dry half-way; each row has its
reservation under the id of the request that it will become. Places in the team's queue are another matter: rows
become requests a few at a time (`services.batch_admission`), so that a batch of thousands neither fills the queue nor
waits in front of what the team submits by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import InvalidInput, LimitReached
from accounts.ids import new_id
from accounts.services import audit, idempotency, ledger, limits
from synthesis.errors import BatchNotFound
from synthesis.models import Batch, BatchRow, Output, Segment, Status, SynthesisRequest, Voice
from synthesis.services import batch_admission, batch_ends, batch_files, callbacks, dispatch, submission
from synthesis.services.batch_files import Problems, Row
from synthesis.services.batch_states import OF_STATUS, WAITS

#: Rows of one team that may wait to become requests.
MOST_WAITING = 50_000
#: Comes again in so many seconds when there are more.
_WAITING_RETRY = 300
_BULK = 1_000


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that passed every check: its rows, each with the characters that it costs."""

    rows: list[tuple[Row, int]]

    @property
    def characters(self) -> int:
        """Of all rows."""
        return sum(characters for _row, characters in self.rows)


def check(*, actor: Actor, data: bytes, kind: str = "", defaults: Mapping[str, str] | None = None) -> Checked:
    """Look at every row without writing anything.

    `defaults` hold for rows that do not say otherwise. Raises InvalidInput (`batch_invalid` tells every problem with
    its row and column) and NotAllowed.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    common = batch_files.read_defaults(dict(defaults or {}))
    problems = Problems()
    rows = batch_files.read(data, kind=kind, problems=problems)
    find = _remembering(actor)
    checked = []
    for row in rows:
        if row.number in problems.rows:
            continue
        values = {**common, **row.values}
        missing = [name for name in ("voice", "text") if name not in values]
        for name in missing:
            problems.add(row.number, row.line, name, _missing(name))
        if missing:
            continue
        try:
            planned = submission.plan(actor=actor, find=find, **values)
        except InvalidInput as error:
            problems.add(row.number, row.line, error.param or "", error)
            continue
        # The voice by its id: renaming it later changes nothing.
        values["voice"] = str(planned.voice.pk)
        checked.append((Row(row.number, row.line, values), planned.characters))
    problems.raise_any()
    return Checked(checked)


def _missing(name: str) -> InvalidInput:
    if name == "voice":
        return InvalidInput(_("Name a voice in the row, or one for the whole batch."), code="missing_field")
    return InvalidInput(_("The text is empty. Write what you would like to hear."), code="text_empty")


def _remembering(actor: Actor) -> Any:
    """`submission.find_voice` that asks once for each voice, found or not."""
    known: dict[str, Voice | InvalidInput] = {}

    def find(_actor: Actor, voice: str) -> Voice:
        if voice not in known:
            try:
                known[voice] = submission.find_voice(actor, voice)
            except InvalidInput as error:
                known[voice] = error
        found = known[voice]
        if isinstance(found, InvalidInput):
            raise found
        return found

    return find


def create(*, actor: Actor, checked: Checked, name: str = "", webhook: str = "") -> Batch:
    """Reserve the characters of every row and keep them; the first rows are queued right after the commit.

    Raises LimitReached: `quota_exceeded` when the month does not cover the whole, `concurrent_limit_exceeded` when
    too many rows of the team wait. InvalidInput for an address in `webhook` that is not to be posted to, and as
    `checked_name` does.
    """
    name = checked_name(name)
    callbacks.checked(webhook, None)
    with transaction.atomic():
        batch = Batch(
            team=actor.team,
            user=actor.user,
            api_key=actor.api_key,
            source=actor.source,
            name=name,
            rows_total=len(checked.rows),
            characters=checked.characters,
            webhook=webhook,
        )
        rows = [
            BatchRow(batch=batch, number=row.number, line=row.line, characters=characters, input=row.values)
            for row, characters in checked.rows
        ]
        # First, since it locks the team's counter: the count of what waits is exact.
        _reserve(actor, batch, {row.reservation: row.characters for row in rows})
        batch.save(force_insert=True)
        BatchRow.objects.bulk_create(rows, batch_size=_BULK)
        audit.record(
            "batch.created",
            actor=actor,
            target=batch,
            rows=batch.rows_total,
            characters=batch.characters,
            source=actor.source,
        )
        transaction.on_commit(partial(batch_admission.admit, batch.pk), robust=True)
    return batch


def checked_name(name: str) -> str:
    """`name` on one line; InvalidInput (`name_invalid`) when it is too long for lists or cannot be shown."""
    name = " ".join(name.split())
    if len(name) > submission.TITLE_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            _("The name of a batch has at most %(max)d characters, none of them a control character.")
            % {"max": submission.TITLE_CHARACTERS},
            code="name_invalid",
            param="name",
        )
    return name


def _reserve(actor: Actor, batch: Batch, characters: dict[UUID, int]) -> None:
    ledger.reserve_many(actor=actor, characters=characters, note=f"batch {batch.pk}")
    waiting = BatchRow.objects.filter(batch__team=actor.team, batch__waiting=True, request=None, ended="")
    if waiting.count() + len(characters) > MOST_WAITING:
        raise LimitReached(
            _("At most %(limit)d rows of a team's batches may wait. Wait until some of them are done.")
            % {"limit": MOST_WAITING},
            code="concurrent_limit_exceeded",
            retry_after=_WAITING_RETRY,
            queued_limit=MOST_WAITING,
        )


def would_meet(actor: Actor, checked: Checked) -> LimitReached | None:
    """The limit that `create` would meet; None when there is room."""
    if limits.standing(actor).remaining < checked.characters:
        return ledger.exceeded(actor, checked.characters)
    return None


# --- Looking ------------------------------------------------------------------------------------------------------


def visible(actor: Actor) -> QuerySet[Batch]:
    """The team's batches, the newest first."""
    actor.require(permissions.SYNTHESES_READ)
    return Batch.objects.filter(team=actor.team).order_by("-id")


def find(actor: Actor, batch_id: UUID) -> Batch:
    """One of them; BatchNotFound."""
    found = visible(actor).filter(id=batch_id).first()
    if found is None:
        raise BatchNotFound
    return found


def rows_of(batch: Batch, *, status: str = "") -> QuerySet[BatchRow]:
    """Its rows in order, with their requests, voices and outputs; those of one of the five states."""
    rows = BatchRow.objects.filter(batch=batch).select_related("request__voice", "request__output")
    return (rows.filter(OF_STATUS[status]) if status else rows).order_by("number")


# --- Changing -----------------------------------------------------------------------------------------------------


def cancel(*, actor: Actor, batch_id: UUID) -> Batch:
    """End every row that has not ended, without charge; what has ended stays as it is."""
    actor.require(permissions.SYNTHESES_WRITE)
    with transaction.atomic():
        batch = _locked(actor, batch_id)
        if count := end(batch):
            audit.record("batch.canceled", actor=actor, target=batch, rows=count)
    return batch


def end(batch: Batch) -> int:
    """Cancel what has not ended of a batch that the caller has locked; how many rows."""
    # All requests before the first counter, as a worker that ends one of them has it: nobody waits in a circle.
    unfinished = SynthesisRequest.objects.filter(
        batch_row__batch=batch, status__in=[Status.QUEUED, Status.RUNNING]
    )
    ids = list(unfinished.select_for_update(of=("self",)).order_by("id").values_list("id", flat=True))
    return sum(dispatch.cancel(request_id) for request_id in ids) + end_waiting(batch)


def end_waiting(batch: Batch) -> int:
    """The same for rows that are no requests yet, and only for them."""
    waiting = list(batch.rows.filter(WAITS).values_list("reservation", flat=True))
    if waiting:
        ledger.release_many(waiting)
        BatchRow.objects.filter(WAITS, batch=batch).update(
            ended=Status.CANCELED, ended_at=timezone.now(), input=None
        )
    batch.waiting = False
    batch.save(update_fields=["waiting"])
    return len(waiting)


def hold_all_waiting(*, team_id: UUID | None = None, user_id: UUID | None = None) -> list[Batch]:
    """The batches with such rows of a team, of a person, or of a person in a team, locked in the caller's transaction:
    none of the rows becomes a request meanwhile.
    """
    batches = Batch.objects.filter(waiting=True)
    if team_id is not None:
        batches = batches.filter(team=team_id)
    if user_id is not None:
        batches = batches.filter(user=user_id)
    return list(batches.select_for_update(of=("self",)).order_by("id"))


def retry(*, actor: Actor, batch_id: UUID) -> tuple[Batch, int]:
    """Try the failed rows once more, for whom the batch was made; how many. Reserved anew, all of them or none.

    A row whose text was deleted stays failed. Raises LimitReached as `create` does, and Conflict when that person has
    left or that key was revoked.
    """
    actor.require(permissions.SYNTHESES_WRITE)
    with transaction.atomic():
        batch = _locked(actor, batch_id)
        failed = [row for row in rows_of(batch, status=Status.FAILED) if _can_be_tried(row)]
        if not failed:
            return batch, 0
        for row in failed:
            if row.request is not None:
                row.input, row.retry_of, row.request = _again(row.request), row.request, None
            row.reservation = new_id()
            row.ended, row.ended_at, row.error_code, row.error_message = "", None, "", ""
        _reserve(batch_admission.owner(batch), batch, {row.reservation: row.characters for row in failed})
        BatchRow.objects.bulk_update(
            failed,
            [
                "input",
                "retry_of",
                "request",
                "reservation",
                "ended",
                "ended_at",
                "error_code",
                "error_message",
            ],
            batch_size=_BULK,
        )
        batch.waiting = batch.open = True
        batch.save(update_fields=["waiting", "open"])
        audit.record("batch.retried", actor=actor, target=batch, rows=len(failed))
        transaction.on_commit(partial(batch_admission.admit, batch.pk), robust=True)
    return batch, len(failed)


def _can_be_tried(row: BatchRow) -> bool:
    return row.request is None or row.request.deleted_at is None


def _again(request: SynthesisRequest) -> dict[str, Any]:
    """What `submission.plan` was given for a request."""
    return {
        "voice": str(request.voice_id),
        "text": request.text,
        "format": request.format,
        "speed": request.speed,
        "language": request.language,
        "instruction": request.instruction,
        "seed": request.seed,
        "title": request.title,
    }


def delete(*, actor: Actor, batch_id: UUID) -> None:
    """Remove it with its texts and sound. Its requests stay as an account of the characters; what has not ended is
    canceled first."""
    actor.require(permissions.SYNTHESES_WRITE)
    with transaction.atomic():
        batch = _locked(actor, batch_id)
        end(batch)
        if batch.open:
            batch_ends.close(batch)
        requests = SynthesisRequest.objects.filter(batch_row__batch=batch)
        Segment.objects.filter(request__batch_row__batch=batch).delete()
        Output.objects.filter(request__batch_row__batch=batch).delete()
        # The sweep removes the sound of what is marked so.
        requests.update(
            deleted_at=timezone.now(), text="", title="", instruction="", webhook="", objects_deleted=False
        )
        idempotency.forget(team=actor.team, body_id=str(batch.id))
        audit.record("batch.deleted", actor=actor, target=batch, rows=batch.rows_total)
        batch.delete()


def _locked(actor: Actor, batch_id: UUID) -> Batch:
    found = Batch.objects.select_for_update(of=("self",)).filter(team=actor.team, id=batch_id).first()
    if found is None:
        raise BatchNotFound
    return found
