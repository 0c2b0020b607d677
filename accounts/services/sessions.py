"""Where a person is signed in. A session says by itself whose it is, so that all are read to find one person's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import User
from accounts.services import audit

_SINCE, _AGENT = "signed_in_at", "agent"
_AGENT_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session: `key` names it on the page without being of use to anybody who reads the page."""

    key: str
    agent: str
    since: datetime | None
    is_this: bool


def remember(request: HttpRequest) -> None:
    """Note in a new session since when it is, and in which browser."""
    request.session[_SINCE] = timezone.now().isoformat()
    request.session[_AGENT] = request.headers.get("User-Agent", "")[:_AGENT_CHARACTERS]


def of(request: HttpRequest) -> list[SignedIn]:
    """The sessions of the person of `request`, this one first, then the newest."""
    found = []
    for session, data in _own(str(request.user.pk)):
        since = datetime.fromisoformat(data[_SINCE]) if data.get(_SINCE) else None
        is_this = session.pk == request.session.session_key
        found.append(SignedIn(_name(session.pk), data.get(_AGENT, ""), since, is_this))
    oldest = datetime.min.replace(tzinfo=timezone.get_default_timezone())
    return sorted(found, key=lambda one: (one.is_this, one.since or oldest), reverse=True)


def end_others(request: HttpRequest, *, key: str = "") -> int:
    """Sign out elsewhere: one session, by its `key`, or all but this one; how many."""
    mine = [
        session.pk
        for session, _data in _own(str(request.user.pk))
        if session.pk != request.session.session_key and (not key or _name(session.pk) == key)
    ]
    count = Session.objects.filter(pk__in=mine).delete()[0]
    if isinstance(request.user, User) and count:
        audit.record("user.signed_out_elsewhere", user=request.user, sessions=count)
    return count


def _own(user_id: str):  # type: ignore[no-untyped-def]
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator(chunk_size=500):
        data = session.get_decoded()
        if data.get(SESSION_KEY) == user_id:
            yield session, data


def _name(session_key: str) -> str:
    return hashlib.sha256(session_key.encode()).hexdigest()[:16]
