"""Voices: who recorded them with whose consent, who uses them, and blocking them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.admin.cells import anchor, badge, link, moment, number
from accounts.effects import Effect, Text
from accounts.models.users import EMAIL_CHARACTERS
from accounts.names import team_names
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set, short_time
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, Page, operator, panel
from synthesis import delivery
from synthesis.errors import VoiceNotFound
from synthesis.models import Dimension, Grain, MisuseReport, Status, SynthesisRequest, UsageRollup, Voice
from synthesis.services import misuse, takedown


class TakeDownForm(OperationForm):
    """Why."""

    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = _("Reason")
        self.fields["reason"].help_text = _("The team sees it; the audit log keeps it.")


def take_down_effects(voices: Sequence[Voice]) -> list[Effect]:
    """What blocking them would do."""
    effects = []
    for voice in voices:
        waiting = SynthesisRequest.objects.filter(
            voice=voice, status__in=[Status.QUEUED, Status.RUNNING]
        ).count()
        effects.append(Effect(voice.name, _("use"), _("allowed"), _("blocked at once")))
        effects.append(Effect(voice.name, _("unfinished requests"), number(waiting), _("ended, not charged")))
    return effects


def _take_down_preview(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> list[Effect]:
    return take_down_effects(objects)


def _take_down(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> Text:
    ended = sum(takedown.take_down(by=by, voice_id=voice.pk, reason=values["reason"]) for voice in objects)
    return _("Blocked. Unfinished requests that were ended: %(ended)d.") % {"ended": ended}


def _restore(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> Text:
    for voice in objects:
        takedown.restore(by=by, voice_id=voice.pk, reason=values["reason"])
    return _("The voice can be used again.")


class ComplaintForm(OperationForm):
    """What somebody without an account said."""

    kind = forms.ChoiceField(
        label=gettext_lazy("What is wrong?"), choices=MisuseReport.Kind.choices, widget=forms.Select
    )
    details = forms.CharField(
        label=gettext_lazy("What happened?"),
        max_length=misuse.DETAILS_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 5}),
    )
    email = forms.EmailField(
        label=gettext_lazy("E-mail address of who told you"),
        max_length=EMAIL_CHARACTERS,
        required=False,
        help_text=gettext_lazy("They are told what was decided."),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )


def _complain(by: Operator, objects: Sequence[Voice], values: dict[str, Any]) -> Text:
    misuse.note_complaint(by=by, voice_id=objects[0].pk, **values)
    return _("Noted among the reports of misuse.")


def sample(request: HttpRequest, voice_id: UUID) -> HttpResponseBase:
    """How a voice sounds, for whoever decides about it; also of one that is blocked. Kept in the audit log."""
    voice = Voice.objects.select_related("current_version").filter(pk=voice_id).first()
    if voice is None:
        raise VoiceNotFound
    # A player asks for many ranges: the first byte is what counts as listening.
    if request.headers.get("Range", "bytes=0-").startswith("bytes=0-"):
        operator(request).record("voice.heard", target=voice, team_id=voice.team_id, name=voice.name)
    return delivery.serve_sample(request, voice)


panel().add_page(
    Page("voices/<uuid:voice_id>/sample/", "voice_sample", require_safe(sample), takedown.PERMISSION)
)


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
            as_shown=False,
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
        Operation(
            "complaint",
            gettext_lazy("Note a complaint"),
            misuse.PERMISSION,
            _complain,
            form=ComplaintForm,
            explain=gettext_lazy(
                "For what you were told outside of Chorus; members of teams report it themselves."
            ),
            icon="flag",
        ),
    ]
    extra_template = "admin/parts/voice.html"

    def context(self, request: HttpRequest, obj: Voice) -> dict[str, Any]:
        """Whether it may be heard here."""
        return {
            "may_hear": operator(request).can(takedown.PERMISSION) and not obj.objects_deleted,
            "voice": obj,
        }

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
                f"{one.consent_language} {one.consent_version}" if one.consent_language else "—",
                f"{one.seconds:.1f} s",
                one.original_name,
            ]
            for one in versions
        ]
        columns = [
            _("Version"),
            _("Consent by"),
            _("When"),
            _("Statement"),
            _("Text"),
            _("Length"),
            _("File"),
        ]
        tables = [Table(_("Recordings and consent"), columns, consents, _("None: it comes with the engine."))]
        if request.user.has_perm("synthesis.view_synthesisrequest"):
            rows = [
                [one["team"], number(one["requests"]), number(one["characters"]), one["months"]]
                for one in usage_by_team(obj)
            ]
            columns = [_("Team"), _("Requests"), _("Characters"), _("Months")]
            tables.append(Table(_("Used by"), columns, rows, _("Nobody so far.")))
        if request.user.has_perm("synthesis.view_misusereport"):
            reports = MisuseReport.objects.filter(voice=obj).order_by("-created_at")[:20]
            rows = [
                [
                    link(one, short_time(one.created_at)),
                    one.get_kind_display(),
                    one.get_decision_display() or _("undecided"),
                ]
                for one in reports
            ]
            columns = [_("When"), _("What is wrong"), _("State")]
            tables.append(Table(_("Reports of misuse"), columns, rows, _("None.")))
        return tables


def usage_by_team(voice: Voice) -> list[dict[str, Any]]:
    """Who spoke with it in the last twelve months, the most characters first; from the rollup, not from requests."""
    since = (timezone.now().date() - timedelta(days=365)).replace(day=1)
    found = list(
        UsageRollup.objects.filter(
            grain=Grain.MONTH, dimension=Dimension.VOICE, start__gte=since, subject_id=voice.pk
        )
        .values("team_id")
        .annotate(requests=Sum("requests"), characters=Sum("characters"), months=Count("start"))
        .order_by("-characters")[:20]
    )
    names = team_names(one["team_id"] for one in found)
    return [
        {**one, "team": names.get(one["team_id"]) or str(one["team_id"])} for one in found if one["team_id"]
    ]


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
