"""Saying that a voice is used as it must not be."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from accounts.errors import ChorusError
from accounts.web.forms import Styled
from accounts.web.shell import PageRequest, add_error, show, team_page
from synthesis.models import MisuseReport, Voice
from synthesis.services import misuse
from synthesis.services import voices as service
from synthesis.web.cards import voice_name


class MisuseForm(Styled, forms.Form):
    """What is wrong, and what happened."""

    kind = forms.ChoiceField(
        label=gettext_lazy("What is wrong?"), choices=MisuseReport.Kind.choices, widget=forms.RadioSelect
    )
    details = forms.CharField(
        label=gettext_lazy("What happened?"),
        max_length=misuse.DETAILS_CHARACTERS,
        help_text=gettext_lazy("Where and when it can be heard, and whose voice it is, if you know."),
        widget=forms.Textarea(attrs={"rows": 6}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def report(request: PageRequest, voice_id: UUID) -> HttpResponse:
    """The form; what became of earlier reports stands above it."""
    voice = service.find(request.actor, voice_id)
    form = MisuseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            misuse.report(actor=request.actor, voice_id=voice.pk, **form.cleaned_data)
        except ChorusError as error:
            add_error(form, error)
        else:
            messages.success(
                request, _("Thank you. The people who run this service look at it and write to you.")
            )
            return redirect("voice", voice.pk) if voice.kind == Voice.Kind.CLONED else redirect("voices")
    context = {
        "voice": voice,
        "name": voice_name(voice),
        "form": form,
        "earlier": MisuseReport.objects.filter(voice=voice, reporter=request.user).order_by("-created_at"),
    }
    return show(request, "voices/misuse.html", context, section="voices", status=422 if form.errors else 200)
