"""What the command says, in English and Chinese: a dictionary, so that nothing has to be compiled or installed."""

from __future__ import annotations

import os

from chorus_voice.chinese import CHINESE


def language() -> str:
    """`zh` or `en`: CHORUS_LANG, else as the other programs of the machine are told."""
    for name in ("CHORUS_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


def translate(message: str) -> str:
    """`message` in the caller's language; as it is when there are no words for it."""
    return CHINESE.get(message, message) if language() == "zh" else message


_ = translate
