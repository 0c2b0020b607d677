"""Requests per minute: a sliding window in Redis, one round trip for team, person and key together.

The window is a help against bursts and not an account: when Redis is away or was flushed it is open, and everything
that must be exact (quota, queue) is in Postgres.
"""

from __future__ import annotations

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
    """Count one request; LimitReached (`rate_limit_exceeded`) when team or person sent too many in a minute.

    None when Redis does not answer.
    """
    allowed = {
        f"rate:team:{actor.team.id}": limits.of_team(actor.team).requests_per_minute,
        f"rate:member:{actor.membership.id}": limits.of_member(actor.membership).requests_per_minute,
    }
    windows = {key: limit for key, limit in allowed.items() if limit is not None}
    try:
        tightest, room, wait = client().eval(
            _SCRIPT, len(windows), *windows, time.time(), WINDOW_SECONDS, str(new_id()), *windows.values()
        )
    except RedisError:
        logger.warning("Redis does not answer: requests per minute are not counted")
        return None
    limit = list(windows.values())[tightest - 1]
    reset = max(1, int(float(wait)) + 1)
    if room <= 0:
        raise LimitReached(
            _("More than %(limit)d requests in a minute. Wait %(seconds)d s.")
            % {"limit": limit, "seconds": reset},
            retry_after=reset,
            requests_limit=limit,
        )
    return Window(limit, room - 1, reset)
