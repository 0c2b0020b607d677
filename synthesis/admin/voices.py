"""Voices: who recorded them with whose consent, who uses them, and blocking them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, moment, number
from accounts.effects import Effect, Text
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from synthesis.models import Status, SynthesisRequest, Voice
from synthesis.services import takedown


class TakeDownForm(OperationForm):
    """Why."""

    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = _("Reason")
        self.fields["reason"].help_text = _("The team sees it; the audit log keeps it.")


def _take_down_preview(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> list[Effect]:
    effects = []
    for voice in objects:
        waiting = SynthesisRequest.objects.filter(
            voice=voice, status__in=[Status.QUEUED, Status.RUNNING]
        ).count()
        effects.append(Effect(voice.name, _("use"), _("allowed"), _("blocked at once")))
        effects.append(Effect(voice.name, _("unfinished requests"), number(waiting), _("ended, not charged")))
    return effects


def _take_down(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> Text:
    ended = sum(takedown.take_down(by=by, voice_id=voice.pk, reason=values["reason"]) for voice in objects)
    return _("Blocked. Unfinished requests that were ended: %(ended)d.") % {"ended": ended}


def _restore(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> Text:
    for voice in objects:
        takedown.restore(by=by, voice_id=voice.pk, reason=values["reason"])
    return _("The voice can be used again.")


@admin.register(Voice)
class VoiceAdmin(PanelAdmin):
    """Presets and the voices of teams."""

    list_display = [
        "name",
        "kind",
        "of_team",
        "language",
        "gender",
        "state",
        "created_by",
        moment("created_at", gettext_lazy("made")),
    ]
    list_filter = [
        "kind",
        "language",
        is_set("taken_down_at", gettext_lazy("blocked"), gettext_lazy("yes"), gettext_lazy("no")),
        is_set("deleted_at", gettext_lazy("deleted"), gettext_lazy("yes"), gettext_lazy("no")),
    ]
    list_select_related = ["team", "created_by"]
    search_fields = ["name", "team__name", "created_by__email"]
    id_columns = ["id", "team_id", "created_by_id"]
    ordering = ["-created_at"]
    facts = [
        "name",
        "kind",
        "of_team",
        "created_by",
        "language",
        "gender",
        "style",
        "engine",
        "state",
        "taken_down_at",
        "taken_down_reason",
        "created_at",
        "deleted_at",
        "id",
    ]
    operations = [
        Operation(
            "take-down",
            gettext_lazy("Block"),
            takedown.PERMISSION,
            _take_down,
            form=TakeDownForm,
            preview=_take_down_preview,
            applies=lambda voice: voice.taken_down_at is None,
            explain=gettext_lazy("Nobody can speak with it any more; its recordings are kept as evidence."),
            bulk=True,
            danger=True,
            icon="pause",
        ),
        Operation(
            "restore",
            gettext_lazy("Allow again"),
            takedown.PERMISSION,
            _restore,
            applies=lambda voice: voice.taken_down_at is not None,
            bulk=True,
            icon="play",
        ),
    ]

    def badges(self, obj: Voice) -> list[tuple[Text, str]]:
        """Whether it can be used."""
        if obj.taken_down_at:
            return [(_("blocked"), "bad")]
        return [(_("deleted"), "")] if obj.deleted_at else [(_("in use"), "good")]

    @admin.display(description=gettext_lazy("team"))
    def of_team(self, voice: Voice) -> SafeString | str:
        """A way to the team."""
        return anchor(voice.team) if voice.team else _("everybody")

    @admin.display(description=gettext_lazy("state"))
    def state(self, voice: Voice) -> SafeString:
        """In use, blocked or deleted."""
        word, kind = self.badges(voice)[0]
        return badge(word, kind)

    def tables(self, request: HttpRequest, obj: Voice) -> list[Table]:
        """Consent, and use by team."""
        versions = obj.versions.select_related("consent_by").order_by("-number")
        consents = [
            [
                one.number,
                one.consent_by.email if one.consent_by else "—",
                f"{one.consent_at:%Y-%m-%d %H:%M}",
                one.consent_statement,
                f"{one.seconds:.1f} s",
                one.original_name,
            ]
            for one in versions
        ]
        columns = [_("Version"), _("Consent by"), _("When"), _("Statement"), _("Length"), _("File")]
        tables = [Table(_("Recordings and consent"), columns, consents, _("None: it comes with the engine."))]
        if request.user.has_perm("synthesis.view_synthesisrequest"):
            used = (
                SynthesisRequest.objects.filter(voice=obj)
                .values("team", "team__name")
                .annotate(requests=Count("id"))
                .order_by("-requests")[:20]
            )
            rows = [[one["team__name"], number(one["requests"])] for one in used]
            tables.append(Table(_("Used by"), [_("Team"), _("Requests")], rows, _("Nobody so far.")))
        return tables


panel().add_entry(
    Entry(
        "customers",
        "admin:synthesis_voice_changelist",
        gettext_lazy("Voices"),
        "voices",
        "synthesis.view_voice",
        50,
    )
)
