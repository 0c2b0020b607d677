"""JSON from strangers: nothing that can be read in two ways."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _

#: No number here needs as many; Python refuses to read more than 4,300 in words of its own.
_MOST_DIGITS = 4_000


def loads(text: str) -> Any:
    """The value of `text`. ValueError, with a reason in the caller's language where it is ours: for NaN and Infinity,
    for a name that stands twice in an object (readers differ in which of the two they take), for endless numbers and
    for nesting without end.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_whole, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError(_("it is nested too deeply")) from None


def _refuse(constant: str) -> None:
    raise ValueError(_("%(constant)s is not JSON") % {"constant": constant})


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(_("a number has more than %(max)d digits") % {"max": _MOST_DIGITS})
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(_("“%(name)s” stands there twice") % {"name": name[:100]})
        values[name] = value
    return values
