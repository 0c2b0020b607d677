"""What an engine is given of a segment. The segment itself keeps every character that was submitted."""

from __future__ import annotations

import re

#: Three of a kind are emphasis; more would only be seconds of pauses and groans.
_RUN = re.compile(r"([^\w\s])\1{3,}")
#: Different marks in a row ("?!?!?!…") say no more in great numbers either.
_MARKS = re.compile(r"([^\w\s]{12})[^\w\s]+")


def spoken(text: str) -> str:
    """`text` with long runs of punctuation and symbols shortened: “No!!!!!!” is spoken as “No!!!”."""
    return _MARKS.sub(r"\1", _RUN.sub(r"\1\1\1", text))
