"""Fixtures of the panel's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accounts.services import operator_settings


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    """What one test set is gone with its transaction, but not from memory."""
    operator_settings.forget()
    yield
    operator_settings.forget()
