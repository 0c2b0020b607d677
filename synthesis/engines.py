"""What each engine can do, as plain data.

Web processes validate requests against this without importing an engine (and with it onnxruntime or torch);
`gpu_worker.engines` implements exactly what is declared here, and a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Cloning = Literal["none", "nearest_preset", "zero_shot"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine declares. Languages are BCP 47 tags; rates are in Hz; speeds are factors."""

    name: str
    label: str
    sample_rate: int
    languages: tuple[str, ...]
    cloning: Cloning
    instructions: bool
    speed: tuple[float, float]
    #: The same seed gives the same samples. A deterministic engine keeps that promise without using the seed.
    seed: bool
    #: Longest segment that the engine speaks well, in characters of text.
    segment_characters: int
    #: How many segments it takes at once unless the machine's own setting says otherwise.
    batch: int = 1
    #: Says the words of a recording in another voice.
    conversion: bool = False
    #: Understands `[breath]`, `<strong>…</strong>`, pinyin and phonemes in the text (`synthesis.instructions`).
    inline_tags: bool = False
    #: Refuses implausible sound and tries other seeds by itself, because it knows what tags and instructions do to it.
    checks_itself: bool = False

    def spoken_as(self, language: str, *, like: str = "") -> str | None:
        """The tag among `languages` for one such as “en”, “en-AU” or “cmn”; None when it speaks none like it.

        A bare “en” is `like`, a voice's own variety, where that is one.
        """
        exact = {tag.lower(): tag for tag in self.languages}
        if language.lower() in exact:
            return exact[language.lower()]
        same = [tag for tag in self.languages if _base(tag) == _base(language)]
        return like if like in same else next(iter(same), None)


def _base(tag: str) -> str:
    """ "zh" of "zh-CN", "zh_Hans" and "cmn"."""
    base = tag.lower().replace("_", "-").split("-")[0]
    return {"cmn": "zh", "eng": "en", "jpn": "ja", "zho": "zh"}.get(base, base)


ENGINES: dict[str, Capabilities] = {
    # Kokoro-82M takes 508 phonemes a call. Measured for each unit of `synthesis.text.characters.weight`: English 1.0,
    # Japanese 1.2, numbers 1.4, Mandarin 1.7. So 200 are at most 340 phonemes, which is also where it speaks best, and
    # 12-25 s of speech, after each of which a cancel is noticed.
    "kokoro": Capabilities(
        name="kokoro",
        label="Kokoro-82M",
        sample_rate=24_000,
        languages=("zh", "en-US", "en-GB", "ja"),
        cloning="nearest_preset",
        instructions=False,
        speed=(0.5, 2.0),
        seed=True,
        segment_characters=200,
    ),
    "hibari": Capabilities(
        name="hibari",
        label="Hibari",
        sample_rate=24_000,
        languages=("en-US",),
        cloning="nearest_preset",
        instructions=False,
        speed=(0.5, 2.0),
        seed=True,
        segment_characters=200,
    ),
    # Fun-CosyVoice3-0.5B. Languages as its authors list them, dialects by instruction. Upstream cuts at 80 text tokens,
    # which is about 100 Chinese characters (25 s of speech) and 300 letters of English. The splitter counts a Chinese
    # character as 2.5 letters (synthesis.text.characters), so 240 lets 96 of them pass.
    "cosyvoice3": Capabilities(
        name="cosyvoice3",
        label="CosyVoice 3",
        sample_rate=24_000,
        languages=("zh", "en", "ja", "ko", "de", "es", "fr", "it", "ru"),
        cloning="zero_shot",
        instructions=True,
        speed=(0.5, 2.0),
        seed=True,
        segment_characters=240,
        conversion=True,
        inline_tags=True,
        checks_itself=True,
    ),
    # A server with OpenAI's /v1/audio/speech. What such a server can do is its own affair: this is what every one
    # that serves CosyVoice3 (vLLM-Omni) or another Chorus can do. It keeps no promise about seeds.
    "remote": Capabilities(
        name="remote",
        label="Remote speech server",
        sample_rate=24_000,
        languages=("zh", "en", "ja", "ko", "de", "es", "fr", "it", "ru"),
        cloning="zero_shot",
        instructions=True,
        speed=(0.5, 2.0),
        seed=False,
        segment_characters=200,
        batch=4,
    ),
}


def capabilities(name: str) -> Capabilities:
    """The declaration of the engine called `name`; KeyError for an engine that does not exist."""
    return ENGINES[name]
