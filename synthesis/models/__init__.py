"""Tables, their constraints, and what a row knows about itself."""

from synthesis.models.consents import VoiceConsent
from synthesis.models.requests import Attempt, Format, Output, Segment, Status, SynthesisRequest
from synthesis.models.voices import Voice, VoiceVersion
from synthesis.models.workers import Worker

__all__ = [
    "Attempt",
    "Format",
    "Output",
    "Segment",
    "Status",
    "SynthesisRequest",
    "Voice",
    "VoiceConsent",
    "VoiceVersion",
    "Worker",
]
