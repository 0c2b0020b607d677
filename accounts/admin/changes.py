"""Changes of limits, and grants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, moment, number
from accounts.effects import Effect, Text
from accounts.models import Grant, LedgerEntry, QuotaChange
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set
from accounts.panel.operations import Operation, OperationForm, ReasonForm
from accounts.panel.site import Entry, panel
from accounts.services import grants, quotas
from accounts.web.forms import day_input


def _undo_preview(by: Operator, objects: Sequence[QuotaChange], values: dict[str, Any]) -> list[Effect]:
    return [effect for change in objects for effect in quotas.preview_undo(change)]


def _undo(by: Operator, objects: Sequence[QuotaChange], values: dict[str, Any]) -> Text:
    for change in objects:
        quotas.undo(by=by, change_id=change.pk)
    return _("Undone.")


def _withdraw(by: Operator, objects: Sequence[QuotaChange], values: dict[str, Any]) -> Text:
    for change in objects:
        quotas.withdraw(by=by, change_id=change.pk)
    return _("The planned change is withdrawn.")


@admin.register(QuotaChange)
class QuotaChangeAdmin(PanelAdmin):
    """Each change of limits, with what was there before."""

    intro = gettext_lazy("Who changed which limits, when, and from what. Each can be undone.")
    list_display = [
        moment("created_at", gettext_lazy("made")),  # first: it leads to the change, the next one to the team
        "subject",
        "what",
        "state",
        "created_by",
        "reason",
    ]
    list_filter = [
        is_set("applied_at", gettext_lazy("state"), gettext_lazy("in force"), gettext_lazy("not in force"))
    ]
    list_select_related = ["plan", "team", "membership__team", "membership__user", "created_by", "undone_by"]
    ordering = ["-created_at"]
    search_fields = ["team__name", "plan__name", "membership__user__email", "reason"]
    id_columns = ["id", "batch", "team_id", "plan_id", "membership_id"]
    facts = [
        "subject",
        "what",
        "state",
        "apply_at",
        "applied_at",
        "created_by",
        "created_at",
        "reason",
        "batch",
    ]
    operations = [
        Operation(
            "undo",
            gettext_lazy("Undo"),
            "accounts.change_teamquota",  # the service also asks for the right to change a plan or a member
            _undo,
            form=OperationForm,
            preview=_undo_preview,
            applies=lambda change: change.applied_at is not None and not change.is_undone,
            bulk=True,
            icon="again",
        ),
        Operation(
            "withdraw",
            gettext_lazy("Withdraw"),
            "accounts.change_teamquota",
            _withdraw,
            form=OperationForm,
            applies=lambda change: change.is_planned,
            bulk=True,
            icon="close",
        ),
    ]

    @admin.display(description=gettext_lazy("for"))
    def subject(self, change: QuotaChange) -> SafeString:
        """The plan, team or member."""
        return anchor(quotas.target_of(change), str(change))

    @admin.display(description=gettext_lazy("what"))
    def what(self, change: QuotaChange) -> str:
        """Each field with before and after."""
        parts = []
        for field, value in change.after.items():
            before = f"{quotas.shown(field, change.before[field])} → " if change.before is not None else ""
            parts.append(f"{quotas.LABELS.get(field, field)}: {before}{quotas.shown(field, value)}")
        return "; ".join(parts)

    @admin.display(description=gettext_lazy("state"))
    def state(self, change: QuotaChange) -> SafeString:
        """Planned, in force, withdrawn or undone."""
        if change.is_planned:
            return badge(_("planned"), "warn")
        if change.withdrawn_at:
            return badge(_("withdrawn"))
        if change.is_undone:
            return badge(_("undone"))
        return badge(_("in force"), "good")


class RevokeForm(ReasonForm):
    """Why it is taken back."""


def _revoke_preview(by: Operator, objects: Sequence[Grant], values: dict[str, Any]) -> list[Effect]:
    return [Effect(str(grant), _("left of it"), number(grants.left(grant)), "0") for grant in objects]


def _revoke(by: Operator, objects: Sequence[Grant], values: dict[str, Any]) -> Text:
    left = sum(grants.revoke(by=by, grant_id=grant.pk, reason=values["reason"]) for grant in objects)
    return _("Revoked: %(left)s characters were left.") % {"left": number(left)}


@admin.register(Grant)
class GrantAdmin(PanelAdmin):
    """Characters once, on top of a limit."""

    intro = gettext_lazy("Characters given once, on top of a monthly limit. Give one on the page of a team.")
    list_display = [
        "amount",
        "for_whom",
        "left",
        moment("expires_at", gettext_lazy("expires")),
        "state",
        "reason",
        "created_by",
        moment("created_at", gettext_lazy("made")),
    ]
    list_filter = [is_set("ended_at", gettext_lazy("state"), gettext_lazy("ended"), gettext_lazy("active"))]
    list_select_related = ["team__plan", "team__quota", "user", "created_by"]
    ordering = ["-created_at"]
    search_fields = ["team__name", "user__email", "reason"]
    id_columns = ["id", "team_id", "user_id"]
    facts = [
        "amount",
        "for_whom",
        "left",
        "expires_at",
        "period_start",
        "ended_at",
        "reason",
        "created_by",
        "created_at",
    ]
    operations = [
        Operation(
            "revoke",
            gettext_lazy("Revoke"),
            "accounts.change_grant",
            _revoke,
            form=RevokeForm,
            preview=_revoke_preview,
            as_shown=False,
            applies=lambda grant: grant.ended_at is None,
            bulk=True,
            danger=True,
            icon="close",
        ),
    ]

    @admin.display(description=gettext_lazy("characters"), ordering="characters")
    def amount(self, grant: Grant) -> str:
        """With separators."""
        return number(grant.characters)

    @admin.display(description=gettext_lazy("for"))
    def for_whom(self, grant: Grant) -> SafeString:
        """The team, and the person when it is theirs alone."""
        return anchor(grant.team, f"{grant.team} · {grant.user.email}" if grant.user else str(grant.team))

    @admin.display(description=gettext_lazy("left"))
    def left(self, grant: Grant) -> str:
        """What nobody has used or reserved."""
        return number(grants.left(grant))

    @admin.display(description=gettext_lazy("state"))
    def state(self, grant: Grant) -> SafeString:
        """Active or ended."""
        return badge(_("ended")) if grant.ended_at else badge(_("active"), "good")

    def tables(self, request: Any, obj: Grant) -> list[Table]:
        """Its entries in the ledger."""
        if not request.user.has_perm("accounts.view_ledgerentry"):
            return []
        entries = LedgerEntry.objects.filter(grant_id=obj.pk).order_by("created_at")
        rows = [
            [
                f"{one.created_at:%Y-%m-%d %H:%M}",
                one.get_kind_display(),
                number(one.characters),
                one.period_start,
                one.note,
            ]
            for one in entries
        ]
        return [Table(_("Ledger"), [_("When"), _("Kind"), _("Characters"), _("Month"), _("Note")], rows)]


class GrantForm(OperationForm):
    """How much, why, until when."""

    characters = forms.IntegerField(min_value=1, max_value=grants.MOST)
    expires_at = forms.DateField(required=False, widget=day_input())
    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["characters"].label = _("Characters")
        self.fields["expires_at"].label = _("Expires at the end of")
        self.fields["expires_at"].help_text = _("Empty: when it is used up.")
        self.fields["reason"].label = _("Reason")
        self.fields["reason"].help_text = _("Kept in the ledger and the audit log.")

    def clean_expires_at(self) -> date | None:
        """Not before today; the service looks at the hour."""
        day: date | None = self.cleaned_data["expires_at"]
        if day is not None and day < timezone.localdate() - timedelta(
            days=1
        ):  # somewhere it is still yesterday
            raise forms.ValidationError(_("The expiry lies in the past."))
        return day


class AdjustForm(OperationForm):
    """A correction of this month."""

    characters = forms.IntegerField(min_value=-grants.MOST, max_value=grants.MOST)
    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["characters"].label = _("Characters")
        self.fields["characters"].help_text = _("Below zero: fewer.")
        self.fields["reason"].label = _("Reason")

    def clean_characters(self) -> int:
        """Zero would be an entry about nothing."""
        characters: int = self.cleaned_data["characters"]
        if characters == 0:
            raise forms.ValidationError(_("Zero changes nothing."))
        return characters


panel().add_entry(
    Entry(
        "customers",
        "admin:accounts_quotachange_changelist",
        gettext_lazy("Changes of limits"),
        "edit",
        "accounts.view_quotachange",
        40,
    )
)
panel().add_entry(
    Entry(
        "customers",
        "admin:accounts_grant_changelist",
        gettext_lazy("Grants"),
        "plus",
        "accounts.view_grant",
        35,
    )
)
