"""Bring submitted text into one form, and refuse what cannot be spoken.

The characters that are billed are those of `count`: Unicode code points of the NFC form.
"""

from __future__ import annotations

import re
import unicodedata

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import InvalidInput

#: `<|endofprompt|>` and its kin steer CosyVoice's language model; in user text they would be spoken as, or
#: instead of, what was asked for. 64 characters bound the search; the longest real token has 20.
_SPECIAL_TOKEN = re.compile(r"<\|[^<>\n]{0,64}?\|>")
#: Digits, `#`, `*` and `ℹ` as pictures: keycaps and emoji presentation.
_PICTURED = re.compile("[0-9#*ℹ]\ufe0f?\u20e3|[0-9#*ℹ]\ufe0f")
#: Left out by text normalisers, so a special token could hide behind them: pictures, modifiers, invisible
#: characters.
_DROPPED = frozenset({"So", "Sk", "Cf", "Mn", "Me", "Co", "Cn"})
#: A byte-order mark inside a text comes from joined files and is never meant.
_BYTE_ORDER_MARK = "\ufeff"


def count(text: str) -> int:
    """How many characters `text` has for quotas and limits: Unicode code points of its NFC form."""
    return len(unicodedata.normalize("NFC", text))


def is_speakable(text: str) -> bool:
    """Whether `text` holds at least one letter or number, of any script, that is not part of a picture."""
    if not text.isascii():
        text = _PICTURED.sub("", text)
    return any(speaks(character) for character in text)


def speaks(character: str) -> bool:
    """Whether this one character stands for a sound: a letter (a modifier letter such as “ー” alone is
    not) or number.
    """
    category = unicodedata.category(character)
    return category[0] == "N" or (category[0] == "L" and category != "Lm")


def clean(text: str, *, param: str = "text") -> str:
    """`text` in NFC, with `\\n` as its only line break and without white space at its ends.

    Raises InvalidInput, naming `param`, with one of these codes: `text_empty`, `text_control_characters`
    (control characters other than line feed and tab, and lone surrogates; `position` counts code points
    from 1), `text_special_token` (`<|…|>`) and `text_not_speakable` (only punctuation, symbols or emoji).
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n")
    _refuse_control_characters(text, param)
    text = unicodedata.normalize("NFC", text.replace(_BYTE_ORDER_MARK, "")).strip()
    if not text:
        raise InvalidInput(
            _("The text is empty. Write what you would like to hear."), code="text_empty", param=param
        )
    _refuse_special_tokens(text, param)
    if not is_speakable(text):
        raise InvalidInput(
            _("There is nothing to speak in this text: it has no letters or numbers. Write some words."),
            code="text_not_speakable",
            param=param,
        )
    return text


def _refuse_control_characters(text: str, param: str) -> None:
    for position, character in enumerate(text, start=1):
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs"):
            continue
        raise InvalidInput(
            format_lazy(
                _("Character {position} of the text is a control character ({name}). Remove it."),
                position=position,
                name=f"U+{ord(character):04X}",
            ),
            code="text_control_characters",
            param=param,
            position=position,
        )


def _refuse_special_tokens(text: str, param: str) -> None:
    # Full-width forms and hidden characters fold away on the way to the model, so the token is sought in what
    # remains.
    folded = unicodedata.normalize("NFKC", text)
    if not folded.isascii():
        folded = "".join(c for c in folded if unicodedata.category(c) not in _DROPPED)
    found = _SPECIAL_TOKEN.search(folded)
    if found is None:
        return
    raise InvalidInput(
        format_lazy(
            _("The text contains “{token}”, a command for the speech model. Remove it."),
            token=found.group(),
        ),
        code="text_special_token",
        param=param,
        token=found.group(),
    )
