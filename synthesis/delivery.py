"""Handing out stored sound over HTTP: whole, in ranges (players seek by them), or by a presigned address."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _

from accounts import filenames
from synthesis import presets, storage
from synthesis.errors import RangeOutside, VoiceNotFound
from synthesis.models import Voice

# Longer numbers than of any file, and shorter than what Python refuses to read.
_RANGE = re.compile(r"bytes=(\d{0,4000})-(\d{0,4000})", re.ASCII | re.IGNORECASE)
#: What is stored under a key never changes, so a browser may keep it; `private`, as it belongs to one team.
_CACHE = "private, max-age=3600, immutable"


def serve(
    request: HttpRequest,
    *,
    key: str,
    size: int,
    content_type: str,
    filename: str,
    download: bool = False,
    etag: str = "",
) -> HttpResponseBase:
    """The object at `key`, `size` bytes long, for whom the caller has checked already.

    `etag` identifies its content: If-None-Match and If-Range are compared with it. Answers 206 to a Range, 302 where
    storage has a public address. Several ranges at once are answered by the whole, as RFC 9110 allows. RangeOutside for
    a range outside of the object.
    """
    disposition = "attachment" if download else "inline"
    address = storage.presigned(key, filename=filename, content_type=content_type, disposition=disposition)
    if address:
        redirect = HttpResponseRedirect(address)
        redirect.headers["Cache-Control"] = "private, no-store"
        return redirect
    return _answer(
        request,
        lambda start, end: storage.open_range(key, start, end),
        size=size,
        content_type=content_type,
        disposition=content_disposition_header(download, filename) or disposition,
        etag=etag or hashlib.sha256(key.encode()).hexdigest(),
    )


def serve_sample(request: HttpRequest, voice: Voice) -> HttpResponseBase:
    """How `voice` (with `current_version`) sounds: a preset's sample, or the part of the team's recording that is used.

    VoiceNotFound (`sample_not_found`) when there is nothing to hear, and RangeOutside.
    """
    version = voice.current_version
    if version is not None:
        return serve(
            request,
            key=version.processed_key,
            size=storage.size(version.processed_key),
            content_type="audio/wav",
            filename=filenames.name(voice.name, "wav", default="voice"),
            etag=str(version.id),
        )
    preset = presets.find(voice.engine, voice.preset)
    if preset is None or not preset.sample.is_file():
        raise VoiceNotFound(_("This voice has no sample."), code="sample_not_found")
    sound = preset.sample.read_bytes()
    return _answer(
        request,
        lambda start, end: iter([sound[start : end + 1]]),
        size=len(sound),
        content_type="audio/mpeg",
        disposition=content_disposition_header(False, filenames.name(voice.name, "mp3", default="voice"))
        or "inline",
        etag=hashlib.sha256(sound).hexdigest(),
    )


def _answer(
    request: HttpRequest,
    read: Callable[[int, int], Iterator[bytes]],
    *,
    size: int,
    content_type: str,
    disposition: str,
    etag: str,
) -> HttpResponseBase:
    """`read` gives the bytes from one place to another (inclusive)."""
    tag = f'"{etag}"'
    if _matches(request.headers.get("If-None-Match", ""), tag):
        return HttpResponse(status=304, headers={"ETag": tag, "Cache-Control": _CACHE})
    # A part of something else than what the caller has the rest of would be no use: then it gets the whole.
    fresh = request.headers.get("If-Range", tag).strip() == tag
    wanted = _wanted(request.headers.get("Range", "") if fresh else "", size)
    if wanted is None:
        raise RangeOutside(size)
    start, end, partial = wanted
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": _CACHE,
        "Content-Disposition": disposition,
        "Content-Length": str(end - start + 1),
        "ETag": tag,
    }
    if partial:
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    status = 206 if partial else 200
    if request.method == "HEAD" or size == 0:
        return HttpResponse(status=status, content_type=content_type, headers=headers)
    return StreamingHttpResponse(read(start, end), status=status, content_type=content_type, headers=headers)


def _matches(header: str, tag: str) -> bool:
    """Whether If-None-Match names `tag` (weakly, as RFC 9110 has it)."""
    return any(entry.strip().removeprefix("W/") in (tag, "*") for entry in header.split(","))


def _wanted(header: str, size: int) -> tuple[int, int, bool] | None:
    """First and last byte, and whether that is a part; None when the range lies outside."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return 0, size - 1, False
    first, last = match.groups()
    if not first:  # the last n bytes
        start = max(0, size - int(last))
        return (start, size - 1, True) if int(last) and size else None
    start = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if start >= size:
        return None
    return (start, end, True) if start <= end else (0, size - 1, False)
