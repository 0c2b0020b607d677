"""How answers get their shape."""

from __future__ import annotations

from functools import cache
from typing import Any

from rest_framework.serializers import Serializer


def render(kind: type[Serializer[Any]], value: Any) -> dict[str, Any]:
    """`value` (a dictionary or an object) as `kind` describes it.

    A serializer copies all its fields when it is made, which costs more than showing a row does, and showing changes
    nothing in it: one of each kind serves every row of every request.
    """
    return dict(_one_of(kind).to_representation(value))


@cache
def _one_of(kind: type[Serializer[Any]]) -> Serializer[Any]:
    return kind()
