"""Teams, their limits and their members."""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import extensions
from accounts.admin.cells import anchor, badge, link, moment, number
from accounts.admin.changes import AdjustForm, GrantForm
from accounts.admin.limit_forms import (
    LimitsForm,
    adjust,
    change_limits,
    give_grant,
    preview_grant,
    preview_limits,
)
from accounts.admin.plans import changes_table
from accounts.effects import Text
from accounts.models import ApiKey, AuditEntry, Grant, Membership, Plan, QuotaChange, Team, UsageCounter
from accounts.models.users import EMAIL_CHARACTERS
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set, short_time
from accounts.panel.operations import Operation, OperationForm, ReasonForm
from accounts.panel.site import Entry, panel
from accounts.services import grants, limits, people, quotas, suspension


class SuspendForm(ReasonForm):
    """Why, and what becomes of what waits."""

    cancel_waiting = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["cancel_waiting"].label = _(
            "Also cancel what waits (it stays until the team is restored otherwise)"
        )


class TeamForm(OperationForm):
    """Name and time zone."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        team = self.objects[0]
        zones = sorted(zoneinfo.available_timezones())
        self.fields["name"] = forms.CharField(
            label=_("Name"),
            max_length=100,
            initial=team.name,
            widget=forms.TextInput(attrs={"class": "input"}),
        )
        self.fields["time_zone"] = forms.ChoiceField(
            label=_("Time zone"),
            choices=[(zone, zone) for zone in zones],
            initial=team.time_zone,
            help_text=_("The team's month begins at midnight there."),
            widget=forms.Select(attrs={"class": "input"}),
        )


class NewTeamForm(OperationForm):
    """A team and who owns it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        plans = [(str(plan.pk), plan.name) for plan in Plan.objects.order_by("name")]
        zones = [(zone, zone) for zone in sorted(zoneinfo.available_timezones())]
        self.fields["name"] = forms.CharField(label=_("Name"), max_length=100)
        self.fields["plan"] = forms.ChoiceField(label=_("Plan"), choices=plans)
        self.fields["owner"] = forms.EmailField(
            label=_("E-mail address of its owner"),
            max_length=EMAIL_CHARACTERS,
            help_text=_("Gets an invitation."),
        )
        self.fields["time_zone"] = forms.ChoiceField(label=_("Time zone"), choices=zones, initial="UTC")
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"


def _create(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> Text:
    team, address = people.create_team(
        by=by,
        name=values["name"],
        plan=Plan.objects.get(pk=values["plan"]),
        owner_email=values["owner"],
        time_zone=values["time_zone"],
    )
    if not address:
        return _("“%(team)s” is made; %(owner)s owns it.") % {"team": team.name, "owner": values["owner"]}
    return _("“%(team)s” is made. The invitation was sent; its link: %(link)s") % {
        "team": team.name,
        "link": address,
    }


def _suspend(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> Text:
    for team in objects:
        suspension.suspend_team(
            by=by, team_id=team.pk, reason=values["reason"], cancel_waiting=values["cancel_waiting"]
        )
    return _("Suspended. Keys stop at once; what is being spoken right now is finished.")


def _restore(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> Text:
    for team in objects:
        suspension.restore_team(by=by, team_id=team.pk, reason=values["reason"])
    return _("Restored.")


def _change(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> Text:
    people.change_team(by=by, team_id=objects[0].pk, name=values["name"], time_zone=values["time_zone"])
    return _("Saved.")


@admin.register(Team)
class TeamAdmin(PanelAdmin):
    """The tenants."""

    list_display = [
        "name",
        "plan",
        "state",
        "used",
        "allowed",
        "people",
        moment("created_at", gettext_lazy("made")),
    ]
    list_filter = [
        "plan",
        is_set("suspended_at", gettext_lazy("state"), gettext_lazy("suspended"), gettext_lazy("active")),
    ]
    list_select_related = ["plan", "quota"]
    search_fields = ["name", "memberships__user__email"]
    ordering = ["name"]
    facts = ["name", "plan", "time_zone", "created_at", "suspended_at", "id"]
    extra_template = "admin/parts/limits.html"
    operations = [
        Operation(
            "new",
            gettext_lazy("New team"),
            "accounts.add_team",
            _create,
            form=NewTeamForm,
            alone=True,
            icon="plus",
        ),
        Operation(
            "limits",
            gettext_lazy("Change plan and limits"),
            "accounts.change_teamquota",
            change_limits,
            form=LimitsForm,
            preview=preview_limits,
            explain=gettext_lazy("An empty number means: as the plan says."),
            bulk=True,
        ),
        Operation(
            "grant",
            gettext_lazy("Grant characters"),
            grants.PERMISSION,
            give_grant,
            form=GrantForm,
            preview=preview_grant,
            as_shown=False,
            explain=gettext_lazy(
                "Once, on top of the monthly limit. What is left at the end of the month goes on to the next one."
            ),
            bulk=True,
            icon="plus",
        ),
        Operation(
            "adjust",
            gettext_lazy("Correct this month"),
            grants.PERMISSION,
            adjust,
            form=AdjustForm,
            preview=preview_grant,
            as_shown=False,
            explain=gettext_lazy("Characters more or fewer in this month only."),
        ),
        Operation(
            "change",
            gettext_lazy("Name and time zone"),
            "accounts.change_team",
            _change,
            form=TeamForm,
        ),
        Operation(
            "suspend",
            gettext_lazy("Suspend"),
            suspension.TEAM_PERMISSION,
            _suspend,
            form=SuspendForm,
            applies=lambda team: team.suspended_at is None,
            explain=gettext_lazy(
                "Keys and pages stop at once. What is being spoken is finished, what waits stays where it is."
            ),
            bulk=True,
            danger=True,
            icon="pause",
        ),
        Operation(
            "restore",
            gettext_lazy("Restore"),
            suspension.TEAM_PERMISSION,
            _restore,
            applies=lambda team: team.suspended_at is not None,
            bulk=True,
            icon="play",
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Team]:
        """With the number of members."""
        members = (
            Membership.objects.filter(team=OuterRef("pk"))
            .order_by()
            .values("team")
            .annotate(n=Count("pk"))
            .values("n")
        )
        return super().get_queryset(request).annotate(member_count=Coalesce(Subquery(members), 0))

    def prepare(self, rows: list[Any]) -> None:
        """This month of each team, once for the page. Teams are in different months for some hours at most."""
        months = {team.pk: limits.period(team).key for team in rows}
        counters = {
            (counter.team_id, counter.period_start): counter
            for counter in UsageCounter.objects.filter(
                team__in=rows, user=None, api_key=None, period_start__in=set(months.values())
            )
        }
        for team in rows:
            counter = counters.get((team.pk, months[team.pk]))
            base = limits.of_team(team).characters_per_month or 0
            team.month_used = counter.used + counter.reserved if counter else 0
            team.month_limit = max(0, base + (counter.granted if counter else 0))

    def badges(self, obj: Team) -> list[tuple[Text, str]]:
        """Whether it may work."""
        return [(_("suspended"), "bad")] if obj.suspended_at else [(_("active"), "good")]

    @admin.display(description=gettext_lazy("state"))
    def state(self, team: Team) -> SafeString:
        """Active or suspended."""
        return badge(_("suspended"), "bad") if team.suspended_at else badge(_("active"), "good")

    @admin.display(description=gettext_lazy("used this month"))
    def used(self, team: Any) -> str:
        """Characters, with what is reserved."""
        return number(team.month_used)

    @admin.display(description=gettext_lazy("limit"))
    def allowed(self, team: Any) -> str:
        """Characters of this month with grants."""
        return number(team.month_limit)

    @admin.display(description=gettext_lazy("people"), ordering="member_count")
    def people(self, team: Any) -> int:
        """How many members."""
        return int(team.member_count)

    def context(self, request: HttpRequest, obj: Team) -> dict[str, Any]:
        """Each limit: plan, own, in force, in use."""
        standing = limits.standing_of(obj)
        return {"rows": limit_rows(obj), "standing": standing, "above": _("Plan"), "own": _("Own")}

    def tables(self, request: HttpRequest, obj: Team) -> list[Table]:
        """Members with their limits, keys, grants, changes, log."""
        can = request.user.has_perm
        tables = [self._members(obj)]
        if can("accounts.view_grant"):
            active = Grant.objects.filter(team=obj, ended_at=None).select_related("team__plan", "user")
            rows = [
                [
                    link(one, number(one.characters)),
                    number(grants.left(one)),
                    short_time(one.expires_at),
                    one.reason,
                ]
                for one in active
            ]
            tables.append(
                Table(
                    _("Grants"), [_("Characters"), _("Left"), _("Expires"), _("Reason")], rows, _("None now.")
                )
            )
        if can("accounts.view_apikey"):
            keys = ApiKey.objects.filter(team=obj).select_related("user").order_by("-created_at")[:20]
            rows = [[link(key), key.user.email, short_time(key.last_used_at), _state(key)] for key in keys]
            tables.append(
                Table(_("API keys"), [_("Name"), _("Of"), _("Last used"), _("State")], rows, _("None."))
            )
        if can("accounts.view_quotachange"):
            changes = QuotaChange.objects.filter(team=obj) | QuotaChange.objects.filter(membership__team=obj)
            tables.append(changes_table(changes))
        if can("accounts.view_auditentry"):
            entries = (
                AuditEntry.objects.filter(team_id=obj.pk)
                .exclude(action="synthesis.submitted")
                .order_by("-created_at")[:15]
            )
            rows = [[f"{one.created_at:%Y-%m-%d %H:%M}", one.actor_name, one.action] for one in entries]
            tables.append(Table(_("Audit log"), [_("When"), _("Who"), _("Action")], rows))
        return tables

    def _members(self, team: Team) -> Table:
        members = (
            Membership.objects.filter(team=team).select_related("user", "quota").order_by("created_at")[:200]
        )
        counters = {
            counter.user_id: counter
            for counter in UsageCounter.objects.filter(
                team=team, api_key=None, user__isnull=False, period_start=limits.period(team).key
            )
        }
        rows = []
        for member in members:
            counter = counters.get(member.user_id)
            own = limits.of_member(member).characters_per_month
            rows.append(
                [
                    link(member, member.user.email),
                    member.get_role_display(),
                    number(counter.used + counter.reserved if counter else 0),
                    number(own) if own is not None else _("as the team"),
                ]
            )
        return Table(
            _("Members"),
            [_("Person"), _("Role"), _("Used this month"), _("Characters per month")],
            rows,
            _("Nobody."),
        )


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return _("revoked")
    return _("in use") if key.is_usable else _("expired")


def limit_rows(target: Team | Membership) -> list[dict[str, Any]]:
    """For each limit: what the level above says, the own value, what is in force, what is in use."""
    team = target if isinstance(target, Team) else target.team
    user_id = None if isinstance(target, Team) else target.user_id
    override = limits.override_of(target)
    above = team.plan if isinstance(target, Team) else limits.of_team(team)
    taken = extensions.in_use(team.pk, user_id)
    standing = limits.standing_of(target)
    if standing is not None:
        taken["characters_per_month"] = standing.used + standing.reserved
    rows = []
    for name in limits.FIELDS:
        own_value, above_value = getattr(override, name, None), getattr(above, name)
        in_force = above_value if own_value is None else own_value
        if isinstance(target, Membership) and own_value is not None:
            in_force = min(own_value, above_value)
        rows.append(
            {
                "label": quotas.LABELS[name],
                "above": above_value,
                "own": own_value,
                "in_force": standing.limit if standing and name == "characters_per_month" else in_force,
                "taken": taken.get(name),
            }
        )
    return rows


@admin.register(Membership)
class MembershipAdmin(PanelAdmin):
    """A person in a team, with limits of their own."""

    list_display = ["person", "team", "role", moment("created_at", gettext_lazy("made"))]
    list_select_related = ["team", "user"]
    list_filter = ["role"]
    search_fields = ["user__email", "user__name", "team__name"]
    id_columns = ["id", "team_id", "user_id"]
    ordering = ["team__name"]
    facts = ["person", "in_team", "role", "created_at"]
    extra_template = "admin/parts/limits.html"
    operations = [
        Operation(
            "limits",
            gettext_lazy("Change limits"),
            "accounts.change_memberquota",
            change_limits,
            form=LimitsForm,
            preview=preview_limits,
            explain=gettext_lazy("An empty number means: only the team's limit holds."),
            bulk=True,
        ),
        Operation(
            "grant",
            gettext_lazy("Grant characters"),
            grants.PERMISSION,
            give_grant,
            form=GrantForm,
            preview=preview_grant,
            as_shown=False,
            applies=lambda member: limits.of_member(member).characters_per_month is not None,
            explain=gettext_lazy("On top of this person's own limit; the team's still holds."),
            icon="plus",
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        """With what the page shows."""
        return super().get_queryset(request).select_related("team__plan", "team__quota", "user", "quota")

    @admin.display(description=gettext_lazy("person"), ordering="user__email")
    def person(self, member: Membership) -> str:
        """Their address."""
        return member.user.email

    @admin.display(description=gettext_lazy("team"))
    def in_team(self, member: Membership) -> SafeString:
        """A way to the team."""
        return anchor(member.team)

    def context(self, request: HttpRequest, obj: Membership) -> dict[str, Any]:
        """Each limit: team, own, in force, in use."""
        return {
            "rows": limit_rows(obj),
            "standing": limits.standing_of(obj),
            "above": _("Team"),
            "own": _("Own"),
        }

    def tables(self, request: HttpRequest, obj: Membership) -> list[Table]:
        """How the limits came to be."""
        if not request.user.has_perm("accounts.view_quotachange"):
            return []
        return [changes_table(QuotaChange.objects.filter(membership=obj))]


panel().add_entry(
    Entry(
        "customers", "admin:accounts_team_changelist", gettext_lazy("Teams"), "team", "accounts.view_team", 10
    )
)
