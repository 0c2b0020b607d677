"""Reports of misuse: who said what about which voice, and what is to be done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, moment
from accounts.effects import Effect, Text
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set, short_time
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from synthesis.admin.voices import take_down_effects
from synthesis.models import MisuseReport
from synthesis.services import misuse, takedown

VIEW = "synthesis.view_misusereport"


def _line(label: Any, help_text: Any = "", *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=required,
        max_length=200 if required else misuse.NOTE_CHARACTERS,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class DismissForm(OperationForm):
    """What the reporter is told."""

    note = _line(gettext_lazy("Answer"), gettext_lazy("Whoever reported it is told."))


class BlockForm(OperationForm):
    """What the team is told, and what the reporter is told."""

    reason = _line(gettext_lazy("Reason"), gettext_lazy("The team sees it; the audit log keeps it."))
    note = _line(
        gettext_lazy("Answer"), gettext_lazy("Whoever reported it is told, and nobody else."), required=False
    )


def _dismiss(by: Operator, objects: Sequence[MisuseReport], values: dict[str, Any]) -> Text:
    for one in objects:
        misuse.dismiss(by=by, report_id=one.pk, note=values["note"])
    return _("Dismissed. Whoever reported it is told.")


def _block_effects(by: Operator, objects: Sequence[MisuseReport], values: dict[str, Any]) -> list[Effect]:
    one = objects[0]
    count = MisuseReport.objects.filter(voice=one.voice_id, decided_at=None).count()
    decided = Effect(one.voice.name, _("open reports"), str(count), _("decided, reporters told"))
    return [*take_down_effects([one.voice]), decided]


def _block(by: Operator, objects: Sequence[MisuseReport], values: dict[str, Any]) -> Text:
    ended = misuse.take_down(by=by, report_id=objects[0].pk, reason=values["reason"], note=values["note"])
    return _("Blocked. Unfinished requests that were ended: %(ended)d.") % {"ended": ended}


@admin.register(MisuseReport)
class MisuseReportAdmin(PanelAdmin):
    """What was reported, the newest first."""

    intro = gettext_lazy(
        "What people say about voices. Block the voice or dismiss the report; whoever reported it is told."
    )
    list_display = [
        "voice",
        "kind",
        "of_team",
        "who",
        moment("created_at", gettext_lazy("reported")),
        "state",
        "decided_by",
    ]
    list_filter = [
        is_set("decided_at", gettext_lazy("state"), gettext_lazy("decided"), gettext_lazy("undecided")),
        "kind",
        "decision",
    ]
    list_select_related = ["voice__team", "reporter", "decided_by"]
    search_fields = ["voice__name", "voice__team__name", "email", "details"]
    id_columns = ["id", "voice_id", "reporter_id"]
    ordering = ["-created_at"]
    facts = [
        "of_voice",
        "of_team",
        "kind",
        "details",
        "who",
        "created_at",
        "state",
        "decided_at",
        "decided_by",
        "note",
        "id",
    ]
    operations = [
        Operation(
            "take-down",
            gettext_lazy("Block the voice"),
            takedown.PERMISSION,
            _block,
            form=BlockForm,
            preview=_block_effects,
            as_shown=False,
            applies=lambda report: report.is_open,
            explain=gettext_lazy("Nobody can speak with it any more; its recordings are kept as evidence."),
            danger=True,
            icon="pause",
        ),
        Operation(
            "dismiss",
            gettext_lazy("Dismiss"),
            misuse.PERMISSION,
            _dismiss,
            form=DismissForm,
            applies=lambda report: report.is_open,
            explain=gettext_lazy("The voice stays as it is."),
            bulk=True,
            icon="check",
        ),
    ]

    def badges(self, obj: MisuseReport) -> list[tuple[Text, str]]:
        """Open, or what was decided."""
        if obj.is_open:
            return [(_("undecided"), "warn")]
        blocked = obj.decision == MisuseReport.Decision.TAKEN_DOWN
        return [(obj.get_decision_display(), "bad" if blocked else "")]

    @admin.display(description=gettext_lazy("state"))
    def state(self, report: MisuseReport) -> SafeString:
        """As a coloured word."""
        word, kind = self.badges(report)[0]
        return badge(word, kind)

    @admin.display(description=gettext_lazy("voice"))
    def of_voice(self, report: MisuseReport) -> SafeString:
        """A way to the voice, where it can be heard."""
        return anchor(report.voice)

    @admin.display(description=gettext_lazy("team"))
    def of_team(self, report: MisuseReport) -> SafeString | str:
        """Whose voice it is."""
        return anchor(report.voice.team) if report.voice.team else _("everybody")

    @admin.display(description=gettext_lazy("reported by"))
    def who(self, report: MisuseReport) -> SafeString | str:
        """Their account, or their address."""
        if report.reporter:
            return anchor(report.reporter, report.reporter.email)
        return report.email or "—"

    def tables(self, request: HttpRequest, obj: MisuseReport) -> list[Table]:
        """What else was said about this voice."""
        others = MisuseReport.objects.filter(voice=obj.voice_id).exclude(pk=obj.pk).order_by("-created_at")
        rows = [
            [short_time(one.created_at), one.get_kind_display(), self.badges(one)[0][0], one.note or "—"]
            for one in others[:20]
        ]
        columns = [_("When"), _("What is wrong"), _("State"), _("Answer")]
        return [Table(_("Other reports of this voice"), columns, rows, _("None."))]


panel().add_entry(
    Entry(
        "customers",
        "admin:synthesis_misusereport_changelist",
        gettext_lazy("Reports of misuse"),
        "flag",
        VIEW,
        55,
    )
)
