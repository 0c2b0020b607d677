"""The price table, and alerts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import badge, link, moment, number
from accounts.effects import Text
from accounts.errors import InvalidInput
from accounts.models import Alert, AlertRule, Plan, Price, Team
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from accounts.services import alerts, prices, teams
from accounts.web.forms import day_input


class PriceForm(OperationForm):
    """A line of the table."""

    plan = forms.ModelChoiceField(Plan.objects.order_by("name"), required=False)
    valid_from = forms.DateField(widget=day_input())
    per_million_characters = forms.DecimalField(min_value=0, max_digits=14, decimal_places=4, initial=0)
    per_audio_hour = forms.DecimalField(min_value=0, max_digits=14, decimal_places=4, initial=0)
    per_engine_hour = forms.DecimalField(min_value=0, max_digits=14, decimal_places=4, initial=0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.label = str(Price._meta.get_field(name).verbose_name).capitalize()  # type: ignore[union-attr]
        self.fields["plan"].empty_label = _("Every plan without a price of its own")  # type: ignore[attr-defined]
        self.fields["valid_from"].initial = timezone.now().date().replace(day=1)


def _set(by: Operator, objects: Sequence[Price], values: dict[str, Any]) -> Text:
    prices.set_price(by=by, **values)
    return _("Saved. Reports of days before it stay as they are.")


def _delete(by: Operator, objects: Sequence[Price], values: dict[str, Any]) -> Text:
    for price in objects:
        prices.delete_price(by=by, price_id=price.pk)
    return _("Deleted.")


@admin.register(Price)
class PriceAdmin(PanelAdmin):
    """What use costs."""

    intro = gettext_lazy(
        "What use costs, for the reports. A new line holds from its day on; earlier days keep theirs."
    )
    list_display = [
        "subject",
        "valid_from",
        "per_million_characters",
        "per_audio_hour",
        "per_engine_hour",
        "created_by",
        moment("created_at", gettext_lazy("made")),
    ]
    list_select_related = ["plan", "created_by"]
    id_columns = []
    ordering = ["-valid_from"]
    facts = [
        "subject",
        "valid_from",
        "per_million_characters",
        "per_audio_hour",
        "per_engine_hour",
        "created_by",
    ]
    operations = [
        Operation(
            "new",
            gettext_lazy("Set a price"),
            prices.PERMISSION,
            _set,
            form=PriceForm,
            alone=True,
            icon="plus",
        ),
        Operation(
            "delete",
            gettext_lazy("Delete"),
            prices.PERMISSION,
            _delete,
            form=OperationForm,
            danger=True,
            icon="trash",
            explain=gettext_lazy("The line before it holds on, also for days that are past."),
        ),
    ]

    @admin.display(description=gettext_lazy("plan"), ordering="plan__name")
    def subject(self, price: Price) -> str:
        """The plan, or every other one."""
        return price.plan.name if price.plan else _("every plan without its own")


class RuleForm(OperationForm):
    """When to tell whom."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rule = self.objects[0] if self.objects else AlertRule(percent=80)
        self.fields["team"] = forms.CharField(
            label=_("Team"),
            required=False,
            initial=rule.team.name if rule.team else "",
            help_text=_("Empty: every team."),
        )
        self.fields["percent"] = forms.IntegerField(
            label=_("When so many percent are taken"), min_value=1, max_value=100, initial=rule.percent
        )
        self.fields["tell_owners"] = forms.BooleanField(
            label=_("Tell the team's owners and admins"), required=False, initial=rule.tell_owners
        )
        self.fields["emails"] = forms.CharField(
            label=_("And these addresses"), required=False, initial=", ".join(rule.emails)
        )
        self.fields["webhook_url"] = forms.URLField(
            label=_("And this webhook"), required=False, initial=rule.webhook_url, assume_scheme="https"
        )
        self.fields["enabled"] = forms.BooleanField(label=_("On"), required=False, initial=rule.enabled)
        for name in ("team", "percent", "emails", "webhook_url"):
            self.fields[name].widget.attrs["class"] = "input"

    def clean_team(self) -> Team | None:
        """By name or id."""
        name = str(self.cleaned_data["team"]).strip()
        if not name:
            return None
        try:
            team = teams.named(name)
        except InvalidInput as error:
            raise forms.ValidationError(str(error)) from None
        if team is None:
            raise forms.ValidationError(_("There is no team called so."))
        return team


def _save(by: Operator, objects: Sequence[AlertRule], values: dict[str, Any]) -> Text:
    emails = values.pop("emails").replace(";", ",").split(",")
    alerts.save_rule(by=by, rule_id=objects[0].pk if objects else None, emails=emails, **values)
    return _("Saved.")


def _delete_rule(by: Operator, objects: Sequence[AlertRule], values: dict[str, Any]) -> Text:
    for rule in objects:
        alerts.delete_rule(by=by, rule_id=rule.pk)
    return _("Deleted.")


@admin.register(AlertRule)
class AlertRuleAdmin(PanelAdmin):
    """Who is told when a quota runs low."""

    intro = gettext_lazy(
        "Who is told when a team has used a share of its month: once a month for each rule and team."
    )
    list_display = [
        "percent_",
        "of_team",
        "who",
        "webhook_url",
        "enabled",
        moment("created_at", gettext_lazy("made")),
    ]
    list_select_related = ["team"]
    search_fields = ["team__name"]
    ordering = ["percent"]
    facts = [
        "percent_",
        "of_team",
        "who",
        "webhook_url",
        "webhook_secret",
        "enabled",
        "created_by",
        "created_at",
    ]
    operations = [
        Operation(
            "new", gettext_lazy("New alert"), alerts.PERMISSION, _save, form=RuleForm, alone=True, icon="plus"
        ),
        Operation("change", gettext_lazy("Change"), alerts.PERMISSION, _save, form=RuleForm),
        Operation(
            "delete",
            gettext_lazy("Delete"),
            alerts.PERMISSION,
            _delete_rule,
            form=OperationForm,
            danger=True,
            icon="trash",
            bulk=True,
        ),
    ]

    @admin.display(description=gettext_lazy("at"), ordering="percent")
    def percent_(self, rule: AlertRule) -> str:
        """In percent."""
        return f"{rule.percent} %"

    @admin.display(description=gettext_lazy("team"))
    def of_team(self, rule: AlertRule) -> str:
        """One, or each."""
        return rule.team.name if rule.team else _("every team")

    @admin.display(description=gettext_lazy("told"))
    def who(self, rule: AlertRule) -> str:
        """Owners and addresses."""
        return ", ".join(([_("owners")] if rule.tell_owners else []) + rule.emails) or "—"

    def tables(self, request: Any, obj: AlertRule) -> list[Table]:
        """What it raised."""
        raised = Alert.objects.filter(rule=obj).select_related("team").order_by("-created_at")[:50]
        rows = [
            [
                link(one.team),
                one.period_start,
                number(one.taken),
                number(one.limit),
                _state(one.email_state),
                _state(one.webhook_state),
            ]
            for one in raised
        ]
        columns = [_("Team"), _("Month"), _("Taken"), _("Of"), _("E-mail"), _("Webhook")]
        return [Table(_("Raised"), columns, rows, _("None so far."))]


def _state(state: str) -> SafeString | str:
    if not state:
        return "—"
    return badge(_("sent"), "good") if state == "sent" else badge(state, "warn")


panel().add_entry(
    Entry(
        "usage", "admin:accounts_price_changelist", gettext_lazy("Prices"), "card", "accounts.view_price", 50
    )
)
panel().add_entry(
    Entry(
        "usage",
        "admin:accounts_alertrule_changelist",
        gettext_lazy("Alerts"),
        "bell",
        "accounts.view_alertrule",
        60,
    )
)
