"""The voice library: presets, the team's own, uploads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, reswap

from accounts import permissions
from accounts.errors import ChorusError, InvalidInput
from accounts.services import rates
from accounts.web.shell import PageRequest, add_error, fragment, show, team_page
from synthesis import consent
from synthesis.errors import VoiceIsPreset, VoiceNotFound
from synthesis.languages import language_name
from synthesis.models import Voice, VoiceVersion
from synthesis.services import previews, recordings, voice_marks, voice_use
from synthesis.services import voices as service
from synthesis.web.cards import VoiceCard, voice_card, voice_name
from synthesis.web.forms import VoiceForm, VoiceUpdateForm, engine
from synthesis.web.quality import Verdict, first_verdict, verdict, windows
from synthesis.web.reading import sentences
from synthesis.web.voice_marks import tags_context

AnyForm = TypeVar("AnyForm", bound=VoiceForm)

#: So many tags are offered as filters; the others are found by typing them.
TAGS = 24


@dataclass(frozen=True, slots=True)
class Filters:
    """What the query string asks for; a voice must have every one of `tags`."""

    q: str
    language: str
    gender: str
    tags: list[str]
    favourites: bool

    @classmethod
    def of(cls, query: QueryDict) -> Filters:
        """From a query string."""
        return cls(
            q=query.get("q", "").strip(),
            language=query.get("language", ""),
            gender=query.get("gender", ""),
            tags=query.getlist("tag"),
            favourites=bool(query.get("favourites")),
        )

    def match(self, voice: VoiceCard) -> bool:
        """Whether `voice` is wanted."""
        known_as = voice.search_words.casefold()
        return (
            (not self.language or voice.language == self.language)
            and (not self.gender or voice.gender == self.gender)
            and (not self.favourites or voice.favourite)
            and set(self.tags) <= set(voice.tags)
            and all(word in known_as for word in self.q.casefold().split())
        )


@require_safe
@team_page
def voices(request: PageRequest) -> HttpResponse:
    """The grid of voices, filtered by language, gender, tags, favourites and words."""
    request.actor.require(permissions.VOICES_READ)
    filters = Filters.of(request.GET)
    usable = Voice.objects.usable(request.actor).marked(request.actor)
    everything = [voice_card(voice) for voice in usable.order_by("language", "name")]
    everything.sort(key=lambda voice: not voice.favourite)
    found = [voice for voice in everything if filters.match(voice)]
    every_tag = voice_marks.all_tags(request.actor)
    context = {
        "own_voices": [voice for voice in found if voice.kind == Voice.Kind.CLONED],
        "blocked": Voice.objects.blocked(request.actor).filter(kind=Voice.Kind.CLONED).order_by("name"),
        "presets": [voice for voice in found if voice.kind == Voice.Kind.PRESET],
        "voice_languages": [
            (tag, language_name(tag)) for tag in sorted({voice.language for voice in everything})
        ],
        "filters": filters,
        "filtering": bool(
            filters.q or filters.language or filters.gender or filters.tags or filters.favourites
        ),
        # Those that are chosen are there also when they are rare.
        "tags": sorted(
            every_tag[:TAGS] + [tag for tag in every_tag[TAGS:] if tag in filters.tags], key=str.lower
        ),
        "may_add": request.actor.can(permissions.VOICES_WRITE),
    }
    return show(request, "voices/voices.html", context, section="voices")


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def new(request: PageRequest) -> HttpResponse:
    """Upload a recording."""
    request.actor.require(permissions.VOICES_WRITE)
    form = consent_form(request, VoiceForm)
    if request.method == "POST" and form.is_valid():
        made = _create(request, form)
        if made is not None:
            address = reverse("voice", args=[made.id])
            return HttpResponseClientRedirect(address) if request.htmx else redirect(address)
    context = {
        "form": form,
        "address": reverse("voice_new"),
        **recording_context(),
    }
    status = 422 if form.errors else 200
    if request.htmx and request.method == "POST":
        return reswap(fragment(request, "voices/form.html", context=context, status=status), "outerHTML")
    return show(request, "voices/new.html", context, section="voices", status=status)


def recording_context() -> dict[str, Any]:
    """What a form with a recording shows beside its fields."""
    return {
        "engine_label": engine().label,
        "engine_clones": engine().cloning == "zero_shot",
        "readings": {tag: sentences(tag) for tag in engine().languages},
    }


def consent_form(request: PageRequest, kind: type[AnyForm]) -> AnyForm:
    """A form with a recording, bound when it was sent. What is agreed to is what the form showed, in its language."""
    sent = (request.POST, request.FILES) if request.method == "POST" else (None, None)
    key = request.POST.get("statement", "")
    shown = consent.shown(key) or consent.current()
    form = kind(*sent, statement=shown)
    if key and key != shown.key:
        form.add_error(
            "consent", _("These words are new since you opened the page. Read them and agree again.")
        )
    return form


def _create(request: PageRequest, form: VoiceForm) -> Voice | None:
    values = form.cleaned_data
    upload = values["audio"]
    try:
        check_size(upload)
        rates.hit(request.actor)
        return service.create(
            actor=request.actor,
            name=values["name"],
            language=values["language"],
            audio=upload.read(),
            filename=upload.name or "",
            transcript=values["transcript"],
            consent=values["consent"],
            statement=form.statement,
            shared=values["shared"],
        )
    except ChorusError as error:
        add_error(form, error)
        return None


def check_size(upload: UploadedFile) -> None:
    """InvalidInput (`audio_too_large`) for a recording beyond the limit."""
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
        check_size(upload)
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
    """One voice: who uses it, how good its recording is, which part is used, what can be changed."""
    voice = service.seen(request.actor, voice_id)
    if request.method == "POST" and voice.kind == Voice.Kind.PRESET:
        raise VoiceIsPreset
    days = next((one for one in voice_use.RANGES if str(one) == request.GET.get("days")), voice_use.RANGES[0])
    context: dict[str, Any] = {
        **tags_context(request, voice),
        "card": voice_card(voice),
        "name": voice_name(voice),
        "days": days,
        "ranges": voice_use.RANGES,
        "uses": voice_use.users(request.actor, voice, days=days),
        "engine_label": engine().label,
        "may_speak": request.actor.can(permissions.SYNTHESES_WRITE),
        "preview_text": previews.sentence(voice.language),
    }
    if voice.kind == Voice.Kind.PRESET:
        return show(request, "voices/detail.html", context, section="voices")
    version = current_version(voice)
    form = VoiceUpdateForm(
        request.POST if request.method == "POST" else None,
        voice=voice,
        version=version,
        may_share=service.may_share(request.actor, voice),
    )
    if request.method == "POST" and form.is_valid():
        try:
            service.update(actor=request.actor, voice_id=voice.id, **form.changes())
        except ChorusError as error:
            add_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("voice", voice.id)
    context |= {
        "version": version,
        "consent_language": language_name(version.consent_language),
        "form": form,
        "verdict": verdict(version),
        "windows": windows(version),
        "engine_clones": engine().cloning == "zero_shot",
        "nearest": _nearest(version.nearest),
        "versions": list(service.versions(request.actor, voice.id)),
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


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def delete(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Take a voice away, after a look at who uses it and what depends on it."""
    request.actor.require(permissions.VOICES_WRITE)
    if request.method == "POST":
        service.delete(actor=request.actor, voice_id=voice_id)
        messages.success(request, _("The voice is deleted."))
        return HttpResponseClientRedirect(reverse("voices")) if request.htmx else redirect("voices")
    voice = service.find_own(request.actor, voice_id)
    days = voice_use.RANGES[-1]
    context = {
        "voice": voice,
        "days": days,
        "uses": voice_use.users(request.actor, voice, days=days),
        "dependents": voice_use.dependents(request.actor, voice),
    }
    return show(request, "voices/delete.html", context, section="voices")
