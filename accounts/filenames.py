"""Names of downloads: what users call things, made safe for every system; inside of archives as well."""

from __future__ import annotations

from django.utils.http import content_disposition_header

#: In bytes of UTF-8: with a number and an ending far below the 255 of file systems.
BYTES = 120
#: What would be a folder, and what Windows does not take in a name.
_FORBIDDEN = frozenset('<>:"/\\|?*')


def safe(words: str, *, most: int = BYTES) -> str:
    """`words` as (the beginning of) a name, at most `most` bytes; empty when nothing is left of them.

    No separators, control characters or marks that turn the direction of writing, and no dots or spaces at either end:
    no name is hidden, or a folder.
    """
    kept = "".join(
        " " if char in _FORBIDDEN else char for char in words if char.isprintable() or char.isspace()
    )
    joined = " ".join(kept.split()).lstrip(". ")
    return joined.encode()[:most].decode(errors="ignore").rstrip(". ")


def name(words: str, ending: str, *, default: str) -> str:
    """`words.ending`, or `default.ending` when nothing is left of `words`."""
    return f"{safe(words) or default}.{ending}"


def attachment(name: str) -> str:
    """`Content-Disposition` of a download called `name`."""
    return content_disposition_header(True, name) or "attachment"
