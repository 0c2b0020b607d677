"""`Idempotency-Key`: the same key and payload get the saved answer, and the work is done once.

The key's row is inserted first, in the transaction that does the work: a second request with the key waits on the
unique index until the first has ended, or for WAIT, and a process killed between the two leaves neither.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from psycopg.errors import LockNotAvailable

from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, Unprocessable
from accounts.ids import new_id
from accounts.models import IdempotentAnswer, Team

#: Longer than the 24 hours that are promised.
KEEP = timedelta(hours=48)
#: A request waits so long for another with its key before it is told to come again; in milliseconds.
WAIT = 10_000


def once(
    *, actor: Actor, key: str | None, payload: Any, work: Callable[[], tuple[int, dict[str, Any]]]
) -> tuple[int, dict[str, Any], bool]:
    """`(status, body, replayed)` of `work`, which runs at most once for `key`, and then in a transaction.

    Without a key the services that it calls have transactions of their own: locks are held no longer than they need.

    Errors of `work` are not kept: the caller may mend the request and use the key again. Raises InvalidInput for a
    key of more than 255 characters, Unprocessable for a key that came with another payload before, and Conflict while
    another request with the key is still being worked on.
    """
    if not key:
        return *work(), False
    fingerprint = _fingerprint(key, payload)
    with transaction.atomic():
        identifier = new_id()
        if not _first(actor, key, fingerprint, identifier):
            return _replayed(IdempotentAnswer.objects.get(team=actor.team, key=key), fingerprint)
        status, body = work()
        IdempotentAnswer.objects.filter(id=identifier).update(status=status, body=body)
        return status, body, False


def once_apart(
    *, actor: Actor, key: str | None, payload: Any, work: Callable[[], tuple[int, dict[str, Any]]]
) -> tuple[int, dict[str, Any], bool]:
    """As `once`, for work that is not to lie in one transaction, such as storing recordings, which takes seconds.

    A lock on the key stands for its row, which is inserted when the work is done: whoever comes meanwhile is told so at
    once, and a process killed between the two leaves work without an answer.
    """
    if not key:
        return *work(), False
    fingerprint = _fingerprint(key, payload)
    name = f"{actor.team.id} {key}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        if not cursor.fetchone()[0]:
            raise _in_use()
    try:
        saved = IdempotentAnswer.objects.filter(team=actor.team, key=key).first()
        if saved is not None:
            return _replayed(saved, fingerprint)
        status, body = work()
        answer = IdempotentAnswer(
            id=new_id(), team=actor.team, key=key, fingerprint=fingerprint, status=status, body=body
        )
        # Meanwhile the key may have been used with another route; what is done here stays done.
        IdempotentAnswer.objects.bulk_create([answer], ignore_conflicts=True)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])
    return status, body, False


def _fingerprint(key: str, payload: Any) -> bytes:
    """Of what came with `key`; InvalidInput for a key that is too long."""
    if len(key) > 255:
        raise InvalidInput(
            _("An Idempotency-Key has at most 255 characters."),
            code="idempotency_key_too_long",
            param="Idempotency-Key",
        )
    return hashlib.sha256(json.dumps(payload, sort_keys=True, default=str).encode()).digest()


def _replayed(saved: IdempotentAnswer, fingerprint: bytes) -> tuple[int, dict[str, Any], bool]:
    """The saved answer; Unprocessable when it was to another payload."""
    if bytes(saved.fingerprint) != fingerprint:
        raise Unprocessable(
            _("This Idempotency-Key was used with another request. Use a new key."),
            code="idempotency_key_reused",
            param="Idempotency-Key",
        )
    return saved.status, saved.body, True


def _in_use() -> Conflict:
    conflict = Conflict(
        _("A request with this Idempotency-Key is still being worked on. Send it again in a moment."),
        code="idempotency_key_in_use",
        param="Idempotency-Key",
    )
    # Other conflicts stay; this one passes.
    conflict.should_retry = None
    return conflict


def _first(actor: Actor, key: str, fingerprint: bytes, identifier: UUID) -> bool:
    """Insert the key's row; False when there is one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(WAIT)])
        try:
            cursor.execute(
                """
                INSERT INTO accounts_idempotentanswer (id, team_id, key, fingerprint, status, body, created_at)
                VALUES (%s, %s, %s, %s, 0, '{}', now()) ON CONFLICT DO NOTHING
                """,
                [identifier, actor.team.id, key, fingerprint],
            )
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
            raise _in_use() from None
        first = cursor.rowcount == 1
        cursor.execute("SELECT set_config('lock_timeout', '0', true)")
    return first


def forget(*, team: Team, body_id: str) -> None:
    """Delete the saved answers whose body has this `id`: what they describe was deleted."""
    IdempotentAnswer.objects.filter(team=team, body__id=body_id).delete()


def forget_old() -> int:
    """Delete answers older than KEEP; how many."""
    return IdempotentAnswer.objects.filter(created_at__lt=timezone.now() - KEEP).delete()[0]
