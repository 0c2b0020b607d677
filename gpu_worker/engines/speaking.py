"""What every engine does with a job before it speaks: refuse what it cannot, and find something to say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

# Django's own wants settings, which an engine has none of. The messages are translated where they are shown.
from django.utils.translation.trans_null import gettext_noop

from gpu_worker.engines.base import Failed, SegmentJob
from synthesis.engines import Capabilities
from synthesis.presets import PRESETS

logger = logging.getLogger(__name__)

#: How loud every voice speaks: as the recordings that voices are made from (synthesis.audio.prepare).
SPEECH_LUFS = -20.0

NOTHING_TO_SPEAK = gettext_noop("There is nothing in this text that can be spoken.")
CANNOT_PRONOUNCE = gettext_noop("This text cannot be pronounced; try it in other words.")
UNKNOWN_VOICE = gettext_noop("This engine does not have that voice.")
UNKNOWN_LANGUAGE = gettext_noop("This engine does not speak that language.")


def gains(engine: str) -> dict[str, float]:
    """The factor for each of `engine`'s presets that brings all to one loudness: theirs differ by up to 10 LU."""
    return {
        preset.slug: 10 ** ((SPEECH_LUFS - preset.lufs) / 20) for preset in PRESETS if preset.engine == engine
    }


def refusal(job: SegmentJob, capabilities: Capabilities, presets: Collection[str]) -> Failed | None:
    """Why this engine cannot speak `job`, or None. A cloned voice must name its nearest preset."""
    if job.language not in capabilities.languages:
        return Failed(job.key, "language_not_supported", UNKNOWN_LANGUAGE)
    if job.voice.preset not in presets:
        return Failed(job.key, "voice_not_available", UNKNOWN_VOICE)
    return None


def phonemes_of(
    job: SegmentJob, phonemize: Callable[[str, str], str], vocabulary: Collection[str]
) -> str | Failed:
    """The phonemes of `job`'s text that the model knows (`phonemize(text, language)`), or why there are none.

    A phonemizer that stumbles over one text must not cost the worker its loaded model or its batch mates
    their turn.
    """
    try:
        phonemes = phonemize(job.text, job.language)
    except Exception as error:  # noqa: BLE001 - third-party code over arbitrary text
        # Only the kind: messages and tracebacks of phonemizers quote the text.
        logger.error("phonemizer failed: %s", type(error).__name__)
        return Failed(job.key, "cannot_pronounce", CANNOT_PRONOUNCE)
    known = "".join(symbol for symbol in phonemes if symbol in vocabulary).strip()
    if not any(symbol.isalpha() for symbol in known):
        return Failed(job.key, "nothing_to_speak", NOTHING_TO_SPEAK)
    return known
