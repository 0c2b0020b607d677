"""Fixtures that every folder of tests can use. The servers behind them are started by `tests.embedded`."""

import gc
from collections.abc import Iterator

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.utils import translation

#: What takes longest is begun first, so that no process waits for another's last file.
_LONGEST_FIRST = ("tests/live/", "tests/launcher/", "tests/ops/", "tests/gpu_worker/")

# Cheap on purpose: the tests make hundreds of accounts, and argon2's own strength is not theirs to test.
Argon2PasswordHasher.time_cost = 1
Argon2PasswordHasher.memory_cost = 8
Argon2PasswordHasher.parallelism = 1


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A request that a test makes in another language leaves it behind; every test begins in English."""
    with translation.override("en"):
        yield


@pytest.hookimpl(trylast=True)  # pytest-django sorts too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which pytest-xdist hands out the files."""
    items.sort(key=lambda item: [not item.nodeid.startswith(folder) for folder in _LONGEST_FIRST])


def pytest_collection_finish() -> None:
    """What is there by now stays: looking through all of it for rubbish, again and again, finds none."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
