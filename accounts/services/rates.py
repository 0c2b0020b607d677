"""Requests per minute: a sliding window in Redis, one round trip for team, person and key together.

The window is a help against bursts and not an account: when Redis is away or was flushed it is open, and everything
that must be exact (quota, queue) is in Postgres.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from dataclasses import dataclass

from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from accounts.actors import Actor
from accounts.errors import LimitReached
from accounts.ids import new_id
from accounts.redis import client
from accounts.services import limits

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60
#: Attempts to sign in a minute: an office behind one address has many people, an account has one.
SIGN_INS_OF_ADDRESS = 60
SIGN_INS_OF_ACCOUNT = 10

# Members of each sorted set are requests, scored by their time. Nothing is counted unless every window has room.
_SCRIPT = """
local now, window, id = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local tightest, room, wait = 0, math.huge, 0
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
  local left = tonumber(ARGV[3 + i]) - redis.call('ZCARD', key)
  if left < room then
    tightest, room = i, left
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    wait = oldest[2] and (tonumber(oldest[2]) + window - now) or 0
  end
end
if room > 0 then
  for _, key in ipairs(KEYS) do
    redis.call('ZADD', key, now, id)
    redis.call('EXPIRE', key, window + 1)
  end
end
return {tightest, room, tostring(wait)}
"""


@dataclass(frozen=True, slots=True)
class Window:
    """The tightest window after this request: `limit` a minute, `remaining` requests, `reset` in whole seconds."""

    limit: int
    remaining: int
    reset: int


def hit(actor: Actor) -> Window | None:
    """Count one request; LimitReached (`rate_limit_exceeded`) when team, person or key sent too many in a minute.

    None when Redis does not answer.
    """
    allowed = {
        f"rate:team:{actor.team.id}": limits.of_team(actor.team).requests_per_minute,
        f"rate:member:{actor.membership.id}": limits.of_member(actor.membership).requests_per_minute,
    }
    if actor.api_key:
        allowed[f"rate:key:{actor.api_key.id}"] = limits.of_key(actor.api_key).requests_per_minute
    window = _count({key: limit for key, limit in allowed.items() if limit is not None})
    if window is not None and window.remaining < 0:
        raise LimitReached(
            _("More than %(limit)d requests in a minute. Wait %(seconds)d s.")
            % {"limit": window.limit, "seconds": window.reset},
            retry_after=window.reset,
            requests_limit=window.limit,
        )
    return window


def knock(*, address: str, email: str) -> None:
    """Count one attempt to sign in; LimitReached when an address or an account had too many in a minute."""
    window = _count({f"rate:knock:{address}": SIGN_INS_OF_ADDRESS, _knocks(email): SIGN_INS_OF_ACCOUNT})
    if window is not None and window.remaining < 0:
        raise LimitReached(
            _("Too many attempts to sign in. Wait %(seconds)d s, then try again.")
            % {"seconds": window.reset},
            code="too_many_sign_ins",
            retry_after=window.reset,
        )


def forgive(email: str) -> None:
    """The password was right: what was tried before counts no more against the account."""
    with contextlib.suppress(RedisError):
        client().delete(_knocks(email))


def _knocks(email: str) -> str:
    # A digest: addresses of people are no business of whoever looks into Redis.
    return f"rate:knock:{hashlib.sha256(email.strip().lower().encode()).hexdigest()}"


def _count(windows: dict[str, int]) -> Window | None:
    """Count one in every window, or in none; `remaining` is negative when one is full. None without Redis."""
    try:
        tightest, room, wait = client().eval(
            _SCRIPT, len(windows), *windows, time.time(), WINDOW_SECONDS, str(new_id()), *windows.values()
        )
    except RedisError:
        logger.warning("Redis does not answer: requests per minute are not counted")
        return None
    return Window(list(windows.values())[tightest - 1], room - 1, max(1, int(float(wait)) + 1))
