"""What languages are called."""

from __future__ import annotations

from functools import lru_cache

from babel import Locale, UnknownLocaleError
from django.utils.translation import get_language, gettext_lazy, to_locale

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


def language_label(tag: str) -> str:
    """The name with its tag, for messages that people and programs read: “Russian (ru)”, “English (US, en-US)”."""
    name = language_name(tag)
    if name == tag:
        return tag
    return f"{name[:-1]}, {tag})" if name.endswith(")") else f"{name} ({tag})"


@lru_cache(maxsize=256)
def _babel_name(tag: str, reader: str) -> str:
    try:
        return Locale.parse(tag, sep="-").get_display_name(Locale.parse(to_locale(reader))) or tag
    except (UnknownLocaleError, ValueError):
        return tag
