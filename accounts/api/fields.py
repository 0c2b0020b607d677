"""Fields that take what JSON says and do not guess: REST framework's own make “1” of 1 and 1.0 of true."""

from __future__ import annotations

import math
from typing import Any

from rest_framework import serializers


class Text(serializers.CharField):
    """A JSON string."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        """Nothing but a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Number(serializers.FloatField):
    """A finite JSON number."""

    def to_internal_value(self, data: Any) -> float:
        """Neither a string nor a boolean nor a number too large for a float."""
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            value = float(data)
        except OverflowError:
            self.fail("overflow")
        if not math.isfinite(value):
            self.fail("invalid")
        return value


class Whole(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        """Neither a string nor a boolean."""
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return data


class InputSerializer(serializers.Serializer):
    """A JSON body. Unknown fields are left alone (clients send some of their own); null counts as absent."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Without the nulls."""
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if value is not None}
        values: dict[str, Any] = super().to_internal_value(data)
        return values
