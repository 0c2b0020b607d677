"""Fields that take what JSON says and do not guess: REST framework's own make “1” of 1 and 1.0 of true."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable
from typing import Any

from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.errors import InvalidInput


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


class SaidOnce(serializers.Serializer):
    """A form in which a field stands once, unless it is a list: which of two values was meant cannot be told."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """InvalidInput (`parameter_repeated`) names the first that stands there several times."""
        if isinstance(data, MultiValueDict):
            once = [name for name, one in self.fields.items() if not isinstance(one, serializers.ListField)]
            check_once(MultiValueDict({name: data.getlist(name) for name in once}))
        values: dict[str, Any] = super().to_internal_value(data)
        return values


class KnownFields(SaidOnce):
    """A body in which nothing else may stand: a field that is misspelt and ignored is a key that never expires.

    The bodies that other APIs have shaped are not of this kind, since their clients send fields of their own.
    """

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """InvalidInput (`unknown_field`) names the first that is not known, and what was probably meant."""
        if hasattr(data, "keys"):
            check_known(data.keys(), self.fields.keys(), elsewhere=self.context.get("query", ()))
        values: dict[str, Any] = super().to_internal_value(data)
        return values


def check_known(given: Iterable[Any], known: Collection[str], *, elsewhere: Collection[str] = ()) -> None:
    """InvalidInput for the first of `given` that is not `known`; `elsewhere` are those that the address takes."""
    name = next((str(name) for name in given if name not in known), None)
    if name is None:
        return
    shown = name if len(name) <= 100 else f"{name[:100]}…"
    if name in elsewhere:
        words = _("“%(name)s” belongs in the address and not in the body: ?%(name)s=…") % {"name": shown}
    elif near := _nearest(name, known):
        words = _("“%(name)s” is not known here. Did you mean “%(near)s”?") % {"name": shown, "near": near}
    elif known:
        words = _("“%(name)s” is not known here. There are: %(all)s.") % {
            "name": shown,
            "all": ", ".join(known),
        }
    else:
        words = _("“%(name)s” is not known here: this address takes none.") % {"name": shown}
    raise InvalidInput(words, code="unknown_field", param=shown)


def check_once(given: MultiValueDict[str, Any]) -> None:
    """InvalidInput for the first name that was sent several times: which of its values was meant cannot be told."""
    for name, values in given.lists():
        if len(values) > 1:
            raise InvalidInput(
                _("“%(name)s” was sent %(n)d times. Send it once.") % {"name": name, "n": len(values)},
                code="parameter_repeated",
                param=name,
            )


def _nearest(name: str, known: Collection[str]) -> str | None:
    """What is spelt alike, or has the name in it: “ips” of “allowed_ips”."""
    lower = name.lower()
    alike = difflib.get_close_matches(lower, known, n=1)
    inside = [one for one in known if len(lower) > 2 and (lower in one or one in lower)]
    return next(iter([*alike, *inside]), None)
