"""Script mode: write or import a dialogue, give each speaker a voice, have all of it spoken."""

from __future__ import annotations

import tempfile
from typing import Any, cast
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import filenames, permissions
from accounts.errors import ChorusError, NotFound
from accounts.services import rates
from accounts.web.forms import Styled
from accounts.web.once import once
from accounts.web.shell import PageRequest, add_error, fragment, show, team_page
from synthesis.audio import encode
from synthesis.languages import language_name
from synthesis.models import Format, Script, ScriptLine, Status, Voice
from synthesis.services import bundles, subtitles
from synthesis.services import scripts as service
from synthesis.text import clean, dialogue, language
from synthesis.web.cards import RequestCard, VoiceCard, request_card, voice_card

PAGE = 20
#: A file of subtitles of a long film has 200 kB.
_MOST_BYTES = 1_000_000
_ENDINGS = {"mp3", "wav", "flac", "opus", "aac", "pcm"}


class ScriptForm(Styled, forms.Form):
    """A dialogue."""

    title = forms.CharField(label=gettext_lazy("Title"), max_length=200, required=False)
    text = forms.CharField(
        label=gettext_lazy("Dialogue"),
        strip=False,
        required=False,
        widget=forms.Textarea(
            attrs={
                "rows": 10,
                "spellcheck": "true",
                "placeholder": gettext_lazy("Anna: Good morning!\nBen: Is it?"),
            }
        ),
        help_text=gettext_lazy(
            "A line for each turn, the speaker before a colon. Or paste a table (CSV with the columns speaker, text, "
            "pause) or subtitles (SRT)."
        ),
    )
    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=Format.choices, initial=Format.MP3)
    pause = forms.FloatField(
        label=gettext_lazy("Pause between lines (seconds)"),
        initial=0.5,
        min_value=0,
        max_value=service.MOST_PAUSE,
        widget=forms.NumberInput(attrs={"step": "0.1"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def scripts(request: PageRequest) -> HttpResponse:
    """The list, and a new script."""
    request.actor.require(permissions.SYNTHESES_READ)
    form = ScriptForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        made = _create(request, form)
        if made is not None:
            return redirect("script", made.id)
    page = Paginator(service.visible(request.actor), PAGE).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "page": page,
        "scripts": page.object_list,
        "may_speak": request.actor.can(permissions.SYNTHESES_WRITE),
        **_cast(request, request.POST.get("text", "")),
    }
    return show(
        request, "scripts/scripts.html", context, section="scripts", status=422 if form.errors else 200
    )


@require_POST
@team_page
def cast_of(request: PageRequest) -> HttpResponse:
    """Who speaks in a text, and with which voice; `file` takes the place of the text."""
    upload = request.FILES.get("file")
    text = request.POST.get("text", "")
    if isinstance(upload, UploadedFile) and (upload.size or 0) <= _MOST_BYTES:
        text = upload.read().decode("utf-8-sig", errors="replace")
    return render(request, "scripts/cast.html", _cast(request, text))


def _create(request: PageRequest, form: ScriptForm) -> Script | None:
    values = form.cleaned_data
    problem = next(iter(dialogue.problems(values["text"])), None)
    if problem is not None:
        form.add_error("text", _problem(problem))
        return None
    found = dialogue.read(values["text"])
    speakers = _speakers(found)
    posted = _posted(request, speakers, proposals=True)
    chosen = {name: posted.get(name, "") for name in speakers}
    if not all(chosen.values()):
        form.add_error(None, _("Choose a voice for each speaker, then have it spoken."))
        return None

    def speak() -> UUID:
        rates.hit(request.actor)
        return service.create(
            actor=request.actor,
            title=values["title"],
            lines=found,
            cast=chosen,
            format=values["format"],
            pause=values["pause"],
        ).id

    try:
        made, _again = once(request, speak)
        return service.find(request.actor, made)
    except ChorusError as error:
        add_error(form, error)
        return None


def _problem(problem: dialogue.Problem) -> str:
    if problem.kind == "pause":
        return _("Line %(n)d: the pause “%(value)s” is no number of seconds.") % {
            "n": problem.line,
            "value": problem.value,
        }
    if problem.kind == "table":
        return _("Line %(n)d of the table cannot be read. Check its quotation marks.") % {"n": problem.line}
    if problem.value:
        return _(
            "Line %(n)d: “%(name)s” says nothing. Write the words after the name, or remove the line."
        ) % {
            "n": problem.line,
            "name": problem.value,
        }
    return _("Line %(n)d has no words to speak. Write some, or remove the line.") % {"n": problem.line}


def _speakers(found: list[dialogue.Line]) -> list[str]:
    return list(dict.fromkeys(line.speaker for line in found))


def _posted(request: PageRequest, speakers: list[str], *, proposals: bool) -> dict[str, str]:
    """The voice of each speaker on the page, with or without those that were only proposed.

    Each row says whose it is: the text may have changed since the page showed them.
    """
    found: dict[str, str] = {}
    for place in range(service.MOST_LINES):
        voice = request.POST.get(f"voice-{place}")
        if voice is None:
            break
        name = request.POST.get(f"speaker-{place}", speakers[place] if place < len(speakers) else "")
        if proposals or voice != request.POST.get(f"proposed-{place}"):
            found[name] = voice
    return found


def _cast(request: PageRequest, text: str) -> dict[str, Any]:
    found = dialogue.read(text)
    voices = sorted(
        (voice_card(voice) for voice in Voice.objects.usable(request.actor).marked(request.actor)),
        key=lambda voice: (not voice.favourite, language_name(voice.language), voice.name.lower()),
    )
    speakers = _speakers(found)
    chosen = _posted(request, speakers, proposals=False)
    taken = set(chosen.values())
    rows = []
    for place, name in enumerate(speakers):
        words = " ".join(line.text for line in found if line.speaker == name)
        proposed = _propose(voices, words, taken)
        voice = next((one for one in voices if str(one.id) == chosen.get(name)), proposed)
        if voice is not None:
            taken.add(str(voice.id))
            rows.append((place, name, voice, "" if name in chosen else voice.id))
    return {
        "cast": rows,
        "cast_voices": [(voice, language_name(voice.language)) for voice in voices],
        "cast_lines": found,
        "cast_characters": sum(clean.count(line.text) for line in found),
        "cast_too_long": len(found) > service.MOST_LINES,
        "cast_most": service.MOST_LINES,
    }


def _propose(voices: list[VoiceCard], words: str, taken: set[str]) -> VoiceCard | None:
    """A voice that speaks the language of `words`, if possible one that nobody else has: people sound different."""
    wanted = language.detect(words)
    fitting = [voice for voice in voices if voice.language.split("-")[0] == wanted] or voices
    free = [voice for voice in fitting if str(voice.id) not in taken]
    return next(iter(free or fitting), None)


@require_safe
@team_page
def script(request: PageRequest, script_id: UUID) -> HttpResponse:
    """One script: its lines, and all of it as one file."""
    found = service.find(request.actor, script_id)
    context = {**_context(request, found), "events_url": reverse("events")}
    return show(request, "scripts/script.html", context, section="scripts")


@require_safe
@team_page
def lines(request: PageRequest, script_id: UUID) -> HttpResponse:
    """The lines as they are now."""
    found = service.find(request.actor, script_id)
    return fragment(request, "scripts/lines.html", context=_context(request, found))


def _context(request: PageRequest, found: Script) -> dict[str, Any]:
    of_script = service.lines(found)
    pairs: list[tuple[ScriptLine, RequestCard | None]] = [
        (line, request_card(line.request, request.user) if line.request else None) for line in of_script
    ]
    ready = [line for line in of_script if line.request and hasattr(line.request, "output")]
    return {
        "script": found,
        "lines": pairs,
        "ready": len(ready),
        "failed": sum(1 for line in of_script if not line.request or line.request.status == Status.FAILED),
        "complete": len(ready) == len(of_script),
        # Before the file is made: the silences at the ends of lines, which it has not, are a moment each.
        "seconds": sum(
            line.request.output.seconds + service.pause_after(found, line) for line in ready if line.request
        ),
        "containers": Format.values,
        "may_speak": request.actor.can(permissions.SYNTHESES_WRITE),
    }


@require_POST
@team_page
def retry(request: PageRequest, script_id: UUID, number: int) -> HttpResponse:
    """One line once more."""
    rates.hit(request.actor)
    service.retry(actor=request.actor, script_id=script_id, number=number)
    return lines_or_page(request, script_id)


def lines_or_page(request: PageRequest, script_id: UUID) -> HttpResponse:
    """The lines for htmx, the page for a browser without scripts."""
    if not request.htmx:
        return redirect("script", script_id)
    found = service.find(request.actor, script_id)
    return fragment(request, "scripts/lines.html", context=_context(request, found))


@require_safe
@team_page
def joined(request: PageRequest, script_id: UUID, container: str) -> HttpResponseBase:
    """All lines as one file."""
    found = service.find(request.actor, script_id)
    if container not in _ENDINGS:
        raise NotFound
    # Closed with the answer.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        service.write_joined(found, container, file)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return FileResponse(
        file,
        as_attachment="download" in request.GET,
        filename=filenames.name(found.title, container, default="script"),
        content_type=encode.CONTENT_TYPES[cast("encode.Format", container)],
    )


@require_safe
@team_page
def subtitles_of(request: PageRequest, script_id: UUID, container: str) -> HttpResponse:
    """Subtitles of the file with all lines."""
    found = service.find(request.actor, script_id)
    if container not in subtitles.CONTENT_TYPES:
        raise NotFound
    answer = HttpResponse(
        service.write_subtitles(found, container), content_type=subtitles.CONTENT_TYPES[container]
    )
    name = filenames.name(found.title, container, default="script")
    answer.headers["Content-Disposition"] = filenames.attachment(name)
    return answer


@require_safe
@team_page
def separate(request: PageRequest, script_id: UUID) -> HttpResponseBase:
    """Each line as a file of its own, in a ZIP."""
    found = service.find(request.actor, script_id)
    made = service.spoken(found)
    return StreamingHttpResponse(
        bundles.stream(made),
        content_type="application/zip",
        headers={
            "Content-Disposition": filenames.attachment(filenames.name(found.title, "zip", default="script")),
            "Cache-Control": "no-store",
        },
    )


@require_POST
@team_page
def delete(request: PageRequest, script_id: UUID) -> HttpResponse:
    """Remove the script with its recordings."""
    service.delete(actor=request.actor, script_id=script_id)
    messages.success(request, _("The script is deleted."))
    return redirect("scripts")
