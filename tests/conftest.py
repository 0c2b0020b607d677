"""Fixtures that every folder of tests can use. The servers behind them are started by `tests.embedded`."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils import translation

# Cheap on purpose: the tests make hundreds of accounts, and argon2's own strength is not theirs to test.
Argon2PasswordHasher.time_cost = 1
Argon2PasswordHasher.memory_cost = 8
Argon2PasswordHasher.parallelism = 1


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A request that a test makes in another language leaves it behind; every test begins in English."""
    with translation.override("en"):
        yield
