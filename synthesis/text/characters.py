"""What single characters are to the splitter: how much speech they stand for, and what they may stand
next to.
"""

from __future__ import annotations

import unicodedata
from itertools import accumulate

#: Closing quotes and brackets, which stay with the sentence that they close. The straight double quote opens
#: as well; `sentences` tells by counting.
CLOSING = frozenset("”’»›)]}」』）】》〉〕］｝〗〙〛＂＇'\"")
OPENING = frozenset("“‘«‹([{「『（【《〈〔［｛〖〘〚")
#: Marks that never begin a segment: they belong to what comes before.
TRAILING = CLOSING | frozenset(",.;:!?%…。，、；：！？｡．％⋯·—–-~～")
#: Small kana, the long-vowel mark and iteration marks: the second half of a syllable or word (as in kinsoku
#: rules).
_SECOND_HALF = frozenset("ーっゃゅょぁぃぅぇぉゎッャュョァィゥェォヮ々ゝゞヽヾ")

_ZERO_WIDTH_JOINER = "\u200d"


def is_han_or_kana(character: str) -> bool:
    """Whether `character` is written without spaces between words: Han, hiragana or katakana."""
    code = ord(character)
    return (
        0x3400 <= code <= 0x4DBF
        or 0x4E00 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
        or 0x3005 <= code <= 0x3007
        or 0x3041 <= code <= 0x30FF
        or 0xFF66 <= code <= 0xFF9F
    )


def is_hangul(character: str) -> bool:
    """Whether `character` is a Hangul syllable or letter."""
    return 0xAC00 <= ord(character) <= 0xD7A3 or 0x1100 <= ord(character) <= 0x11FF


def weight(character: str) -> float:
    """How much speech `character` stands for, in letters of English text (about 1.15 phonemes each).

    A Han character is a Mandarin syllable of about 5 of Kokoro's symbols: with 2.5, a limit of 200 lets 80
    pass, about 400 symbols of the 508 that Kokoro takes (`synthesis.engines`). Kana have 2-3 symbols; a
    digit is read as a word.
    """
    if character.isascii():
        return 4.0 if character.isdigit() else 1.0
    if 0x3041 <= ord(character) <= 0x30FF:
        return 2.0
    if is_han_or_kana(character) or is_hangul(character):
        return 2.5
    return 4.0 if character.isnumeric() else 1.0


def weigh(text: str) -> float:
    """The sum of the weights of the characters of `text`."""
    return sum(map(weight, text))


def running_weights(text: str) -> list[float]:
    """`len(text) + 1` sums: entry `i` is the weight of `text[:i]`."""
    return list(accumulate(map(weight, text), initial=0.0))


def is_inseparable(before: str, after: str) -> bool:
    """Whether a cut between these neighbours would take apart one visible character or one syllable.

    Combining marks, variation selectors, joined and skin-toned emoji, flags, conjoining Hangul and small
    kana.
    """
    if before == _ZERO_WIDTH_JOINER or after == _ZERO_WIDTH_JOINER or after in _SECOND_HALF:
        return True
    if unicodedata.category(after)[0] == "M" or 0x1F3FB <= ord(after) <= 0x1F3FF:
        return True
    flags = 0x1F1E6 <= ord(before) <= 0x1F1FF and 0x1F1E6 <= ord(after) <= 0x1F1FF
    jamo = 0x1100 <= ord(before) <= 0x11FF and 0x1160 <= ord(after) <= 0x11FF
    return flags or jamo
