"""How good a recording is, told as one would tell a friend."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from synthesis.audio import quality
from synthesis.models import VoiceVersion
from synthesis.services.recordings import Heard


@dataclass(frozen=True, slots=True)
class Verdict:
    """`tone` is good, warn or bad; `points` are sentences, the gravest first."""

    tone: str
    headline: str
    points: list[str]


def verdict(version: VoiceVersion) -> Verdict:
    """What to say about a recording that was good enough to be kept."""
    codes = version.quality.get("flaws", [])
    return _verdict([str(quality.MESSAGES[code]) for code in codes if code in quality.MESSAGES])


def first_verdict(heard: Heard) -> Verdict:
    """What to say about a recording before a voice is made from it."""
    if not heard.usable:
        worst = [str(flaw.sentence) for flaw in heard.flaws if flaw.severity == "error"]
        return Verdict("bad", _("A voice cannot be made from this yet:"), worst)
    return _verdict([str(flaw.sentence) for flaw in heard.flaws])


def _verdict(points: list[str]) -> Verdict:
    if not points:
        return Verdict("good", _("A clean recording. The voice comes through clearly."), [])
    return Verdict("warn", _("Usable, but it could be better:"), points)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the original that could be used, in seconds."""

    start: float
    end: float
    chosen: bool


def windows(version: VoiceVersion) -> list[Window]:
    """The stretches that were found, in their order; the chosen one is marked."""
    return [
        Window(start, end, abs(start - version.window_start) < 0.05 and abs(end - version.window_end) < 0.05)
        for start, end in sorted(version.quality.get("windows", []))
    ]
