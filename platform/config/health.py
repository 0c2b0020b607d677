"""Is the service alive, and is each part that it needs there?"""

from __future__ import annotations

import logging

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from redis.exceptions import RedisError

from accounts.redis import client as redis_client
from synthesis import storage
from synthesis.models import Worker

logger = logging.getLogger(__name__)


def alive(request: HttpRequest) -> JsonResponse:
    """This process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """Each dependency by name; 503 while one is missing. Workers count as one: without them requests only wait."""
    parts = {"database": _database(), "redis": _redis(), "storage": _storage()}
    parts["workers"] = parts["database"] and _workers()
    good = all(parts.values())
    return JsonResponse(
        {
            "status": "ok" if good else "unavailable",
            **{name: "ok" if up else "unavailable" for name, up in parts.items()},
        },
        status=200 if good else 503,
    )


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _redis() -> bool:
    try:
        return bool(redis_client().ping())
    except RedisError:
        return False


def _storage() -> bool:
    try:
        storage.probe()
    except (BotoCoreError, ClientError):
        return False
    return True


def _workers() -> bool:
    return Worker.objects.alive().filter(engine=settings.CHORUS_ENGINE).exists()
