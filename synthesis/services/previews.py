"""A test sentence: how a voice sounds before anything is made with it."""

from __future__ import annotations

from uuid import UUID

from django.utils.translation import gettext as _

from accounts.actors import Actor
from accounts.errors import InvalidInput
from synthesis.models import SynthesisRequest
from synthesis.services import submission, voices

CHARACTERS = 300

#: Said with ease, with a question and a pause. Content and not interface: a voice speaks its own language.
_SENTENCES = {
    "zh": "你好！这就是这个声音说话的样子。听起来怎么样？",
    "yue": "你好！呢把聲講嘢就係咁㗎喇。聽落點呀？",
    "en": "Hello! This is how the voice sounds when it speaks. How do you like it?",
    "ja": "こんにちは。この声はこのように話します。いかがでしょうか。",
    "ko": "안녕하세요! 이 목소리는 이렇게 말합니다. 어떠신가요?",
    "de": "Hallo! So klingt die Stimme, wenn sie spricht. Wie gefällt sie dir?",
    "es": "¡Hola! Así suena la voz cuando habla. ¿Qué te parece?",
    "fr": "Bonjour ! Voilà comment cette voix parle. Qu'en pensez-vous ?",
    "it": "Ciao! Ecco come suona la voce quando parla. Che ne dici?",
    "ru": "Здравствуйте! Вот так звучит этот голос. Как вам?",
}


def sentence(language: str) -> str:
    """What is said in a BCP 47 language; English where there is nothing in it."""
    return _SENTENCES.get(language.split("-")[0], _SENTENCES["en"])


def submit(*, actor: Actor, voice_id: UUID, text: str = "") -> SynthesisRequest:
    """Queue a test sentence, or `text`, for one voice. It counts like any other request.

    Raises VoiceNotFound, InvalidInput for more than 300 characters, and what `submission` raises.
    """
    voice = voices.find(actor, voice_id)
    if len(text) > CHARACTERS:
        raise InvalidInput(
            _("A test sentence has at most %(max)d characters.") % {"max": CHARACTERS},
            code="text_too_long",
            param="text",
        )
    planned = submission.plan(
        actor=actor,
        voice=str(voice.id),
        text=text or sentence(voice.language),
        language="" if text else voice.language,
        title=_("Test of “%(voice)s”") % {"voice": voice.name},
    )
    return submission.submit(actor=actor, planned=planned)
