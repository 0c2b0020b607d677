"""Plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import Link, link, number
from accounts.effects import Effect, Text
from accounts.models import Plan, QuotaChange, Team
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from accounts.services import quotas


class PlanForm(OperationForm):
    """Each limit of a plan, and a name for a new one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plan = self.objects[0] if self.objects else Plan()
        self.fields["name"] = forms.CharField(label=_("Name"), max_length=64, initial=plan.name)
        for name in quotas.PLAN_FIELDS:
            field: forms.Field = (forms.FloatField if name == "weight" else forms.IntegerField)(
                label=str(quotas.LABELS[name]).capitalize(), min_value=0, initial=getattr(plan, name)
            )
            self.fields[name] = field
        self.tracked = ("name", *quotas.PLAN_FIELDS)
        if plan.name:
            self.fields["next_period"] = when_field()
            self.fields["reason"] = reason_field()
        for field in self.fields.values():
            if not isinstance(field.widget, forms.RadioSelect):
                field.widget.attrs["class"] = "input"

    def clean(self) -> dict[str, Any]:
        """Keep what was touched beside the raw values."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            values["touched"] = self.touched(values)
        return values


def when_field() -> forms.ChoiceField:
    """Now, or from the next month."""
    return forms.ChoiceField(
        label=_("When"),
        choices=[("", _("Now")), ("1", _("From the next month"))],
        required=False,
        widget=forms.Select(attrs={"class": "input"}),
    )


def reason_field() -> forms.CharField:
    """Why."""
    return forms.CharField(
        label=_("Reason"),
        required=False,
        max_length=200,
        help_text=_("Kept in the audit log."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "class": "input"}),
    )


def _limits(values: dict[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in quotas.PLAN_FIELDS if name in values}


def _create(by: Operator, objects: Sequence[Plan], values: dict[str, Any]) -> Text:
    plan = quotas.create_plan(by=by, name=values["name"], values=_limits(values))
    return _("The plan “%(name)s” is made.") % {"name": plan.name}


def _preview(by: Operator, objects: Sequence[Plan], values: dict[str, Any]) -> list[Effect]:
    plan = objects[0]
    effects = quotas.preview(targets=[plan], values=_limits(values["touched"]))
    if values["touched"].get("name", plan.name) != plan.name:
        effects.insert(0, Effect(plan.name, _("name"), plan.name, values["name"]))
    return effects


def _change(by: Operator, objects: Sequence[Plan], values: dict[str, Any]) -> Text:
    plan = objects[0]
    if values["touched"].get("name", plan.name) != plan.name:
        quotas.rename_plan(by=by, plan_id=plan.pk, name=values["name"])
    quotas.change(
        by=by,
        targets=[plan],
        values=_limits(values["touched"]),
        next_period=bool(values["next_period"]),
        reason=values["reason"],
    )
    return _("The change is planned.") if values["next_period"] else _("The plan is changed.")


def _delete(by: Operator, objects: Sequence[Plan], values: dict[str, Any]) -> Text:
    quotas.delete_plan(by=by, plan_id=objects[0].pk)
    return _("The plan is deleted.")


@admin.register(Plan)
class PlanAdmin(PanelAdmin):
    """What teams may use unless their own quota says otherwise."""

    intro = gettext_lazy("What a team may use each month, unless it has limits of its own.")
    list_display = [
        "name",
        "monthly",
        "concurrent_requests",
        "requests_per_minute",
        "characters_per_request",
        "stored_voices",
        "weight",
        "retention_days",
        "teams",
    ]
    search_fields = ["name"]
    ordering = ["name"]
    facts = ["name", *quotas.PLAN_FIELDS]
    operations = [
        Operation(
            "new",
            gettext_lazy("New plan"),
            "accounts.add_plan",
            _create,
            form=PlanForm,
            alone=True,
            icon="plus",
        ),
        Operation(
            "change",
            gettext_lazy("Change"),
            "accounts.change_plan",
            _change,
            form=PlanForm,
            preview=_preview,
            explain=gettext_lazy("Teams with limits of their own keep those."),
        ),
        Operation(
            "delete",
            gettext_lazy("Delete"),
            "accounts.delete_plan",
            _delete,
            danger=True,
            icon="trash",
            form=OperationForm,
            explain=gettext_lazy("Possible only while no team has it."),
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Plan]:
        """With the number of teams."""
        return super().get_queryset(request).annotate(team_count=Count("team"))

    @admin.display(description=gettext_lazy("characters per month"), ordering="characters_per_month")
    def monthly(self, plan: Plan) -> str:
        """With separators."""
        return number(plan.characters_per_month)

    @admin.display(description=gettext_lazy("teams"), ordering="team_count")
    def teams(self, plan: Any) -> int:
        """How many have it."""
        return int(plan.team_count)

    def tables(self, request: HttpRequest, obj: Plan) -> list[Table]:
        """Its teams, and how it came to be what it is."""
        teams = Team.objects.filter(plan=obj).order_by("name")[:50]
        return [
            Table(_("Teams with this plan"), [_("Team")], [[link(team)] for team in teams]),
            changes_table(QuotaChange.objects.filter(plan=obj)),
        ]


def changes_table(changes: QuerySet[QuotaChange]) -> Table:
    """The history of limits."""
    rows = []
    for change in changes.select_related("created_by", "plan", "team", "membership").order_by("-created_at")[
        :20
    ]:
        what = "; ".join(
            f"{quotas.LABELS.get(field, field)}: "
            + (f"{quotas.shown(field, change.before[field])} → " if change.before is not None else "")
            + quotas.shown(field, value)
            for field, value in change.after.items()
        )
        state = (
            _("planned for %(day)s") % {"day": change.apply_at.date().isoformat()}
            if change.is_planned
            else _("withdrawn")
            if change.withdrawn_at
            else _("in force")
        )
        rows.append(
            [
                Link(f"{change.created_at:%Y-%m-%d %H:%M}", link(change).url),
                what,
                state,
                change.created_by.email if change.created_by else "—",
                change.reason,
            ]
        )
    return Table(
        _("Changes of limits"),
        [_("When"), _("What"), _("State"), _("By"), _("Reason")],
        rows,
        _("None so far."),
    )


panel().add_entry(
    Entry(
        "customers", "admin:accounts_plan_changelist", gettext_lazy("Plans"), "card", "accounts.view_plan", 30
    )
)
