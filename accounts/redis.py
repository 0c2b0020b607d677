"""The one Redis client of a process; it connects at the first use and reconnects by itself."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from redis import Redis


@cache
def client() -> Redis:
    """A client with time-outs short enough that a web request survives a Redis that is away."""
    return Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=1)
