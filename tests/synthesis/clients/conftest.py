"""What every client speaks to: the process that may wait, a worker, and Alice's key."""

from __future__ import annotations

import pytest

from accounts.redis import client as redis_client
from gpu_worker.engines import load_engine
from tests import asgi, factories
from tests.synthesis import speaking


@pytest.fixture(scope="module")
def running(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock(), asgi.serve() as streams:
        yield streams


@pytest.fixture(scope="module")
def engine():
    return load_engine("hibari")


@pytest.fixture
def voice():
    return factories.preset()


@pytest.fixture
def alice(running, voice):
    redis_client().flushdb()
    return factories.owner("Alice")


@pytest.fixture
def worker(engine):
    with speaking.worker(engine):
        yield
