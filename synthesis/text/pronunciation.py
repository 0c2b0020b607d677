"""How a Chinese character or an English word can be read, as the tags that a text may carry for it.

Both dictionaries come with the packages of the CPU engines (pypinyin, misaki). Where those are not installed, nothing
is offered; tags that somebody writes by hand are understood all the same.
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path

from synthesis.instructions import PHONEMES, PINYIN

_INITIALS = ("zh", "ch", "sh", *"bpmfdtnlgkhjqxrzcsyw")

#: CMU's phonemes with a word in which each is heard, for who composes a pronunciation by hand.
CHART: tuple[tuple[str, str], ...] = (
    ("[AA1]", "father"), ("[AE1]", "cat"), ("[AH1]", "cut"), ("[AO1]", "law"), ("[AW1]", "cow"), ("[AY1]", "my"),
    ("[EH1]", "bed"), ("[ER1]", "bird"), ("[EY1]", "day"), ("[IH1]", "sit"), ("[IY1]", "see"), ("[OW1]", "go"),
    ("[OY1]", "boy"), ("[UH1]", "book"), ("[UW1]", "too"), ("[AH0]", "about"), ("[B]", "bee"), ("[CH]", "cheese"),
    ("[D]", "do"), ("[DH]", "this"), ("[F]", "fee"), ("[G]", "go"), ("[HH]", "he"), ("[JH]", "joy"), ("[K]", "key"),
    ("[L]", "lee"), ("[M]", "me"), ("[N]", "no"), ("[NG]", "ring"), ("[P]", "pea"), ("[R]", "read"), ("[S]", "sea"),
    ("[SH]", "she"), ("[T]", "tea"), ("[TH]", "thin"), ("[V]", "vee"), ("[W]", "we"), ("[Y]", "yes"), ("[Z]", "zoo"),
    ("[ZH]", "vision"),
)  # fmt: skip

#: misaki's symbols, which are IPA with single letters for diphthongs, as CMU's. Longer ones first.
_VOWELS = {
    "ɜɹ": "ER", "əɹ": "ER", "ɚ": "ER", "A": "EY", "I": "AY", "O": "OW", "W": "AW", "Y": "OY", "æ": "AE", "ɑ": "AA",
    "ɔ": "AO", "ə": "AH", "ᵊ": "AH", "ʌ": "AH", "ɛ": "EH", "i": "IY", "ɪ": "IH", "ᵻ": "IH", "u": "UW", "ʊ": "UH",
    "ɜ": "ER",
}  # fmt: skip
_CONSONANTS = {
    "b": "B", "d": "D", "f": "F", "h": "HH", "j": "Y", "k": "K", "l": "L", "m": "M", "n": "N", "p": "P", "s": "S",
    "t": "T", "v": "V", "w": "W", "z": "Z", "ɡ": "G", "ŋ": "NG", "ɹ": "R", "ʃ": "SH", "ʒ": "ZH", "ð": "DH", "θ": "TH",
    "ʤ": "JH", "ʧ": "CH", "ɾ": "T", "T": "T",
}  # fmt: skip
_STRESS = {"ˈ": "1", "ˌ": "2"}


def of_character(character: str) -> list[tuple[str, str]]:
    """(as people write it, as tags) for each reading of a Chinese character: ("háng", "[h][áng]")."""
    if importlib.util.find_spec("pypinyin") is None:
        return []
    import pypinyin

    found = []
    for reading in pypinyin.pinyin(character, style=pypinyin.Style.TONE, heteronym=True)[0]:
        initial = next((one for one in _INITIALS if reading.startswith(one)), "")
        tags = [f"[{part}]" for part in (initial, reading[len(initial) :]) if part]
        if reading != character and all(tag in PINYIN for tag in tags):
            found.append((reading, "".join(tags)))
    return found


def of_word(word: str) -> list[tuple[str, str]]:
    """The same for each pronunciation of an English word: ("R EH1 K ER0 D", "[R][EH1][K][ER0][D]")."""
    dictionary = _dictionary()
    entry = dictionary.get(word) or dictionary.get(word.lower())
    spellings = entry.values() if isinstance(entry, dict) else [entry]
    found = []
    for spelling in dict.fromkeys(one for one in spellings if one):
        sounds = _to_cmu(spelling)
        tags = [f"[{sound}]" for sound in sounds]
        if sounds and all(tag in PHONEMES for tag in tags):
            found.append((" ".join(sounds), "".join(tags)))
    return found


@cache
def _dictionary() -> dict[str, str | dict[str, str | None]]:
    found = importlib.util.find_spec("misaki")
    if found is None or found.origin is None:
        return {}
    path = Path(found.origin).parent / "data" / "us_gold.json"
    words: dict[str, str | dict[str, str | None]] = json.loads(path.read_text()) if path.is_file() else {}
    return words


def _to_cmu(spelling: str) -> list[str]:
    """CMU's symbols; empty where something in `spelling` has none."""
    sounds: list[str] = []
    stress, place = "0", 0
    while place < len(spelling):
        if spelling[place] in _STRESS:
            stress = _STRESS[spelling[place]]
            place += 1
            continue
        symbol = next((one for one in _VOWELS if spelling.startswith(one, place)), "")
        if symbol:
            sounds.append(_VOWELS[symbol] + stress)
            stress = "0"
        elif spelling[place] in _CONSONANTS:
            symbol = spelling[place]
            sounds.append(_CONSONANTS[symbol])
        else:
            return []
        place += len(symbol)
    return sounds
