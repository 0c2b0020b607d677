"""The studio's palette: tags, instructions, readings of a character, phonemes of a word, and what a text comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_POST, require_safe

from accounts import permissions
from accounts.errors import ChorusError
from accounts.web.shell import PageRequest, team_page
from synthesis import instructions
from synthesis.languages import language_name
from synthesis.services import estimate, submission
from synthesis.text import pronunciation
from synthesis.web.forms import engine

#: Longest word whose phonemes, and longest text whose readings, somebody may ask for.
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Group:
    """Instructions of one kind, under a heading."""

    key: str
    label: str
    entries: list[tuple[str, str]]


def palette() -> dict[str, Any]:
    """What the studio offers to insert: only what the installation's engine understands."""
    can = engine()
    groups = [
        Group(
            key, str(label), [(one.key, str(one.label)) for one in instructions.CATALOGUE if one.group == key]
        )
        for key, label in instructions.GROUPS.items()
    ]
    return {
        "engine_label": can.label,
        "engine_instructs": can.instructions,
        "engine_tags": can.inline_tags,
        "engine_seeds": can.seed,
        "instruction_groups": groups if can.instructions else [],
        "sounds": [(tag, str(label)) for tag, label in instructions.SOUNDS.items()]
        if can.inline_tags
        else [],
        "spans": [(tag, str(label)) for tag, label in instructions.SPANS.items()] if can.inline_tags else [],
    }


def key_of(words: str) -> str:
    """The catalogue's key for what the field says, in whichever language; the words themselves otherwise."""
    folded = " ".join(words.split()).casefold()
    for one in instructions.CATALOGUE:
        if folded in {str(one.label).casefold(), one.english.casefold(), one.chinese}:
            return one.key
    return words


def words_of(key: str) -> str:
    """What the field shows for a key, in the reader's language; free words as they are."""
    found = instructions.BY_KEY.get(key)
    if found is None:
        return key
    return found.chinese if (get_language() or "").startswith("zh") else str(found.label)


@require_safe
@team_page
def readings(request: PageRequest) -> HttpResponse:
    """How the selected character or word can be read, as tags to put in its place."""
    request.actor.require(permissions.SYNTHESES_WRITE)
    selected = request.GET.get("text", "").strip()[:_LONGEST]
    can = engine().inline_tags
    context = {
        "selected": selected,
        "supported": can,
        "engine_label": engine().label,
        "readings": pronunciation.of_character(selected) if can and len(selected) == 1 else [],
        "phonemes": pronunciation.of_word(selected) if can else [],
        "chart": pronunciation.CHART if can and not (len(selected) == 1 and not selected.isascii()) else [],
    }
    return render(request, "studio/readings.html", context)


@require_POST
@team_page
def outline(request: PageRequest) -> HttpResponse:
    """What the text in the editor comes to: language, parts, length, when it would be ready; nothing is written."""
    text = request.POST.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        return HttpResponse("")
    try:
        planned = submission.plan(
            actor=request.actor,
            voice=request.POST.get("voice", ""),
            text=text,
            language=request.POST.get("language", ""),
        )
    except ChorusError as error:
        # Said while somebody is still typing, so quietly; the same is said loudly when they submit.
        return render(request, "studio/outline.html", {"error": error})
    context = {
        "estimate": estimate.estimate(request.actor, planned),
        "spoken_language": language_name(planned.language),
        "segments": planned.segments,
        "detected": not request.POST.get("language"),
    }
    return render(request, "studio/outline.html", context)
