"""The sound itself, for the players on the pages."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.web.shell import PageRequest, team_page
from synthesis import delivery, storage
from synthesis.errors import NotReady
from synthesis.models import Voice
from synthesis.services import voices
from synthesis.web.requests import own_request
from synthesis.web.wording import excerpt


@require_safe
@team_page
def request_audio(request: PageRequest, request_id: UUID) -> HttpResponseBase:
    """A finished request's file; `?download=1` gives it a name to be saved under."""
    found = own_request(request.actor, request_id)
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
