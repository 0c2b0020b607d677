"""Identifiers that sort by the time they were made, so that indexes stay compact and lists need no second column."""

from __future__ import annotations

import uuid

from uuid_utils import compat


def new_id() -> uuid.UUID:
    """A UUID version 7."""
    return compat.uuid7()
