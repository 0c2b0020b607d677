"""`manage.py worker`: one resident worker. `python -m gpu_worker` starts and restarts it."""

from __future__ import annotations

import logging
import socket
import sys
import time
from typing import Any

import django_rq
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from redis import Redis
from redis.exceptions import RedisError
from rq import Queue

from gpu_worker import hooks, naming, processes
from gpu_worker.worker import Limits, ResidentWorker
from synthesis import doorbell

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    """Load the engine once and speak request after request, until SIGTERM."""

    help = "Run one worker: it loads the engine once and speaks requests until it is told to stop."
    # The checks would import every page and view.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The command line."""
        parser.add_argument("--slot", type=int, default=0, help="its number on this machine (default: 0)")
        parser.add_argument(
            "--name-prefix", default="", help="stands for the host's name in the worker's name"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until told to stop; status 1 when the engine cannot be loaded."""
        pool = settings.CHORUS_POOL
        # Two pools may have workers on the same machine.
        prefix = options["name_prefix"] or (f"{socket.gethostname()}-{pool}" if pool else "")
        name = naming.worker_name(options["slot"], prefix)
        try:
            holder = processes.hold_name(name)
        except processes.NameTaken as error:
            raise CommandError(str(error)) from None
        connection = django_rq.get_connection("gpu")
        _wait_for(connection)
        queue = Queue(doorbell.name_of(pool), connection=connection, serializer=doorbell.queue().serializer)
        worker = ResidentWorker(
            [queue],
            name,
            connection=connection,
            serializer=queue.serializer,
            engine=settings.CHORUS_ENGINE,
            on_child_lost=hooks.give_back,
            beat=hooks.beat,
            obeyed=hooks.obeyed,
            limits=Limits(
                requests=settings.CHORUS_WORKER_MAX_REQUESTS,
                rss_bytes=settings.CHORUS_WORKER_MAX_RSS_MB * 2**20,
            ),
        )
        worker.work(logging_level="WARNING")
        holder.close()
        if worker.failure:
            sys.exit(1)


def _wait_for(connection: Redis) -> None:
    """Wait until Valkey answers: it may start after the workers."""
    said = False
    while True:
        try:
            connection.ping()
        except RedisError:
            if not said:
                logger.warning("Valkey does not answer: waiting for it")
            said = True
            time.sleep(0.5)
        else:
            return
