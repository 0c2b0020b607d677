"""What somebody who adds a voice agrees to.

What was agreed to is evidence: each version of a voice keeps the words that its maker was shown, with the language and
the number of the text. So the texts are fixed here and not in the catalogue of translations, where one could change
unnoticed. A text is never edited: a better one follows it with the next number, in every language that needs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language


@dataclass(frozen=True, slots=True)
class Statement:
    """One text: `language` as BCP 47 has it, `version` counts within the language."""

    language: str
    version: int
    text: str

    @property
    def key(self) -> str:
        """What a form sends back, to say which text it showed."""
        return f"{self.language}/{self.version}"


#: Every text there ever was; of each language the last one is shown. Each says the same as the English one.
STATEMENTS = (
    Statement(
        "en",
        1,
        "This is my own voice, or I have the speaker's permission to clone it and to use it for what my team makes.",
    ),
    Statement(
        "zh-Hans",
        1,
        "这是我本人的声音，或者我已获得说话人的许可，可以克隆其声音，并用于我所在团队制作的内容。",
    ),
)


def current() -> Statement:
    """The text for the reader's language; the English one where there is none."""
    reader = (get_language() or "en").lower()
    newest = {one.language.lower(): one for one in STATEMENTS}
    base = reader.split("-")[0]
    near = [one for language, one in newest.items() if language.split("-")[0] == base]
    return newest.get(reader) or (near[0] if near else newest["en"])


def shown(key: str) -> Statement | None:
    """The text that `key` names, if it is still the one for its language."""
    newest = {one.language: one for one in STATEMENTS}
    return next((one for one in newest.values() if one.key == key), None)


def said(text: str) -> Statement | None:
    """The text that somebody repeats word for word, in whichever language."""
    newest = {one.language: one for one in STATEMENTS}
    return next((one for one in newest.values() if one.text == text.strip()), None)
