"""Identifiers that sort by the time they were made, so that indexes stay compact and lists need no second column."""

from __future__ import annotations

import uuid
from datetime import datetime

from uuid_utils import compat


def first_id(moment: datetime) -> uuid.UUID:
    """The lowest UUID version 7 of a moment: rows from then on have higher ones, by the clock of who made them."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)


def new_id() -> uuid.UUID:
    """A UUID version 7."""
    return compat.uuid7()
