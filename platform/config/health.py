"""Is the service alive, and is each part that it needs there?"""

from __future__ import annotations

import logging
from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from redis.exceptions import RedisError

from accounts.redis import client as redis_client
from config import unreachable
from synthesis import storage
from synthesis.models import Worker

logger = logging.getLogger(__name__)

_migrated = False


def alive(request: HttpRequest) -> JsonResponse:
    """This process answers; nothing else is asked."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """Each part by name; 503 while one is missing.

    Workers count as one: without them requests only wait. `?without=workers` leaves parts out of the verdict, for
    probes that must not take the pages away while workers are scaled to zero.
    """
    left_out = set(request.GET.get("without", "").split(","))
    found = parts()
    good = all(up for name, up in found.items() if name not in left_out)
    return JsonResponse(
        {
            "status": "ok" if good else "unavailable",
            **{name: "ok" if up else "unavailable" for name, up in found.items()},
        },
        status=200 if good else 503,
        headers={"Cache-Control": "no-store"},
    )


def parts() -> dict[str, bool]:
    """Which parts answer. `migrations`: whether the database has all tables that this version needs."""
    database = _answers(_database)
    return {
        "database": database,
        "migrations": database and _answers(_migrations),
        "redis": _answers(_redis),
        "storage": _answers(_storage),
        "workers": database and _answers(_workers),
    }


def _answers(part: Callable[[], bool]) -> bool:
    try:
        return part()
    except (DatabaseFailure, RedisError, BotoCoreError, ClientError) as error:
        # Only in the log: the answer is for everybody.
        names = unreachable.variables(error)
        where = f" (look at {names})" if names else ""
        logger.warning(
            "Not ready: %s%s", part.__name__.strip("_"), where, extra={"cause": type(error).__name__}
        )
        return False


def _database() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return True


def _migrations() -> bool:
    """Asked until it is true: tables do not go away while a process runs."""
    global _migrated
    if not _migrated:
        executor = MigrationExecutor(connection)
        _migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
    return _migrated


def _redis() -> bool:
    return bool(redis_client().ping())


def _storage() -> bool:
    storage.probe()
    return True


def _workers() -> bool:
    return Worker.objects.alive().filter(engine=settings.CHORUS_ENGINE).exists()
