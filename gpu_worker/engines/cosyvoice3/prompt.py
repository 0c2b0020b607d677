"""From a job to what the model reads: which mode it is, the fixed prefix, the one special token, Japanese as
katakana.

The forms are those of upstream's `example.py`. Without `<|endofprompt|>` the model fails, or with streaming
hangs for ever; in a wrong form it speaks the instruction aloud. So users give words, and the tokens are added
here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from django.utils.translation.trans_null import gettext_noop

from gpu_worker.engines.base import SegmentJob
from gpu_worker.engines.cosyvoice3.features import SAMPLE_PRESET
from gpu_worker.engines.speaking import NOTHING_TO_SPEAK
from synthesis import instructions
from synthesis.text.clean import is_speakable

Mode = Literal["zero_shot", "cross_lingual", "instruct", "conversion"]

PREFIX = "You are a helpful assistant."
END = "<|endofprompt|>"
_CONTROL = re.compile(r"<\||\|>")
SPECIAL_TOKEN = gettext_noop("“<|” and “|>” are commands for the speech model; remove them.")
NO_READINGS = gettext_noop("Japanese needs the package pyopenjtalk-plus, which this worker lacks.")


class RefusedError(Exception):
    """A job that this engine cannot speak. `code` is stable; `message` may be shown to the user."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the language model reads: `before` (prefix, instruction, the prompt's transcript), then `text`.

    `heard` is whether it also hears the prompt's speech tokens, which zero-shot alone lets it: in the other
    modes the clip gives the voice and not the way of speaking.
    """

    mode: Mode
    before: str
    text: str
    heard: bool


def plan(job: SegmentJob, *, sample: tuple[str, str] | None = None) -> Prompt:
    """The mode and the words for `job`; `sample` is transcript and language of the built-in voice.

    Conversion with a recording; instruct with an instruction; zero-shot with a transcript in the language
    that is to be spoken; else cross-lingual. Raises RefusedError.
    """
    if job.source_audio is not None:
        return Prompt("conversion", "", "", heard=False)
    transcript, language = job.voice.transcript, job.voice.language
    if sample is not None and job.voice.preset == SAMPLE_PRESET:
        transcript, language = sample
    for words in (job.text, job.instruction, transcript):
        if _CONTROL.search(words):
            raise RefusedError("special_token", SPECIAL_TOKEN)
    text = _written(job.text, job.language)
    if not _says_something(text):
        raise RefusedError("nothing_to_speak", NOTHING_TO_SPEAK)
    if job.instruction.strip():
        told = instructions.instruction_prompt(job.instruction)
        return Prompt("instruct", f"{PREFIX} {told}{END}", text, heard=False)
    if transcript.strip() and _base(language) == _base(job.language):
        return Prompt("zero_shot", f"{PREFIX}{END}{_written(transcript, language)}", text, heard=True)
    # Upstream puts the prefix into the text here. As a prompt the model reads the same tokens, but they do
    # not count as text, for which it would have to make at least two tokens of sound each: half a second too
    # much for "Yes."
    return Prompt("cross_lingual", f"{PREFIX}{END}", text, heard=False)


def _base(language: str) -> str:
    return language.partition("-")[0].lower()


def _says_something(text: str) -> bool:
    tags = instructions.tags_in(text)
    return is_speakable(instructions.without_tags(text)) or any(
        tag in instructions.KNOWN_TAGS for tag in tags
    )


def _written(text: str, language: str) -> str:
    text = instructions.balanced([" ".join(text.split())])[0]
    return katakana(text) if _base(language) == "ja" else text


#: Runs that OpenJTalk would spell out letter by letter: tags, and words in Latin letters.
_LATIN = re.compile(r"\[[^\[\]]{1,32}\]|</?[a-z]+>|[A-Za-z][A-Za-z0-9'’.&-]*")
_NEEDS_READING = re.compile(r"[\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff々〆0-9０-９]")


def katakana(text: str) -> str:
    """Japanese `text` as the model was taught to read it: katakana as pronounced, words apart.

    Text that is katakana already, tags and Latin words stay as they are. Raises RefusedError without
    pyopenjtalk.
    """
    if not _NEEDS_READING.search(_LATIN.sub("", text)):
        return text
    try:
        import pyopenjtalk
    except ImportError as error:
        raise RefusedError("language_not_supported", NO_READINGS) from error
    parts: list[str] = []
    position = 0
    for found in _LATIN.finditer(text):
        parts += [_read(pyopenjtalk, text[position : found.start()]), found.group()]
        position = found.end()
    parts.append(_read(pyopenjtalk, text[position:]))
    return " ".join(part for part in parts if part)


def _read(pyopenjtalk: object, text: str) -> str:
    if not text.strip():
        return ""
    words: list[str] = []
    for word in pyopenjtalk.run_frontend(text):  # type: ignore[attr-defined]
        said = word["pron"].replace("’", "")
        if any(character.isalpha() for character in said):
            words.append(f" {said}" if words else said)
        else:
            words.append(word["string"])
    return "".join(words).strip()
