"""The forms that change limits of teams and members."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils.translation import gettext as _

from accounts.admin.plans import reason_field, when_field
from accounts.effects import Effect, Text
from accounts.models import Membership, Plan, Team
from accounts.operators import Operator
from accounts.panel.operations import OperationForm
from accounts.services import grants, limits, quotas


class LimitsForm(OperationForm):
    """Own limits of teams or members: empty means “as the level above says”.

    For one, only what was touched is changed: a planned change does not undo what is changed until then.
    For several at once a limit stays as each has it unless it is given a number, or its box is ticked.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        many = len(self.objects) > 1
        teams = isinstance(self.objects[0], Team)
        if teams:
            choices = [(str(plan.pk), plan.name) for plan in Plan.objects.order_by("name")]
            self.fields["plan"] = forms.ChoiceField(
                label=_("Plan"),
                choices=[("", _("Leave as it is")), *choices] if many else choices,
                required=not many,
                initial=None if many else str(self.objects[0].plan_id),
                widget=forms.Select(attrs={"class": "input"}),
            )
        own = None if many else limits.override_of(self.objects[0])
        for name in limits.FIELDS:
            above = "" if many else _above(self.objects[0], name)
            self.fields[name] = forms.IntegerField(
                label=str(quotas.LABELS[name]).capitalize(),
                required=False,
                min_value=0,
                initial=getattr(own, name, None),
                widget=forms.NumberInput(attrs={"class": "input", "placeholder": above}),
            )
            if many:
                self.fields[f"set_{name}"] = forms.BooleanField(
                    label=_("As the plan says, for all of them"), required=False
                )
        self.tracked = () if many else (*(["plan"] if teams else []), *limits.FIELDS)
        self.fields["next_period"] = when_field()
        self.fields["reason"] = reason_field()

    def chosen(self, values: dict[str, Any]) -> dict[str, Any]:
        """The fields that are to be set, as `quotas.change` takes them."""
        if len(self.objects) == 1:
            return self.touched(values)
        chosen = {
            name: values[name] for name in limits.FIELDS if values[name] is not None or values[f"set_{name}"]
        }
        if values.get("plan"):
            chosen["plan"] = values["plan"]
        return chosen

    def clean(self) -> dict[str, Any]:
        """Keep what was chosen beside the raw values."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            values["chosen"] = self.chosen(values)
        return values


def _above(target: Team | Membership, name: str) -> str:
    """What holds when the field is empty."""
    if isinstance(target, Team):
        return f"{getattr(target.plan, name):,}"
    return f"{getattr(limits.of_team(target.team), name):,}"


def preview_limits(by: Operator, objects: Sequence[Any], values: dict[str, Any]) -> list[Effect]:
    """What the form would do."""
    return quotas.preview(targets=objects, values=values["chosen"])


def change_limits(by: Operator, objects: Sequence[Any], values: dict[str, Any]) -> Text:
    """Do it."""
    planned = bool(values["next_period"])
    made = quotas.change(
        by=by, targets=objects, values=values["chosen"], next_period=planned, reason=values["reason"]
    )
    if planned:
        return _("Planned: it takes effect with the next month.")
    return _("Changed. It can be undone under “Changes of limits”.") if made else _("Nothing changed.")


def _expiry(team: Team, values: dict[str, Any]) -> datetime | None:
    """The end of the chosen day where the team is."""
    day = values["expires_at"]
    return datetime.combine(day, time(23, 59, 59), ZoneInfo(team.time_zone)) if day else None


def give_grant(by: Operator, objects: Sequence[Any], values: dict[str, Any]) -> Text:
    """To a team, or to a member."""
    for target in objects:
        team, user = (target, None) if isinstance(target, Team) else (target.team, target.user)
        grants.give(
            by=by,
            team=team,
            user=user,
            characters=values["characters"],
            reason=values["reason"],
            expires_at=_expiry(team, values),
        )
    return _("Granted: %(characters)s characters.") % {"characters": f"{values['characters']:,}"}


def preview_grant(by: Operator, objects: Sequence[Any], values: dict[str, Any]) -> list[Effect]:
    """What can be used this month before and after."""
    return [_month(target, values["characters"]) for target in objects]


def adjust(by: Operator, objects: Sequence[Any], values: dict[str, Any]) -> Text:
    """Correct this month."""
    for target in objects:
        team, user = (target, None) if isinstance(target, Team) else (target.team, target.user)
        grants.adjust(by=by, team=team, user=user, characters=values["characters"], reason=values["reason"])
    return _("Adjusted.")


def _month(target: Team | Membership, characters: int) -> Effect:
    standing = limits.standing_of(target)
    if standing is None:
        return Effect(str(target), _("characters of this month"), _("no limit of their own"), "—")
    # What was taken away beyond zero counts: it is not shown, and comes first.
    after = max(0, limits.allowance_of(target) + characters)
    return Effect(
        str(target),
        _("characters of this month"),
        _("%(limit)s, %(left)s left") % {"limit": f"{standing.limit:,}", "left": f"{standing.remaining:,}"},
        _("%(limit)s, %(left)s left")
        % {"limit": f"{after:,}", "left": f"{max(0, after - standing.used - standing.reserved):,}"},
    )
