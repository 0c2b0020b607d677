"""The studio: write, choose a voice, submit, listen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap, retarget

from accounts import permissions
from accounts.errors import ChorusError, NotFound
from accounts.services import limits, rates
from accounts.web.once import once
from accounts.web.shell import PageRequest, add_error, fragment, show, team_page
from synthesis.languages import language_name
from synthesis.models import SynthesisRequest, Voice, Worker
from synthesis.services import requests, settings_presets, submission
from synthesis.web import first_steps, steering
from synthesis.web.cards import VoiceCard, request_card, request_cards, voice_card
from synthesis.web.forms import StudioForm, engine

#: Requests under the editor; the rest is in the history.
RECENT = 8


@require_safe
@team_page
def studio(request: PageRequest) -> HttpResponse:
    """The editor, and one's own latest requests under it."""
    request.actor.require(permissions.SYNTHESES_READ)
    recent = requests.visible(request.actor).filter(user=request.user)[:RECENT]
    context = {
        **_editor(request, StudioForm(initial=_initial(request))),
        "recent": request_cards(recent, request.user),
        "events_url": reverse("events"),
        "first_steps": first_steps.steps(request),
        "workers_alive": Worker.objects.alive().filter(engine=engine().name).exists(),
        "may_submit": request.actor.can(permissions.SYNTHESES_WRITE),
    }
    return show(request, "studio/studio.html", context, section="studio")


@require_POST
@team_page
def submit(request: PageRequest) -> HttpResponse:
    """Queue a text. htmx gets its card; a browser without scripts goes back to the studio."""
    form = StudioForm(request.POST)
    made, again = _submit(request, form) if form.is_valid() else (None, False)
    if made is None:
        context = _editor(request, form)
        if request.htmx:
            answer = fragment(request, "studio/form.html", context=context, status=422)
            return reswap(retarget(answer, "#studio-form"), "outerHTML")
        context["recent"] = request_cards(
            requests.visible(request.actor).filter(user=request.user)[:RECENT], request.user
        )
        context["events_url"] = reverse("events")
        context["workers_alive"] = context["may_submit"] = True
        return show(request, "studio/studio.html", context, section="studio", status=422)
    if request.htmx:
        context = {
            "item": request_card(made, request.user),
            "clear_errors": True,
            **_counts(request),
            "oob_count": True,
        }
        templates = ["studio/request_card.html", "studio/count.html", "studio/quota_notice.html"]
        answer = fragment(request, *templates, context=context, status=201)
        # Sent twice: the first answer has brought the card.
        return reswap(answer, "none") if again else answer
    return redirect(f"{reverse('studio')}#request-{made.id}")


def _submit(request: PageRequest, form: StudioForm) -> tuple[SynthesisRequest | None, bool]:
    """What was made, and whether it was made when the same form came before."""
    values = form.cleaned_data

    def speak() -> UUID:
        rates.hit(request.actor)
        planned = submission.plan(
            actor=request.actor,
            voice=values["voice"],
            # Browsers send line breaks as two characters; the page's live count has one for each.
            text=values["text"].replace("\r\n", "\n"),
            format=values["format"],
            speed=values["speed"],
            language=values["language"],
            instruction=steering.key_of(values.get("instruction", "")),
            seed=values.get("seed"),
        )
        return submission.submit(actor=request.actor, planned=planned, streamed=values["stream"]).id

    try:
        made, again = once(request, speak)
        return requests.find(request.actor, made), again
    except ChorusError as error:
        if error.code == "voice_not_found":
            form.add_error("voice", _("This voice is no longer there. Choose another one."))
        else:
            add_error(form, error)
        return None, False


def _initial(request: PageRequest) -> dict[str, Any]:
    """What “use again” and “use this voice” put into the editor."""
    values: dict[str, Any] = {"voice": request.GET.get("voice", ""), "format": "mp3", "speed": 1.0}
    chosen = request.GET.get("preset", "")
    if chosen:
        try:
            values |= settings_presets.find(request.actor, UUID(chosen)).values
        except (ValueError, NotFound):
            messages.info(request, _("These settings are no longer there."))
            return values
    again = request.GET.get("from", "")
    if again:
        try:
            before = requests.find(request.actor, UUID(again))
        except (ValueError, NotFound):
            messages.info(request, _("This request is no longer there. Write the text anew."))
            return values
        values |= {
            "text": before.text,
            "voice": str(before.voice_id),
            "language": before.language,
            "speed": before.speed,
            "format": before.format,
            "instruction": steering.words_of(before.instruction),
            "seed": before.seed,
        }
    return values


def _editor(request: PageRequest, form: StudioForm) -> dict[str, Any]:
    """What the form's partial needs: voices by name (the team's own first), the one chosen, limits."""
    usable = Voice.objects.usable(request.actor).marked(request.actor)
    voices = sorted((voice_card(voice) for voice in usable), key=_order(get_language()))
    wanted = str(form["voice"].value() or "") or _last_voice(request)
    chosen = next((voice for voice in voices if str(voice.id) == wanted), voices[0] if voices else None)
    languages = sorted({voice.language for voice in voices})
    return {
        "form": form,
        "voices": voices,
        "chosen": chosen,
        "own_voices": any(voice.kind == Voice.Kind.CLONED for voice in voices),
        "favourite_voices": any(voice.favourite for voice in voices),
        "voice_languages": [(tag, language_name(tag)) for tag in languages],
        "settings_presets": settings_presets.own(request.actor),
        "given": _given(request),
        **steering.palette(),
        **_counts(request),
    }


def _given(request: PageRequest) -> str:
    """What the page brings along and a draft of the browser must not change: everything, all but the text, a voice."""
    if request.method == "POST" or request.GET.get("from"):
        return "all"
    if request.GET.get("preset"):
        return "settings"
    return "voice" if request.GET.get("voice") else ""


def _order(reader: str | None) -> Callable[[VoiceCard], tuple[bool, bool, bool, str, str]]:
    """Favourites first, then the team's own, then those that speak the reader's language."""
    base = (reader or "en").split("-")[0]

    def key(voice: VoiceCard) -> tuple[bool, bool, bool, str, str]:
        foreign = voice.language.split("-")[0] != base
        own = voice.kind == Voice.Kind.CLONED
        return not voice.favourite, not own, foreign, voice.language, voice.name.lower()

    return key


def _last_voice(request: PageRequest) -> str:
    last = SynthesisRequest.objects.filter(team=request.actor.team, user=request.user).order_by("-id").first()
    return str(last.voice_id if last else request.actor.team.default_voice or "")


def _counts(request: PageRequest) -> dict[str, int]:
    team = limits.of_team(request.actor.team).characters_per_request or 0
    own = limits.of_member(request.actor.membership).characters_per_request
    return {"max_characters": team if own is None else min(team, own)}
