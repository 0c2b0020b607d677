"""Voices: which there are, blocking them, and reports of misuse."""

from __future__ import annotations

import argparse

from accounts.operators import Operator
from synthesis.console.common import REASON, Answer, Verb, argument, find_team, identifier
from synthesis.models import MisuseReport, Voice
from synthesis.services import misuse, takedown

BY = Operator.command()


def voice_list(options: argparse.Namespace) -> Answer:
    voices = Voice.objects.filter(deleted_at=None).select_related("team", "created_by")
    if options.team:
        voices = voices.filter(team=find_team(options.team))
    return [
        {
            "voice": one.pk,
            "name": one.name,
            "team": one.team.name if one.team else None,
            "by": one.created_by.email if one.created_by else None,
            "language": one.language,
            "blocked": one.taken_down_reason if one.taken_down_at else None,
        }
        for one in voices.order_by("team__name", "name")
    ]


def voice_block(options: argparse.Namespace) -> Answer:
    return {"ended_requests": takedown.take_down(by=BY, voice_id=options.voice, reason=options.reason)}


def voice_restore(options: argparse.Namespace) -> Answer:
    takedown.restore(by=BY, voice_id=options.voice, reason=options.reason)
    return None


def misuse_list(options: argparse.Namespace) -> Answer:
    found = MisuseReport.objects.select_related("voice__team", "reporter").order_by("-created_at")
    if not options.all:
        found = found.filter(decided_at=None)
    return [
        {
            "report": one.pk,
            "when": one.created_at,
            "voice": one.voice.name,
            "voice_id": one.voice_id,
            "team": one.voice.team.name if one.voice.team else None,
            "kind": one.kind,
            "by": one.reporter.email if one.reporter else one.email,
            "details": one.details,
            "decision": one.decision,
        }
        for one in found[:1_000]
    ]


def misuse_add(options: argparse.Namespace) -> Answer:
    made = misuse.note_complaint(
        by=BY, voice_id=options.voice, kind=options.kind, details=options.details, email=options.email
    )
    return {"report": made.pk}


def misuse_dismiss(options: argparse.Namespace) -> Answer:
    made = misuse.dismiss(by=BY, report_id=options.report, note=options.note)
    return {"report": made.pk, "decision": made.decision}


def misuse_block(options: argparse.Namespace) -> Answer:
    ended = misuse.take_down(by=BY, report_id=options.report, reason=options.reason, note=options.note)
    return {"report": options.report, "ended_requests": ended}


VOICE = argument("voice", type=identifier, help="id of a voice")
REPORT = argument("report", type=identifier, help="id of a report")
WHY = argument("--reason", required=True, help="its team reads it")

NOUNS: dict[str, tuple[str, list[Verb]]] = {
    "voice": (
        "voices",
        [
            Verb("list", "all voices", voice_list, [argument("--team", default="", help="of one team")]),
            Verb("block", "forbid a voice at once", voice_block, [VOICE, WHY]),
            Verb("restore", "allow a voice again", voice_restore, [VOICE, REASON]),
        ],
    ),
    "misuse": (
        "reports of misuse",
        [
            Verb(
                "list",
                "those that nobody has decided",
                misuse_list,
                [argument("--all", action="store_true", help="also those that were decided")],
            ),
            Verb(
                "add",
                "what somebody without an account said",
                misuse_add,
                [
                    VOICE,
                    argument("details", help="what happened"),
                    argument("--kind", choices=MisuseReport.Kind.values, default="other"),
                    argument("--email", default="", help="who is told of the decision"),
                ],
            ),
            Verb(
                "dismiss",
                "leave the voice as it is",
                misuse_dismiss,
                [REPORT, argument("--note", required=True, help="whoever reported it is told")],
            ),
            Verb(
                "block",
                "forbid the voice at once",
                misuse_block,
                [REPORT, WHY, argument("--note", default="", help="whoever reported it is told")],
            ),
        ],
    ),
}
