"""How a voice can be told to speak: the catalogue of instructions, and the tags that text may carry.

Both are CosyVoice3's: the instructions are those that its authors list as known to work (`instruct_list` in
upstream's `cosyvoice/utils/common.py`), free text is allowed beside them; the tags are the tokens that its
tokenizer adds (`cosyvoice/tokenizer/tokenizer.py`). Plain data, importable by web processes.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.errors import InvalidInput

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

#: Longest free instruction, in characters. The longest of the catalogue has 52.
INSTRUCTION_CHARACTERS = 200
#: Never in an instruction or a text: they open and close the model's own control tokens.
_CONTROL = ("<|", "|>")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One entry of the catalogue. `key` is what requests carry; `prompt` is what the model is told.

    `label` is in the reader's language; `english` and `chinese` are for clients that choose themselves.
    `pace` is how many times longer than usual speech becomes, for judging what comes out.
    """

    key: str
    group: str
    prompt: str
    label: _StrPromise
    english: str
    chinese: str
    pace: float = 1.0


GROUPS = {
    "dialect": _("Dialect"),
    "emotion": _("Emotion"),
    "pace": _("Pace"),
    "volume": _("Volume"),
    "role": _("Role"),
}


def _dialect(key: str, chinese: str, english: str, label: _StrPromise) -> Instruction:
    return Instruction(f"dialect-{key}", "dialect", f"请用{chinese}表达。", label, english, chinese)


CATALOGUE: tuple[Instruction, ...] = (
    _dialect("guangdong", "广东话", "Cantonese", _("Cantonese")),
    _dialect("dongbei", "东北话", "Northeastern Mandarin", _("Northeastern Mandarin")),
    _dialect("gansu", "甘肃话", "Gansu dialect", _("Gansu dialect")),
    _dialect("guizhou", "贵州话", "Guizhou dialect", _("Guizhou dialect")),
    _dialect("henan", "河南话", "Henan dialect", _("Henan dialect")),
    _dialect("hubei", "湖北话", "Hubei dialect", _("Hubei dialect")),
    _dialect("hunan", "湖南话", "Hunan dialect", _("Hunan dialect")),
    _dialect("jiangxi", "江西话", "Jiangxi dialect", _("Jiangxi dialect")),
    _dialect("minnan", "闽南话", "Hokkien", _("Hokkien")),
    _dialect("ningxia", "宁夏话", "Ningxia dialect", _("Ningxia dialect")),
    _dialect("shanxi", "山西话", "Shanxi dialect", _("Shanxi dialect")),
    _dialect("shaanxi", "陕西话", "Shaanxi dialect", _("Shaanxi dialect")),
    _dialect("shandong", "山东话", "Shandong dialect", _("Shandong dialect")),
    _dialect("shanghai", "上海话", "Shanghainese", _("Shanghainese")),
    _dialect("sichuan", "四川话", "Sichuan dialect", _("Sichuan dialect")),
    _dialect("tianjin", "天津话", "Tianjin dialect", _("Tianjin dialect")),
    _dialect("yunnan", "云南话", "Yunnan dialect", _("Yunnan dialect")),
    Instruction("happy", "emotion", "请非常开心地说一句话。", _("Very happy"), "Very happy", "非常开心"),
    Instruction("sad", "emotion", "请非常伤心地说一句话。", _("Very sad"), "Very sad", "非常伤心", pace=1.5),
    Instruction("angry", "emotion", "请非常生气地说一句话。", _("Very angry"), "Very angry", "非常生气"),
    Instruction(
        "slowest",
        "pace",
        "请用尽可能慢地语速说一句话。",
        _("As slow as possible"),
        "As slow as possible",
        "尽可能慢",
        pace=2.5,
    ),
    Instruction(
        "fastest",
        "pace",
        "请用尽可能快地语速说一句话。",
        _("As fast as possible"),
        "As fast as possible",
        "尽可能快",
        pace=0.5,
    ),
    Instruction(
        "loudest",
        "volume",
        "Please say a sentence as loudly as possible.",
        _("As loud as possible"),
        "As loud as possible",
        "尽可能大声",
    ),
    Instruction(
        "softest",
        "volume",
        "Please say a sentence in a very soft voice.",
        _("In a very soft voice"),
        "In a very soft voice",
        "非常轻声",
    ),
    Instruction(
        "peppa",
        "role",
        "我想体验一下小猪佩奇风格，可以吗？",
        _("Peppa Pig"),
        "Peppa Pig",
        "小猪佩奇",
        pace=1.2,
    ),
    Instruction("robot", "role", "你可以尝试用机器人的方式解答吗？", _("Robot"), "Robot", "机器人", pace=1.5),
)
BY_KEY: dict[str, Instruction] = {entry.key: entry for entry in CATALOGUE}


def clean_instruction(value: str, *, param: str = "instruction") -> str:
    """`value`, a key of the catalogue or free text, as it is kept with a request: one line, in NFC.

    Raises InvalidInput with `instruction_too_long`, `instruction_control_characters`,
    `instruction_special_token` or `instruction_unknown` (it looks like a misspelt key).
    """
    text = " ".join(unicodedata.normalize("NFC", value).split())
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") for character in text):
        raise InvalidInput(
            _("The instruction has characters that cannot be seen. Type it again."),
            code="instruction_control_characters",
            param=param,
        )
    folded = unicodedata.normalize("NFKC", text)
    if any(mark in folded for mark in _CONTROL):
        raise InvalidInput(
            _("The instruction must not have “<|” or “|>” in it. Remove them."),
            code="instruction_special_token",
            param=param,
        )
    if len(text) > INSTRUCTION_CHARACTERS:
        raise InvalidInput(
            format_lazy(
                _("The instruction has {length} characters; at most {limit} are allowed."),
                length=len(text),
                limit=INSTRUCTION_CHARACTERS,
            ),
            code="instruction_too_long",
            param=param,
        )
    _refuse_misspelt_key(text, param)
    return text


def _refuse_misspelt_key(text: str, param: str) -> None:
    """“dialect-sichaun” must not be spoken to the model as if it were a wish in somebody's own words."""
    if text in BY_KEY or re.fullmatch(r"[a-z]+(-[a-z]+)*", text) is None:
        return
    close = difflib.get_close_matches(text, BY_KEY, n=1, cutoff=0.75)
    if text.startswith("dialect-") or close:
        raise InvalidInput(
            format_lazy(
                _("There is no instruction “{key}”. The nearest is “{nearest}”."),
                key=text,
                nearest=(close or difflib.get_close_matches(text, BY_KEY, n=1, cutoff=0.0))[0],
            ),
            code="instruction_unknown",
            param=param,
        )


def instruction_prompt(value: str) -> str:
    """What the model is told for `value`: the catalogue's sentence for a key, free text as one whole
    sentence.

    A sentence that does not end is sometimes spoken aloud as if it were text.
    """
    if value in BY_KEY:
        return BY_KEY[value].prompt
    text = value.strip()
    if not text or unicodedata.category(text[-1]).startswith("P"):
        return text
    return text + ("。" if any("\u3400" <= character <= "\u9fff" for character in text) else ".")


def pace_of(value: str) -> float:
    """How many times longer than usual speech becomes by the instruction `value`."""
    return BY_KEY[value].pace if value in BY_KEY else 1.0


# -- Tags in text

#: Sounds that are made where the tag stands.
SOUNDS: dict[str, _StrPromise] = {
    "[breath]": _("a breath"),
    "[quick_breath]": _("a quick breath"),
    "[laughter]": _("a laugh"),
    "[cough]": _("a cough"),
    "[clucking]": _("a click of the tongue"),
    "[accent]": _("an accent on the next word"),
    "[noise]": _("a noise"),
    "[hissing]": _("a hiss"),
    "[sigh]": _("a sigh"),
    "[vocalized-noise]": _("a noise of the voice"),
    "[lipsmack]": _("a smack of the lips"),
    "[mn]": _("an agreeing “mm”"),
}
#: Ways of speaking between an opening and a closing tag.
SPANS: dict[str, _StrPromise] = {
    "strong": _("with emphasis"),
    "laughter": _("while laughing"),
}
_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"
_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"
#: CMU phonemes of English: vowels with and without stress, consonants.
PHONEMES: frozenset[str] = frozenset(
    [f"[{vowel}{stress}]" for vowel in _VOWELS.split() for stress in ("", "0", "1", "2")]
    + [f"[{consonant}]" for consonant in _CONSONANTS.split()]
)
_PINYIN = """
a ai an ang ao b c ch d e ei en eng f g h i ian in ing iu ià iàn iàng iào iá ián iáng iáo iè ié iòng ióng
iù iú iā iān iāng iāo iē iě iōng iū iǎ iǎn iǎng iǎo iǒng iǔ j k l m n o ong ou p q r s sh t u uang ue un
uo uà uài uàn uàng uá uái uán uáng uè ué uì uí uò uó uā uāi uān uāng uē uě uī uō uǎ uǎi uǎn uǎng uǐ uǒ vè
w x y z zh à ài àn àng ào á ái án áng áo è èi èn èng èr é éi én éng ér ì ìn ìng í ín íng ò òng òu ó óng
óu ù ùn ú ún ā āi ān āng āo ē ēi ēn ēng ě ěi ěn ěng ěr ī īn īng ō ōng ōu ū ūn ǎ ǎi ǎn ǎng ǎo ǐ ǐn ǐng ǒ
ǒng ǒu ǔ ǔn ǘ ǚ ǜ
"""
#: The parts of a Chinese syllable, written one after the other in place of a character: `[j][ǐ]`.
PINYIN: frozenset[str] = frozenset(f"[{part}]" for part in _PINYIN.split())
_MARKS = frozenset(f"<{name}>" for name in SPANS) | frozenset(f"</{name}>" for name in SPANS)
KNOWN_TAGS: frozenset[str] = frozenset(SOUNDS) | PHONEMES | PINYIN | _MARKS
#: What looks like a tag: Latin letters in square or angle brackets. `[1]`, `[注]` and `a < b` do not.
_TAG = re.compile(r"\[[^\W\d_][\w \-]{0,30}\]|</?[A-Za-z][^<>\n]{0,60}>")
_EMPTY_SPAN = re.compile(r"<([a-z]+)></\1>")


def tags_in(text: str) -> list[str]:
    """What looks like a tag in `text`, known or not, in order."""
    return [found for found in _TAG.findall(unicodedata.normalize("NFC", text)) if _is_latin(found)]


def _is_latin(tag: str) -> bool:
    return all("LATIN" in unicodedata.name(character, "") for character in tag if character.isalpha())


def without_tags(text: str) -> str:
    """`text` as it is without its known tags: what is said, and no more."""
    return _TAG.sub(lambda found: "" if found.group() in KNOWN_TAGS else found.group(), text)


def check_tags(text: str, *, supported: bool, param: str = "text") -> None:
    """Refuse tags that would be read aloud. `supported` is whether the engine knows tags at all.

    Raises InvalidInput: `tag_unknown` (misspelt, or words in brackets; with `tag` and, where there is one,
    `nearest`), `tag_not_closed` (a span that is not opened and closed in order) or `tags_not_supported`.
    """
    found = tags_in(text)
    known = [tag for tag in found if tag in KNOWN_TAGS]
    if not supported:
        # A pinyin token such as [a] is an ordinary word in brackets to an engine that has no tags.
        for tag in known:
            if tag in SOUNDS or tag in _MARKS:
                raise InvalidInput(
                    format_lazy(
                        _("The engine in use does not know “{tag}” and would read it out. Remove it."),
                        tag=tag,
                    ),
                    code="tags_not_supported",
                    param=param,
                    tag=tag,
                )
        return
    for tag in found:
        if tag not in KNOWN_TAGS:
            raise _unknown(tag, param)
    _refuse_open_spans(known, param)


def _unknown(tag: str, param: str) -> InvalidInput:
    lowered = {known.lower(): known for known in (*SOUNDS, *_MARKS)}
    nearest = difflib.get_close_matches(tag.lower(), lowered, n=1, cutoff=0.7)
    if nearest:
        suggestion = lowered[nearest[0]]
        return InvalidInput(
            format_lazy(
                _("“{tag}” is not a tag. Did you mean “{nearest}”? Put words to be read in round brackets."),
                tag=tag,
                nearest=suggestion,
            ),
            code="tag_unknown",
            param=param,
            tag=tag,
            nearest=suggestion,
        )
    return InvalidInput(
        format_lazy(_("“{tag}” is not a tag. Put words to be read in round brackets."), tag=tag),
        code="tag_unknown",
        param=param,
        tag=tag,
    )


def _refuse_open_spans(tags: list[str], param: str) -> None:
    opened: list[str] = []
    for tag in tags:
        if tag in _MARKS and not tag.startswith("</"):
            opened.append(tag)
        elif tag in _MARKS and (not opened or opened.pop() != tag.replace("</", "<")):
            raise _not_closed(tag, param)
    if opened:
        raise _not_closed(opened[-1], param)


def _not_closed(tag: str, param: str) -> InvalidInput:
    name = tag.strip("</>")
    return InvalidInput(
        format_lazy(
            _("“{tag}” has no partner. Write <{name}>…</{name}> around the words that it is for."),
            tag=tag,
            name=name,
        ),
        code="tag_not_closed",
        param=param,
        tag=tag,
    )


def balanced(segments: list[str]) -> list[str]:
    """`segments` of one text, with each span closed where its segment ends and opened again in the next.

    A text is checked as a whole and then split; the model hears each segment alone.
    """
    result: list[str] = []
    opened: list[str] = []
    for segment in segments:
        prefix = "".join(opened)
        for tag in (tag for tag in _TAG.findall(segment) if tag in _MARKS):
            if not tag.startswith("</"):
                opened.append(tag)
            elif opened:
                opened.pop()
        suffix = "".join(tag.replace("<", "</") for tag in reversed(opened))
        result.append(_EMPTY_SPAN.sub("", f"{prefix}{segment}{suffix}"))
    return result
