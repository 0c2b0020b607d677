"""How pages name things: languages, voices, what a request is doing."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from babel import Locale, UnknownLocaleError
from django.utils.translation import get_language, gettext_lazy, to_locale
from django.utils.translation import gettext as _

#: Babel says “Chinese”; people who choose a voice want to know which.
_OWN_NAMES = {
    "zh": gettext_lazy("Mandarin"),
    "yue": gettext_lazy("Cantonese"),
    "en-US": gettext_lazy("English (US)"),
    "en-GB": gettext_lazy("English (UK)"),
}


def language_name(tag: str) -> str:
    """A BCP 47 tag in the reader's language; the tag itself when nobody has a name for it."""
    own = _OWN_NAMES.get(tag)
    return str(own) if own is not None else _babel_name(tag, get_language() or "en")


@lru_cache(maxsize=256)
def _babel_name(tag: str, reader: str) -> str:
    try:
        return Locale.parse(tag, sep="-").get_display_name(Locale.parse(to_locale(reader))) or tag
    except (UnknownLocaleError, ValueError):
        return tag


def excerpt(text: str, length: int = 160) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: length * 2].split())
    return line if len(line) <= length else line[:length].rstrip() + "…"


def gender_name(gender: str) -> str:
    """As it is heard; empty when nobody said."""
    return {"female": _("female"), "male": _("male"), "neutral": _("neutral")}.get(gender, "")


def short_id(value: UUID) -> str:
    """The end of an id, enough to tell two requests apart in a conversation."""
    return value.hex[-6:]
