"""Alice owns a team; Redis starts without counters."""

from __future__ import annotations

import pytest

from accounts.redis import client
from synthesis import tally
from tests import factories


@pytest.fixture
def alice(db):
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture(autouse=True)
def _no_counters():
    client().delete(tally.KEY, "metrics:until", "metrics:lock")
