"""The sound itself, for the players on the pages."""

from __future__ import annotations

import tempfile
from typing import cast
from uuid import UUID

from django.http import FileResponse, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import filenames
from accounts.errors import NotFound
from accounts.services import rates
from accounts.web.shell import PageRequest, team_page
from synthesis import delivery, storage
from synthesis.audio import encode
from synthesis.errors import NotReady
from synthesis.models import Format, Output, SynthesisRequest
from synthesis.services import bundles, peaks, requests, sounding, subtitles, voices
from synthesis.web.voices import current_version

#: As many as a player on a wide screen can show.
_PEAKS = 240


@require_safe
@team_page
def request_audio(request: PageRequest, request_id: UUID) -> HttpResponseBase:
    """A finished request's file; `?download=1` gives it a name to be saved under."""
    found = requests.find(request.actor, request_id)
    output = _output(found)
    return delivery.serve(
        request,
        key=output.key,
        size=output.bytes,
        content_type=output.content_type,
        filename=bundles.own_name(found),
        download="download" in request.GET,
    )


def _output(found: SynthesisRequest) -> Output:
    output: Output | None = getattr(found, "output", None)
    if output is None:
        raise NotReady(_("There is no recording: the request has not ended, or its time was over."))
    return output


@require_safe
@team_page
def request_converted(request: PageRequest, request_id: UUID, container: str) -> HttpResponseBase:
    """The recording in another container than it was made in, as a download."""
    found = requests.find(request.actor, request_id)
    _output(found)
    if container not in Format.values:
        raise NotFound
    if container == found.format:
        return redirect(f"{reverse('request_audio', args=[request_id])}?download=1")
    rates.hit(request.actor)
    # Closed with the answer; on disk, since an hour as WAV has 170 MB.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        sounding.encode_as(found, container, file)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    kind = encode.CONTENT_TYPES[cast("encode.Format", container)]
    return FileResponse(
        file, as_attachment=True, filename=bundles.own_name(found, container), content_type=kind
    )


@require_safe
@team_page
def request_subtitles(request: PageRequest, request_id: UUID, container: str) -> HttpResponseBase:
    """One cue a segment, as SRT or WebVTT."""
    found = requests.find(request.actor, request_id)
    output = _output(found)
    if container not in subtitles.CONTENT_TYPES:
        raise NotFound
    answer = HttpResponse(
        subtitles.of(found, output, container),
        content_type=f"{subtitles.CONTENT_TYPES[container]}; charset=utf-8",
    )
    answer.headers["Content-Disposition"] = filenames.attachment(bundles.own_name(found, container))
    return answer


@require_safe
@team_page
def request_peaks(request: PageRequest, request_id: UUID) -> HttpResponseBase:
    """The outline of the sound and where its segments are, for the player."""
    found = requests.find(request.actor, request_id)
    output = _output(found)
    answer = JsonResponse(
        {
            "seconds": output.seconds,
            "peaks": peaks.of(found, output, _PEAKS),
            "spans": sounding.spans(found, output),
        }
    )
    answer.headers["Cache-Control"] = "private, max-age=60"
    return answer


@require_safe
@team_page
def voice_sample(request: PageRequest, voice_id: UUID) -> HttpResponseBase:
    """How a voice sounds, or how one of its versions did."""
    voice = voices.find(request.actor, voice_id)
    number = request.GET.get("version", "")
    if number.isascii() and number.isdigit() and len(number) < 9:
        voice.current_version = voices.find_version(voice, int(number))
    return delivery.serve_sample(request, voice)


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
        filename=filenames.safe(version.original_name or voice.name) or "recording",
    )
