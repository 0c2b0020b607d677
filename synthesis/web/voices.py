"""The voice library: presets, the team's own, uploads."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, reswap

from accounts import permissions
from accounts.errors import ChorusError, InvalidInput
from accounts.services import rates
from accounts.web.shell import PageRequest, add_error, fragment, show, team_page
from synthesis.errors import VoiceNotFound
from synthesis.models import Voice, VoiceVersion
from synthesis.services import recordings
from synthesis.services import voices as service
from synthesis.web.cards import VoiceCard, voice_card
from synthesis.web.forms import VoiceForm, VoiceUpdateForm, engine
from synthesis.web.quality import Verdict, first_verdict, verdict, windows
from synthesis.web.reading import sentences
from synthesis.web.wording import language_name


@require_safe
@team_page
def voices(request: PageRequest) -> HttpResponse:
    """The grid of voices, filtered by language, gender and words."""
    request.actor.require(permissions.VOICES_READ)
    q = request.GET.get("q", "").strip()
    language, gender = request.GET.get("language", ""), request.GET.get("gender", "")
    usable = Voice.objects.usable(request.actor)
    everything = [voice_card(voice) for voice in usable.order_by("language", "name")]
    found = [voice for voice in everything if _matches(voice, q, language, gender)]
    context = {
        "own_voices": [voice for voice in found if voice.kind == Voice.Kind.CLONED],
        "blocked": Voice.objects.blocked(request.actor).filter(kind=Voice.Kind.CLONED).order_by("name"),
        "presets": [voice for voice in found if voice.kind == Voice.Kind.PRESET],
        "voice_languages": [
            (tag, language_name(tag)) for tag in sorted({voice.language for voice in everything})
        ],
        "q": q,
        "language": language,
        "gender": gender,
        "filtering": bool(q or language or gender),
        "may_add": request.actor.can(permissions.VOICES_WRITE),
    }
    return show(request, "voices/voices.html", context, section="voices")


def _matches(voice: VoiceCard, q: str, language: str, gender: str) -> bool:
    words = q.casefold().split()
    return (
        (not language or voice.language == language)
        and (not gender or voice.gender == gender)
        and all(word in voice.search_words.casefold() for word in words)
    )


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def new(request: PageRequest) -> HttpResponse:
    """Upload a recording."""
    request.actor.require(permissions.VOICES_WRITE)
    sent = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    form = VoiceForm(*sent, statement=str(service.CONSENT_STATEMENT))
    if request.method == "POST" and form.is_valid():
        made = _create(request, form)
        if made is not None:
            address = reverse("voice", args=[made.id])
            return HttpResponseClientRedirect(address) if request.htmx else redirect(address)
    context = {
        "form": form,
        "engine_label": engine().label,
        "engine_clones": engine().cloning == "zero_shot",
        "readings": {tag: sentences(tag) for tag in engine().languages},
    }
    status = 422 if form.errors else 200
    if request.htmx and request.method == "POST":
        return reswap(fragment(request, "voices/form.html", context=context, status=status), "outerHTML")
    return show(request, "voices/new.html", context, section="voices", status=status)


def _create(request: PageRequest, form: VoiceForm) -> Voice | None:
    values = form.cleaned_data
    upload = values["audio"]
    try:
        _check_size(upload)
        rates.hit(request.actor)
        return service.create(
            actor=request.actor,
            name=values["name"],
            language=values["language"],
            audio=upload.read(),
            filename=upload.name or "",
            transcript=values["transcript"],
            consent=values["consent"],
        )
    except ChorusError as error:
        add_error(form, error)
        return None


def _check_size(upload: UploadedFile) -> None:
    if (upload.size or 0) > settings.CHORUS_MAX_UPLOAD_MB * 1024 * 1024:
        raise InvalidInput(
            _("The file is larger than %(limit)d MB. Cut the recording, or save it as MP3.")
            % {"limit": settings.CHORUS_MAX_UPLOAD_MB},
            code="audio_too_large",
            param="audio",
        )


@require_POST
@team_page
def check(request: PageRequest) -> HttpResponse:
    """Listen to a recording that is about to become a voice and say how good it is; nothing is kept."""
    upload = request.FILES.get("audio")
    language = request.POST.get("language", "")
    if not isinstance(upload, UploadedFile) or language not in engine().languages:
        raise InvalidInput(_("Choose a recording."), code="audio_required", param="audio")
    try:
        _check_size(upload)
        rates.hit(request.actor)
        heard = recordings.listen(actor=request.actor, audio=upload.read(), language=language)
    except InvalidInput as error:
        context: dict[str, Any] = {"verdict": Verdict("bad", str(error), [])}
    else:
        context = {"verdict": first_verdict(heard), "heard": heard}
    return render(request, "voices/verdict.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def detail(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """One of the team's own voices: how good the recording is, which part is used, what can be changed."""
    voice = service.find_own(request.actor, voice_id)
    version = current_version(voice)
    form = VoiceUpdateForm(request.POST if request.method == "POST" else None, voice=voice, version=version)
    if request.method == "POST" and form.is_valid():
        try:
            service.update(actor=request.actor, voice_id=voice.id, **form.changes())
        except ChorusError as error:
            add_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("voice", voice.id)
    context: dict[str, Any] = {
        "voice": voice,
        "card": voice_card(voice),
        "version": version,
        "form": form,
        "verdict": verdict(version),
        "windows": windows(version),
        "language": language_name(voice.language),
        "engine_label": engine().label,
        "engine_clones": engine().cloning == "zero_shot",
        "nearest": _nearest(version.nearest),
        "may_change": request.actor.can(permissions.VOICES_WRITE),
    }
    return show(request, "voices/detail.html", context, section="voices", status=422 if form.errors else 200)


def current_version(voice: Voice) -> VoiceVersion:
    """The recording that a voice is made from; VoiceNotFound for one that has none."""
    if voice.current_version is None:
        raise VoiceNotFound
    return voice.current_version


def _nearest(nearest: dict[str, str]) -> str:
    preset = nearest.get(settings.CHORUS_ENGINE, "")
    found = Voice.objects.filter(team=None, engine=settings.CHORUS_ENGINE, preset=preset).first()
    return found.name if found else ""


@require_POST
@team_page
def delete(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Take a voice away."""
    service.delete(actor=request.actor, voice_id=voice_id)
    messages.success(request, _("The voice is deleted."))
    return HttpResponseClientRedirect(reverse("voices")) if request.htmx else redirect("voices")
