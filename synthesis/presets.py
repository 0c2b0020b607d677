"""The built-in voices of each engine, as plain data.

Pitch and pace are measured, not judged: `python -m gpu_worker.make_samples --measure` prints them (median of the
fundamental frequency, characters a second). Each voice has a short recording of itself beside this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Gender = Literal["female", "male"]

SAMPLES = Path(__file__).with_name("samples")


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

    @property
    def sample(self) -> Path:
        """The voice's short recording (MP3, 24 kHz, mono)."""
        return SAMPLES / self.engine / f"{self.slug}.mp3"


PRESETS: tuple[Preset, ...] = (
    Preset("kokoro", "zf_xiaoxiao", "Xiaoxiao", "zh", "female", "", -16.9, "晓晓"),
    Preset("kokoro", "zf_xiaoyi", "Xiaoyi", "zh", "female", "", -19.4, "晓伊"),
    Preset("kokoro", "zf_xiaobei", "Xiaobei", "zh", "female", "", -20.4, "晓北"),
    Preset("kokoro", "zf_xiaoni", "Xiaoni", "zh", "female", "", -18.4, "晓妮"),
    Preset("kokoro", "zm_yunyang", "Yunyang", "zh", "male", "", -23.9, "云扬"),
    Preset("kokoro", "zm_yunxi", "Yunxi", "zh", "male", "", -22.7, "云希"),
    Preset("kokoro", "zm_yunjian", "Yunjian", "zh", "male", "", -20.9, "云健"),
    Preset("kokoro", "zm_yunxia", "Yunxia", "zh", "male", "", -20.8, "云夏"),
    Preset("kokoro", "af_heart", "Heart", "en-US", "female", "", -22.5),
    Preset("kokoro", "af_bella", "Bella", "en-US", "female", "", -21.4),
    Preset("kokoro", "af_nicole", "Nicole", "en-US", "female", "", -21.4),
    Preset("kokoro", "af_aoede", "Aoede", "en-US", "female", "", -18.5),
    Preset("kokoro", "af_kore", "Kore", "en-US", "female", "", -18.7),
    Preset("kokoro", "af_sarah", "Sarah", "en-US", "female", "", -21.1),
    Preset("kokoro", "af_alloy", "Alloy", "en-US", "female", "", -23.2),
    Preset("kokoro", "af_nova", "Nova", "en-US", "female", "", -27.2),
    Preset("kokoro", "af_sky", "Sky", "en-US", "female", "", -24.3),
    Preset("kokoro", "af_jessica", "Jessica", "en-US", "female", "", -20.0),
    Preset("kokoro", "af_river", "River", "en-US", "female", "", -20.0),
    Preset("kokoro", "am_michael", "Michael", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_fenrir", "Fenrir", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_puck", "Puck", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_echo", "Echo", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_eric", "Eric", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_liam", "Liam", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_onyx", "Onyx", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_santa", "Santa", "en-US", "male", "", -20.0),
    Preset("kokoro", "am_adam", "Adam", "en-US", "male", "", -20.0),
    Preset("kokoro", "bf_emma", "Emma", "en-GB", "female", "", -20.0),
    Preset("kokoro", "bf_isabella", "Isabella", "en-GB", "female", "", -20.0),
    Preset("kokoro", "bf_alice", "Alice", "en-GB", "female", "", -20.0),
    Preset("kokoro", "bf_lily", "Lily", "en-GB", "female", "", -20.0),
    Preset("kokoro", "bm_george", "George", "en-GB", "male", "", -20.0),
    Preset("kokoro", "bm_fable", "Fable", "en-GB", "male", "", -20.0),
    Preset("kokoro", "bm_lewis", "Lewis", "en-GB", "male", "", -20.0),
    Preset("kokoro", "bm_daniel", "Daniel", "en-GB", "male", "", -20.0),
    Preset("kokoro", "jf_alpha", "Alpha", "ja", "female", "", -20.0),
    Preset("kokoro", "jf_gongitsune", "Gongitsune", "ja", "female", "", -20.0),
    Preset("kokoro", "jf_tebukuro", "Tebukuro", "ja", "female", "", -20.0),
    Preset("kokoro", "jf_nezumi", "Nezumi", "ja", "female", "", -20.0),
    Preset("kokoro", "jm_kumo", "Kumo", "ja", "male", "", -20.0),
    Preset("hibari", "heart", "Heart", "en-US", "female", "", -20.0),
)

_BY_SLUG = {(preset.engine, preset.slug): preset for preset in PRESETS}


def find(engine: str, slug: str) -> Preset | None:
    """The built-in voice that `engine` calls `slug`."""
    return _BY_SLUG.get((engine, slug))
