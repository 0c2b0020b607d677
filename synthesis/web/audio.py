"""The sound itself, for the players on the pages."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.web.shell import PageRequest, team_page
from synthesis import delivery, storage
from synthesis.errors import NotReady
from synthesis.services import requests, voices
from synthesis.web.voices import current_version
from synthesis.web.wording import excerpt


@require_safe
@team_page
def request_audio(request: PageRequest, request_id: UUID) -> HttpResponseBase:
    """A finished request's file; `?download=1` gives it a name to be saved under."""
    found = requests.find(request.actor, request_id)
    output = getattr(found, "output", None)
    if output is None:
        raise NotReady(_("There is no recording: the request has not ended, or its time was over."))
    return delivery.serve(
        request,
        key=output.key,
        size=output.bytes,
        content_type=output.content_type,
        filename=f"{excerpt(found.title or found.text, 60).rstrip('…')}.{found.format}",
        download="download" in request.GET,
    )


@require_safe
@team_page
def voice_sample(request: PageRequest, voice_id: UUID) -> HttpResponseBase:
    """How a voice sounds."""
    return delivery.serve_sample(request, voices.find(request.actor, voice_id))


@require_safe
@team_page
def voice_original(request: PageRequest, voice_id: UUID) -> HttpResponseBase:
    """The whole recording as it was uploaded. Its type is the browser's to find out, never to be run as a page."""
    voice = voices.find_own(request.actor, voice_id)
    version = current_version(voice)
    return delivery.serve(
        request,
        key=version.original_key,
        size=storage.size(version.original_key),
        content_type="application/octet-stream",
        filename=version.original_name or voice.name,
    )
