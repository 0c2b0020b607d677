"""How people find voices again: tags, which a whole team shares, and favourites, which are one person's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import InvalidInput
from accounts.models import Team
from accounts.services import audit
from synthesis.errors import VoiceNotFound
from synthesis.models import Voice, VoiceFavourite, VoiceTag
from synthesis.services import voices

#: Of one voice: more do not tell it apart any better.
MOST = 20
CHARACTERS = 40


def tags_of(team: Team, voice: Voice) -> list[str]:
    """The team's tags of one voice, by name; without a question where `VoiceQuerySet.marked` has asked it."""
    known: list[VoiceTag] | None = getattr(voice, "team_tags", None)
    if known is not None:
        return [tag.name for tag in known]
    found = VoiceTag.objects.filter(team=team, voice=voice).values_list("name", flat=True)
    return sorted(found, key=str.lower)


def all_tags(actor: Actor) -> list[str]:
    """Every tag of a voice that `actor` may use, the most used first."""
    usable = Voice.objects.usable(actor)
    names = VoiceTag.objects.filter(team=actor.team, voice__in=usable).values_list("name", flat=True)
    counted = Counter(names)
    return sorted(counted, key=lambda name: (-counted[name], name.lower()))


def set_tags(*, actor: Actor, voice_id: UUID, names: Iterable[str]) -> Voice:
    """Let a voice have these tags and no others, for the whole team; a preset's are each team's own.

    A tag that the team writes differently elsewhere (“News”, “news”) is written as there. Raises VoiceNotFound, and
    InvalidInput (`tag_invalid`, `too_many_tags`).
    """
    actor.require(permissions.VOICES_WRITE)
    voice = _usable(actor, voice_id)
    wanted = checked(names)
    with transaction.atomic():
        # Two at once would both find a place for the same tag.
        Team.objects.select_for_update(of=("self",), no_key=True).get(id=actor.team.id)
        spelled = {
            name.casefold(): name
            for name in VoiceTag.objects.filter(team=actor.team)
            .exclude(voice=voice)
            .order_by("-id")
            .values_list("name", flat=True)
        }
        wanted = [spelled.get(name.casefold(), name) for name in wanted]
        before = tags_of(actor.team, voice)
        if sorted(before) != sorted(wanted):
            VoiceTag.objects.filter(team=actor.team, voice=voice).delete()
            VoiceTag.objects.bulk_create(VoiceTag(team=actor.team, voice=voice, name=name) for name in wanted)
            audit.record("voice.tagged", actor=actor, target=voice, before=before, after=wanted)
    return _usable(actor, voice_id)


def _usable(actor: Actor, voice_id: UUID) -> Voice:
    """As `voices.find`, also for a key that may write and not read."""
    found = voices.usable(actor).filter(id=voice_id).first()
    if found is None:
        raise VoiceNotFound
    return found


def set_favourite(*, actor: Actor, voice_id: UUID, wanted: bool) -> None:
    """Mark a voice as the person's favourite, or no more; as often as it is asked for. VoiceNotFound."""
    voice = voices.find(actor, voice_id)
    if wanted:
        VoiceFavourite.objects.get_or_create(user=actor.user, voice=voice)
    else:
        VoiceFavourite.objects.filter(user=actor.user, voice=voice).delete()


def checked(names: Iterable[str]) -> list[str]:
    """Tags as they will be kept, without the same one twice. Raises InvalidInput (`tag_invalid`, `too_many_tags`)."""
    found: dict[str, str] = {}
    for name in names:
        tag = " ".join(name.split())
        # A comma stands between tags where they are typed.
        if not tag or len(tag) > CHARACTERS or not tag.isprintable() or "," in tag:
            raise InvalidInput(
                _("A tag has 1 to %(max)d characters, without a comma.") % {"max": CHARACTERS},
                code="tag_invalid",
                param="tags",
            )
        found.setdefault(tag.casefold(), tag)
    if len(found) > MOST:
        raise InvalidInput(
            _("A voice has at most %(max)d tags.") % {"max": MOST}, code="too_many_tags", param="tags"
        )
    return list(found.values())
