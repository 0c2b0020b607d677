"""Tables, their constraints, and what a row knows about itself."""

from synthesis.models.batches import Batch, BatchRow
from synthesis.models.consents import VoiceConsent
from synthesis.models.misuse import MisuseReport
from synthesis.models.pools import Pool, TeamPool
from synthesis.models.requests import Attempt, Format, Output, Segment, Status, SynthesisRequest
from synthesis.models.scripts import Script, ScriptLine
from synthesis.models.studio import Favourite, SettingsPreset, VoiceFavourite, VoiceTag
from synthesis.models.turns import FairClock, QueueChange, Turn
from synthesis.models.usage import Dimension, Grain, LedgerCheck, RollupState, UsageRollup
from synthesis.models.voices import Voice, VoiceQuerySet, VoiceVersion
from synthesis.models.webhooks import Callback, Delivery, OnItsWay, SigningSecret, Webhook
from synthesis.models.workers import Worker

__all__ = [
    "Attempt",
    "Batch",
    "BatchRow",
    "Callback",
    "Delivery",
    "Dimension",
    "FairClock",
    "Favourite",
    "Format",
    "Grain",
    "LedgerCheck",
    "MisuseReport",
    "OnItsWay",
    "Output",
    "Pool",
    "QueueChange",
    "RollupState",
    "Script",
    "ScriptLine",
    "Segment",
    "SettingsPreset",
    "SigningSecret",
    "Status",
    "SynthesisRequest",
    "TeamPool",
    "Turn",
    "UsageRollup",
    "Voice",
    "VoiceConsent",
    "VoiceFavourite",
    "VoiceQuerySet",
    "VoiceTag",
    "VoiceVersion",
    "Webhook",
    "Worker",
]
