"""Other recordings of a voice: record it again, go back to an older one, try how it sounds."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect, reswap, retarget

from accounts import permissions
from accounts.errors import ChorusError, NotFound
from accounts.services import rates
from accounts.web.shell import PageRequest, add_error, fragment, show, team_page
from synthesis.models import Voice
from synthesis.services import previews
from synthesis.services import voices as service
from synthesis.services.clips import Recording
from synthesis.web.cards import request_card
from synthesis.web.forms import RecordAgainForm
from synthesis.web.voices import check_size, consent_form, recording_context


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def again(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """A new version of a voice, from another recording of the same person."""
    request.actor.require(permissions.VOICES_WRITE)
    voice = service.find_own(request.actor, voice_id)
    form = consent_form(request, RecordAgainForm)
    if request.method == "POST" and form.is_valid() and _record(request, form, voice):
        messages.success(request, _("The new recording is in use."))
        address = reverse("voice", args=[voice.id])
        return HttpResponseClientRedirect(address) if request.htmx else redirect(address)
    context = {
        "form": form,
        "voice": voice,
        "address": reverse("voice_again", args=[voice.id]),
        **recording_context(),
    }
    status = 422 if form.errors else 200
    if request.htmx and request.method == "POST":
        return reswap(fragment(request, "voices/form.html", context=context, status=status), "outerHTML")
    return show(request, "voices/new.html", context, section="voices", status=status)


def _record(request: PageRequest, form: RecordAgainForm, voice: Voice) -> bool:
    values = form.cleaned_data
    upload = values["audio"]
    try:
        check_size(upload)
        rates.hit(request.actor)
        service.record_again(
            actor=request.actor,
            voice_id=voice.id,
            recordings=[Recording(upload.read(), upload.name or "", values["transcript"])],
            consent=values["consent"],
            statement=form.statement,
        )
    except ChorusError as error:
        add_error(form, error)
        return False
    return True


@require_POST
@team_page
def go_back(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Speak with an older recording again."""
    try:
        number = int(request.POST.get("number", ""))
    except ValueError:
        raise NotFound from None
    service.update(actor=request.actor, voice_id=voice_id, version=number)
    messages.success(request, _("Version %(number)d is in use.") % {"number": number})
    return redirect("voice", voice_id)


@require_POST
@team_page
def preview(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """Have a test sentence spoken: a request like any other."""
    try:
        rates.hit(request.actor)
        made = previews.submit(
            actor=request.actor, voice_id=voice_id, text=request.POST.get("text", "").strip()
        )
    except ChorusError as error:
        if error.status == 404 or not request.htmx:
            raise
        answer = fragment(
            request, "voices/preview_error.html", context={"error": str(error)}, status=error.status
        )
        return reswap(retarget(answer, "#preview-error"), "innerHTML")
    if not request.htmx:
        return redirect("request", made.id)
    return fragment(
        request, "studio/request_card.html", context={"item": request_card(made, request.user)}, status=201
    )
