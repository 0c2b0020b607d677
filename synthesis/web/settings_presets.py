"""Saving and deleting settings of the studio; they are applied by a link to the studio itself."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from django_htmx.http import reswap

from accounts.errors import ChorusError
from accounts.web.shell import PageRequest, fragment, team_page
from synthesis.services import settings_presets as service


@require_POST
@team_page
def save(request: PageRequest) -> HttpResponse:
    """Keep what the form says, under a name."""
    try:
        service.save(
            actor=request.actor, name=request.POST.get("preset_name", ""), values=request.POST.dict()
        )
    except ChorusError as error:
        return _answer(request, error)
    return _answer(request)


@require_POST
@team_page
def delete(request: PageRequest, preset_id: UUID) -> HttpResponse:
    """Forget one."""
    service.delete(actor=request.actor, preset_id=preset_id)
    return _answer(request)


def _answer(request: PageRequest, error: ChorusError | None = None) -> HttpResponse:
    if not request.htmx:
        if error is not None:
            raise error
        return redirect("studio")
    context = {
        "settings_presets": service.own(request.actor),
        "preset_error": error and str(error),
        # It was open, and what it says now is the answer.
        "presets_open": True,
    }
    answer = fragment(request, "studio/presets.html", context=context, status=error.status if error else 200)
    return reswap(answer, "outerHTML")
