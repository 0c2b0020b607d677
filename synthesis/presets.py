"""The built-in voices of each engine, as plain data.

Pitch, pace and loudness are measured, not judged: `python -m gpu_worker.make_samples --measure` prints them. Each
voice has a short recording of itself beside this module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

# Django's own wants settings; engines, which read this too, run without.
from django.utils.translation.trans_null import gettext_noop

Gender = Literal["female", "male"]

SAMPLES = Path(__file__).with_name("samples")

#: What a voice says of itself in its recording. Short: all recordings together stay below 1 MB.
_WORDS = {
    "zh": "你好，我是{name}。我可以用这个声音，把你写的文字读出来。",
    "en": "Hello, I'm {name}. I can read your words aloud, in this voice.",
    "ja": "こんにちは、{name}です。あなたの文章を、この声で読み上げます。",
}
_JAPANESE_NAMES = {
    "Alpha": "アルファ",
    "Gongitsune": "ごんぎつね",
    "Kumo": "くも",
    "Nezumi": "ねずみ",
    "Tebukuro": "てぶくろ",
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A built-in voice. `slug` is the engine's own name for it; `name` is unique within its engine.

    `style` is English, in the catalogue of translations. `name_zh` is its name in Chinese characters, if it has one.
    """

    engine: str
    slug: str
    name: str
    language: str
    gender: Gender
    style: str
    #: How loud its engine makes it, in LUFS; engines level their voices by it.
    lufs: float
    name_zh: str = ""
    #: The engine whose voice of this slug was recorded, where that is another one: what is heard is cloned from it.
    recorded: str = ""

    @property
    def sample(self) -> Path:
        """The voice's short recording (MP3, 24 kHz, mono)."""
        return SAMPLES / (self.recorded or self.engine) / f"{self.slug}.mp3"

    @property
    def words(self) -> str:
        """What the recording says: the sentence in which the voice introduces itself."""
        name = self.name_zh or _JAPANESE_NAMES.get(self.name, self.name)
        return _WORDS[self.language.split("-")[0]].format(name=name)


#: A woman's voice is high from 225 Hz and low to 165, a man's from 150 and to 100. The pace is even within 7 % of the
#: median of the voices of its language. Of the whisper, 42 % of the sound is voiced; of the others 54-90 %.
_HIGH_SLOW = gettext_noop("High pitch, slow pace")
_HIGH_EVEN = gettext_noop("High pitch, even pace")
_HIGH_FAST = gettext_noop("High pitch, fast pace")
_MIDDLE_SLOW = gettext_noop("Medium pitch, slow pace")
_MIDDLE_EVEN = gettext_noop("Medium pitch, even pace")
_MIDDLE_FAST = gettext_noop("Medium pitch, fast pace")
_LOW_SLOW = gettext_noop("Low pitch, slow pace")
_LOW_EVEN = gettext_noop("Low pitch, even pace")
_WHISPERED = gettext_noop("Whispered, slow pace")

PRESETS: tuple[Preset, ...] = (
    Preset("kokoro", "zf_xiaoxiao", "Xiaoxiao", "zh", "female", _HIGH_EVEN, -16.9, "晓晓"),
    Preset("kokoro", "zf_xiaoyi", "Xiaoyi", "zh", "female", _HIGH_EVEN, -19.4, "晓伊"),
    Preset("kokoro", "zf_xiaobei", "Xiaobei", "zh", "female", _HIGH_SLOW, -20.4, "晓北"),
    Preset("kokoro", "zf_xiaoni", "Xiaoni", "zh", "female", _MIDDLE_EVEN, -18.4, "晓妮"),
    Preset("kokoro", "zm_yunyang", "Yunyang", "zh", "male", _MIDDLE_FAST, -23.9, "云扬"),
    Preset("kokoro", "zm_yunxi", "Yunxi", "zh", "male", _HIGH_FAST, -22.7, "云希"),
    Preset("kokoro", "zm_yunjian", "Yunjian", "zh", "male", _MIDDLE_EVEN, -20.9, "云健"),
    Preset("kokoro", "zm_yunxia", "Yunxia", "zh", "male", _HIGH_EVEN, -20.8, "云夏"),
    Preset("kokoro", "af_heart", "Heart", "en-US", "female", _MIDDLE_EVEN, -22.5),
    Preset("kokoro", "af_bella", "Bella", "en-US", "female", _MIDDLE_EVEN, -21.4),
    Preset("kokoro", "af_nicole", "Nicole", "en-US", "female", _WHISPERED, -21.4),
    Preset("kokoro", "af_aoede", "Aoede", "en-US", "female", _MIDDLE_EVEN, -18.5),
    Preset("kokoro", "af_kore", "Kore", "en-US", "female", _LOW_SLOW, -18.7),
    Preset("kokoro", "af_sarah", "Sarah", "en-US", "female", _MIDDLE_EVEN, -21.1),
    Preset("kokoro", "af_alloy", "Alloy", "en-US", "female", _LOW_EVEN, -23.2),
    Preset("kokoro", "af_nova", "Nova", "en-US", "female", _LOW_EVEN, -27.2),
    Preset("kokoro", "af_sky", "Sky", "en-US", "female", _LOW_EVEN, -24.3),
    Preset("kokoro", "af_jessica", "Jessica", "en-US", "female", _MIDDLE_FAST, -22.5),
    Preset("kokoro", "af_river", "River", "en-US", "female", _MIDDLE_FAST, -22.2),
    Preset("kokoro", "am_michael", "Michael", "en-US", "male", _MIDDLE_SLOW, -24.5),
    Preset("kokoro", "am_fenrir", "Fenrir", "en-US", "male", _MIDDLE_EVEN, -19.6),
    Preset("kokoro", "am_puck", "Puck", "en-US", "male", _MIDDLE_EVEN, -19.5),
    Preset("kokoro", "am_echo", "Echo", "en-US", "male", _MIDDLE_EVEN, -23.1),
    Preset("kokoro", "am_eric", "Eric", "en-US", "male", _HIGH_FAST, -22.0),
    Preset("kokoro", "am_liam", "Liam", "en-US", "male", _MIDDLE_FAST, -22.1),
    Preset("kokoro", "am_onyx", "Onyx", "en-US", "male", _LOW_EVEN, -24.1),
    Preset("kokoro", "am_santa", "Santa", "en-US", "male", _HIGH_SLOW, -23.1),
    Preset("kokoro", "am_adam", "Adam", "en-US", "male", _MIDDLE_EVEN, -18.7),
    Preset("kokoro", "bf_emma", "Emma", "en-GB", "female", _MIDDLE_EVEN, -20.6),
    Preset("kokoro", "bf_isabella", "Isabella", "en-GB", "female", _MIDDLE_EVEN, -18.4),
    Preset("kokoro", "bf_alice", "Alice", "en-GB", "female", _MIDDLE_EVEN, -21.2),
    Preset("kokoro", "bf_lily", "Lily", "en-GB", "female", _MIDDLE_EVEN, -22.0),
    Preset("kokoro", "bm_george", "George", "en-GB", "male", _MIDDLE_SLOW, -21.9),
    Preset("kokoro", "bm_fable", "Fable", "en-GB", "male", _MIDDLE_EVEN, -22.3),
    Preset("kokoro", "bm_lewis", "Lewis", "en-GB", "male", _LOW_SLOW, -23.6),
    Preset("kokoro", "bm_daniel", "Daniel", "en-GB", "male", _MIDDLE_FAST, -21.6),
    Preset("kokoro", "jf_alpha", "Alpha", "ja", "female", _HIGH_FAST, -19.7),
    Preset("kokoro", "jf_gongitsune", "Gongitsune", "ja", "female", _HIGH_EVEN, -21.2),
    Preset("kokoro", "jf_tebukuro", "Tebukuro", "ja", "female", _HIGH_EVEN, -20.9),
    Preset("kokoro", "jf_nezumi", "Nezumi", "ja", "female", _HIGH_EVEN, -20.4),
    Preset("kokoro", "jm_kumo", "Kumo", "ja", "male", _LOW_EVEN, -20.6),
    Preset("hibari", "heart", "Heart", "en-US", "female", _MIDDLE_EVEN, -25.8),
)

#: CosyVoice3 has no voices of its own. It clones Kokoro's from their recordings, whose words are known, as it would
#: anybody's; its languages have no varieties.
CLONED: tuple[Preset, ...] = tuple(
    replace(preset, engine="cosyvoice3", language=preset.language.split("-")[0], recorded="kokoro")
    for preset in PRESETS
    if preset.engine == "kokoro"
)

_BY_SLUG = {(preset.engine, preset.slug): preset for preset in (*PRESETS, *CLONED)}


def find(engine: str, slug: str) -> Preset | None:
    """The built-in voice that `engine` calls `slug`."""
    return _BY_SLUG.get((engine, slug))
