"""One running service for each engine that a test asks for; it ends with the last of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live import stack


@pytest.fixture(scope="package")
def hibari(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """Two workers that speak English fast."""
    running = stack.start(tmp_path_factory.mktemp("live") / "hibari", "hibari", workers=2)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="package")
def kokoro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stack.Stack]:
    """The default engine."""
    running = stack.start(tmp_path_factory.mktemp("live") / "kokoro", "kokoro")
    yield running
    assert running.stop() == 0
