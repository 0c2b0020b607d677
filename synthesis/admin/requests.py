"""Synthesis requests: seen, canceled, retried, moved. Their words are shown to nobody but their team."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, link, moment, number
from accounts.effects import Text
from accounts.errors import ChorusError
from accounts.models import LedgerEntry
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from synthesis.models import Status, SynthesisRequest
from synthesis.services import operations

_KINDS = {
    Status.QUEUED: "",
    Status.RUNNING: "accent",
    Status.SUCCEEDED: "good",
    Status.FAILED: "bad",
    Status.CANCELED: "warn",
}


class PriorityForm(OperationForm):
    """Where in its team's queue."""

    priority = forms.IntegerField(min_value=operations.PRIORITIES[0], max_value=operations.PRIORITIES[1])
    reason = forms.CharField(max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["priority"].label = _("Priority")
        self.fields["priority"].help_text = _(
            "From -100 to 100, normally 0. The highest of a team comes first."
        )
        self.fields["priority"].initial = self.objects[0].priority if self.objects else 0
        self.fields["reason"].label = _("Reason")


def _cancel(by: Operator, objects: Sequence[SynthesisRequest], values: dict[str, Any]) -> Text:
    done = sum(operations.cancel(by=by, request_id=one.pk, reason=values["reason"]) for one in objects)
    return _("Canceled without charge: %(done)d.") % {"done": done}


def _retry(by: Operator, objects: Sequence[SynthesisRequest], values: dict[str, Any]) -> Text:
    done, refused = 0, ""
    for one in objects:
        try:
            operations.retry(by=by, request_id=one.pk)
            done += 1
        except ChorusError as error:
            if len(objects) == 1:
                raise
            refused = str(error)
    said = _("Submitted again: %(done)d of %(all)d.") % {"done": done, "all": len(objects)}
    return f"{said} {refused}".strip()


def _set_priority(by: Operator, objects: Sequence[SynthesisRequest], values: dict[str, Any]) -> Text:
    for one in objects:
        operations.set_priority(
            by=by, request_id=one.pk, priority=values["priority"], reason=values["reason"]
        )
    return _("Moved.")


def _hurry(by: Operator, objects: Sequence[SynthesisRequest], values: dict[str, Any]) -> Text:
    for one in objects:
        operations.hurry(by=by, request_id=one.pk)
    return _("It is taken as soon as a worker is free.")


@admin.register(SynthesisRequest)
class SynthesisRequestAdmin(PanelAdmin):
    """Everything that was submitted."""

    intro = gettext_lazy(
        "What was submitted, and what became of it. Texts are their team's and not shown here."
    )
    list_display = [
        moment("created_at", gettext_lazy("when")),
        "state",
        "of_team",
        "of_user",
        "voice",
        "characters_",
        "engine",
        "error_code",
    ]
    list_filter = ["status", "engine", "source"]
    list_select_related = ["team", "user", "voice"]
    search_help_text = gettext_lazy("Team, person, or the id of a request, team, person, key or voice")
    id_columns = ["id", "team_id", "user_id", "api_key_id", "voice_id"]
    team_column = "team_id"
    user_column = "user_id"
    ordering = ["-id"]
    sortable_by = ()
    facts = [
        "state",
        "of_team",
        "of_user",
        "of_voice",
        "source",
        "engine",
        "cloning",
        "language",
        "format",
        "characters_",
        "progress",
        "priority",
        "attempt",
        "failures",
        "worker",
        "created_at",
        "started_at",
        "completed_at",
        "not_before",
        "lease_until",
        "engine_seconds",
        "audio_seconds",
        "error_code",
        "error_message",
        "retry_of",
        "deleted_at",
        "id",
    ]
    operations = [
        Operation(
            "cancel",
            gettext_lazy("Cancel"),
            operations.PERMISSION,
            _cancel,
            applies=lambda request: not request.is_final,
            bulk=True,
            danger=True,
            icon="close",
        ),
        Operation(
            "retry",
            gettext_lazy("Try again"),
            operations.PERMISSION,
            _retry,
            form=OperationForm,
            applies=lambda request: request.status in (Status.FAILED, Status.CANCELED),
            explain=gettext_lazy(
                "A new request with the same text, for the same person, by the limits of now."
            ),
            bulk=True,
            icon="again",
        ),
        Operation(
            "priority",
            gettext_lazy("Priority"),
            operations.PERMISSION,
            _set_priority,
            form=PriorityForm,
            applies=lambda request: request.status == Status.QUEUED,
            explain=gettext_lazy("Within its team: between teams the fair share decides."),
            bulk=True,
            icon="queue",
        ),
        Operation(
            "hurry",
            gettext_lazy("Skip the pause"),
            operations.PERMISSION,
            _hurry,
            form=OperationForm,
            applies=lambda request: request.status == Status.QUEUED and request.attempt > 0,
            bulk=True,
            icon="play",
        ),
    ]

    @admin.display(description=gettext_lazy("state"))
    def state(self, request: SynthesisRequest) -> SafeString:
        """As a coloured word."""
        return badge(request.get_status_display(), _KINDS[Status(request.status)])

    @admin.display(description=gettext_lazy("team"))
    def of_team(self, request: SynthesisRequest) -> SafeString:
        """A way to the team."""
        return anchor(request.team)

    @admin.display(description=gettext_lazy("person"))
    def of_user(self, request: SynthesisRequest) -> SafeString:
        """A way to the person."""
        return anchor(request.user, request.user.email)

    @admin.display(description=gettext_lazy("voice"))
    def of_voice(self, request: SynthesisRequest) -> SafeString:
        """A way to the voice."""
        return anchor(request.voice)

    @admin.display(description=gettext_lazy("characters"))
    def characters_(self, request: SynthesisRequest) -> str:
        """With separators."""
        return number(request.characters)

    @admin.display(description=gettext_lazy("segments"))
    def progress(self, request: SynthesisRequest) -> str:
        """Done of all."""
        return f"{request.segments_done} / {request.segments_total}"

    def tables(self, request: HttpRequest, obj: SynthesisRequest) -> list[Table]:
        """Attempts, and what the ledger says."""
        rows: list[list[Any]] = [
            [
                one.number,
                one.worker,
                f"{one.started_at:%Y-%m-%d %H:%M:%S}",
                f"{one.ended_at:%H:%M:%S}" if one.ended_at else "—",
                one.get_outcome_display() or _("running"),
                one.error_code,
                one.detail,
            ]
            for one in obj.attempts.all()
        ]
        columns = [_("No."), _("Worker"), _("From"), _("To"), _("Outcome"), _("Error"), _("Detail")]
        tables = [Table(_("Attempts"), columns, rows, _("No worker has taken it yet."))]
        if request.user.has_perm("accounts.view_ledgerentry"):
            entries = LedgerEntry.objects.filter(request_id=obj.pk).order_by("created_at")
            rows = [
                [
                    link(one, one.get_kind_display()),
                    number(one.characters),
                    f"{one.created_at:%Y-%m-%d %H:%M:%S}",
                ]
                for one in entries
            ]
            tables.append(Table(_("Ledger"), [_("Kind"), _("Characters"), _("When")], rows))
        return tables


panel().add_entry(
    Entry(
        "work",
        "admin:synthesis_synthesisrequest_changelist",
        gettext_lazy("Requests"),
        "history",
        "synthesis.view_synthesisrequest",
        30,
    )
)
