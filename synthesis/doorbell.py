"""The doorbell: one tiny RQ job that makes a worker look into Postgres.

Losing one costs a delay: the sweep rings again.
"""

from __future__ import annotations

import logging
from functools import cache

from django.db import transaction
from redis.exceptions import RedisError
from rq import Queue
from rq.serializers import JSONSerializer

from accounts.redis import client

logger = logging.getLogger(__name__)

#: Named, not imported: web processes never load an engine.
JOB = "gpu_worker.jobs.run_next"
#: The sweep keeps this many doorbells in the queue at most; each one makes a worker look once.
ENOUGH = 100


def name_of(pool: str) -> str:
    """What the queue of a pool's workers is called: each worker listens on exactly one."""
    return f"gpu-{pool}" if pool else "gpu"


@cache
def queue(pool: str = "") -> Queue:
    """A pool's queue, on the process's own client, whose time-outs keep a submission short when Redis hangs."""
    # Not pickle, which would let whoever can write to Redis run code in a worker.
    return Queue(name_of(pool), connection=client(), serializer=JSONSerializer)


def ring(pool: str = "") -> None:
    """Ring once the caller's transaction is committed."""
    transaction.on_commit(lambda: _ring(1, pool), robust=True)


def ring_missing(waiting: int, pool: str = "") -> int:
    """Ring as often as doorbells are missing for `waiting` requests; how often."""
    try:
        missing = min(waiting, ENOUGH) - queue(pool).count
    except RedisError:
        logger.warning("Redis does not answer: workers are not rung")
        return 0
    return _ring(missing, pool) if missing > 0 else 0


def _ring(times: int, pool: str) -> int:
    # A crash of the worker is dealt with in Postgres: RQ keeps no result, and a failure only for a look at it.
    try:
        for _i in range(times):
            queue(pool).enqueue(JOB, result_ttl=0, failure_ttl=24 * 3600)
    except RedisError:
        logger.warning("Redis does not answer: the sweep will ring")
        return 0
    return times
