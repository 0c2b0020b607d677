"""Requests and voices as pages show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.templatetags.ui import about, when
from synthesis import presets
from synthesis.engines import capabilities
from synthesis.languages import language_name
from synthesis.models import Format, Status, SynthesisRequest, Voice
from synthesis.services import queue
from synthesis.services.takes import Part
from synthesis.web.wording import excerpt, gender_name


@dataclass(frozen=True, slots=True)
class VoiceCard:
    """A voice in a list. `sample_url` is empty where there is nothing to hear."""

    id: UUID
    name: str
    kind: str
    language: str
    gender: str
    meta: str
    search_words: str
    sample_url: str
    favourite: bool
    tags: list[str]


def voice_card(voice: Voice) -> VoiceCard:
    """How `voice` is shown in grids and in the studio's picker; with its marks after `VoiceQuerySet.marked`."""
    preset = presets.find(voice.engine, voice.preset)
    parts = [language_name(voice.language), gender_name(voice.gender), _(voice.style) if voice.style else ""]
    meta = " · ".join(part for part in parts if part)
    tags = [tag.name for tag in getattr(voice, "team_tags", [])]
    known_as = [voice.name, preset.name_zh if preset else "", meta, voice.preset, voice.language, *tags]
    return VoiceCard(
        id=voice.id,
        name=voice_name(voice),
        kind=voice.kind,
        language=voice.language,
        gender=voice.gender,
        meta=meta,
        search_words=" ".join(known_as),
        sample_url="" if preset and not preset.sample.is_file() else reverse("voice_sample", args=[voice.id]),
        favourite=bool(getattr(voice, "is_favourite", False)),
        tags=tags,
    )


def voice_name(voice: Voice) -> str:
    """A preset's Chinese name for those who read Chinese, else the name that it has."""
    preset = presets.find(voice.engine, voice.preset) if voice.kind == Voice.Kind.PRESET else None
    chinese = (get_language() or "").startswith("zh")
    return preset.name_zh if preset and preset.name_zh and chinese else voice.name


@dataclass(frozen=True, slots=True)
class RequestCard:
    """A request in a list: `now` says what it is doing, `notice` what its listener should know."""

    id: UUID
    status: str
    is_final: bool
    heading: str
    voice_name: str
    characters: int
    created_at: datetime
    when: str
    format: str
    other_formats: list[str]
    segments_total: int
    segments_done: int
    now: str
    notice: str
    announcement: str
    seconds: float | None
    audio_url: str
    download_url: str
    peaks_url: str
    favourite: bool
    #: A conversion has none, so that it can neither be edited nor said again in parts.
    has_text: bool


def request_card(request: SynthesisRequest, reader: User) -> RequestCard:
    """How `request` (with `voice` and `output`) is shown to `reader`; asks for its place only while it waits."""
    output = getattr(request, "output", None)
    heading = request.title or excerpt(request.text)
    now = _now(request, reader, expired=output is None)
    audio = reverse("request_audio", args=[request.id])
    # A recording that was joined anew is another one to the browser's cache.
    version = f"?v={output.sha256[:12]}" if output else ""
    return RequestCard(
        id=request.id,
        status=request.status,
        is_final=request.is_final,
        heading=heading,
        voice_name=voice_name(request.voice),
        characters=request.characters,
        created_at=request.created_at,
        when=when(request.created_at),
        format=request.format,
        other_formats=[one for one in Format.values if one != request.format],
        segments_total=request.segments_total,
        segments_done=request.segments_done,
        now=now,
        notice=_notice(request),
        announcement=f"{excerpt(heading, 40)}: {now}",
        seconds=output.seconds if output else None,
        audio_url=f"{audio}{version}" if output else "",
        download_url=f"{audio}{version}&download=1" if output else "",
        peaks_url=f"{reverse('request_peaks', args=[request.id])}{version}" if output else "",
        favourite=bool(getattr(request, "is_favourite", False)),
        has_text=not request.source_seconds,
    )


@dataclass(frozen=True, slots=True)
class TakeCard:
    """A take of a part; `id` is empty for the first sound. `now` says what it is doing while it is not ready, and
    `settings` how it was made.
    """

    id: str
    label: str
    audio_url: str
    chosen: bool
    ready: bool
    open: bool
    now: str
    seconds: float | None
    settings: list[str]


@dataclass(frozen=True, slots=True)
class PartCard:
    """A part of a recording: `start` and `end` in seconds of it, and what another take would cost."""

    index: int
    text: str
    start: float
    end: float
    characters: int
    takes: list[TakeCard]

    @property
    def comparable(self) -> list[TakeCard]:
        """Those that can be heard, where there is more than one."""
        ready = [take for take in self.takes if take.ready]
        return ready if len(ready) > 1 else []


def part_card(request: SynthesisRequest, part: Part, reader: User, *, characters: int) -> PartCard:
    """How a part is shown to `reader`, the first sound as the first of its takes."""
    segment = part.segment
    first = TakeCard(
        id="",
        label=_("First"),
        audio_url=reverse("part_sound", args=[request.id, segment.index]),
        chosen=segment.take_id is None,
        ready=True,
        open=False,
        now="",
        seconds=segment.seconds,
        settings=_made_with(request),
    )
    others = [
        TakeCard(
            id=str(take.id),
            label=_("Take %(n)d") % {"n": number},
            audio_url=reverse("request_audio", args=[take.id]),
            chosen=segment.take_id == take.id,
            ready=getattr(take, "output", None) is not None,
            open=not take.is_final,
            now=_now(take, reader, expired=not hasattr(take, "output")),
            seconds=take.output.seconds if hasattr(take, "output") else None,
            settings=_made_with(take),
        )
        for number, take in enumerate(part.takes, 2)
    ]
    text = " ".join(segment.text.split())
    return PartCard(segment.index, text, part.start, part.end, characters, [first, *others])


def _made_with(request: SynthesisRequest) -> list[str]:
    """What tells takes of the same words apart: seed, instruction, speed, who asked for it and when."""
    seeded = capabilities(request.engine).seed
    return [
        words
        for words in (
            _("seed %(n)d") % {"n": request.seed} if seeded else "",
            request.instruction,
            f"{request.speed:g}×" if request.speed != 1 else "",
            request.user.get_short_name(),
            when(request.created_at),
        )
        if words
    ]


def request_cards(requests: Iterable[SynthesisRequest], reader: User) -> list[RequestCard]:
    """Cards for several requests."""
    return [request_card(request, reader) for request in requests]


def _now(request: SynthesisRequest, reader: User, *, expired: bool) -> str:
    match request.status:
        case Status.SUCCEEDED:
            return _("The recording was deleted when its time was over.") if expired else _("Ready to listen")
        case Status.CANCELED:
            return _("Cancelled. Nothing was charged.")
        case Status.FAILED:
            reason = _(request.error_message) if request.error_message else _("It could not be spoken.")
            return _("%(reason)s Nothing was charged.") % {"reason": reason}
    outlook = queue.outlook(request)
    if request.status == Status.RUNNING:
        part = min(request.segments_done + 1, request.segments_total)
        if request.segments_total > 1:
            speaking = _("Speaking part %(part)d of %(total)d") % {
                "part": part,
                "total": request.segments_total,
            }
        else:
            speaking = _("Speaking")
        if outlook.seconds is None:
            return speaking
        return _("%(doing)s · %(time)s left") % {"doing": speaking, "time": about(outlook.seconds)}
    return _waiting(outlook, of_reader=request.user_id == reader.id)


def _waiting(outlook: queue.Outlook, *, of_reader: bool) -> str:
    place = _place(outlook.place, of_reader=of_reader)
    if outlook.starting:
        return _("%(place)s · a worker is starting: loading the voice model takes up to a few minutes") % {
            "place": place
        }
    if not outlook.workers:
        return _("%(place)s · waiting for a worker to come back") % {"place": place}
    if outlook.seconds is None:
        return place
    return _("%(place)s · ready in %(time)s") % {"place": place, "time": about(outlook.seconds)}


def _place(where: queue.Place | None, *, of_reader: bool) -> str:
    """How many are ahead and whose they are: one's own first, since one can cancel those."""
    if where is None or where.ahead == 0:
        return _("Next in line")
    place = ngettext("%(n)d ahead", "%(n)d ahead", where.ahead) % {"n": where.ahead}
    yours = where.ahead_user if of_reader else 0
    if yours == where.ahead:
        every = ngettext("yours", "all yours", yours)
        return _("%(place)s, %(whose)s") % {"place": place, "whose": every}
    if yours:
        return _("%(place)s, %(own)d of them yours") % {"place": place, "own": yours}
    if where.ahead_own == where.ahead:
        every = ngettext("from your team", "all from your team", where.ahead_own)
        return _("%(place)s, %(whose)s") % {"place": place, "whose": every}
    if where.ahead_own:
        return _("%(place)s, %(own)d of them from your team") % {"place": place, "own": where.ahead_own}
    return place


def _notice(request: SynthesisRequest) -> str:
    if request.cloning != "nearest_preset":
        return ""
    version = request.voice_version
    nearest = version.nearest.get(request.engine, "") if version else ""
    preset = (
        Voice.objects.filter(team=None, engine=request.engine, preset=nearest).first() if nearest else None
    )
    if preset:
        return _("Spoken by the preset “%(preset)s”, which sounds most like “%(voice)s”.") % {
            "preset": voice_name(preset),
            "voice": request.voice.name,
        }
    return _("Spoken by the preset that sounds most like “%(voice)s”.") % {"voice": request.voice.name}
