"""Pools, and the teams in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import link, moment
from accounts.admin.teams import TeamAdmin
from accounts.effects import Effect, Text
from accounts.models import Team
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation, OperationForm, ReasonForm
from accounts.panel.site import Entry, panel
from synthesis.models import Pool, TeamPool, Worker
from synthesis.services import pools


class PoolForm(OperationForm):
    """A name and what it is for."""

    name = forms.CharField(max_length=32)
    note = forms.CharField(max_length=200, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = _("Name")
        self.fields["name"].help_text = _(
            "Small letters, digits, hyphens. Its workers are started with CHORUS_POOL=name."
        )
        self.fields["note"].label = _("Note")


class AssignForm(ReasonForm):
    """Which pool."""

    field_order = ["pool", "reason"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            ("", _("None: the workers that all share")),
            *((name, name) for name in pools.names() if name),
        ]
        self.fields["pool"] = forms.ChoiceField(
            label=_("Pool"),
            choices=choices,
            required=False,
            initial=_pool_of(self.objects[0]) if len(self.objects) == 1 else "",
            widget=forms.Select(attrs={"class": "input"}),
        )
        self.order_fields(self.field_order)


def _pool_of(team: Team) -> str:
    return TeamPool.objects.filter(team=team).values_list("pool_id", flat=True).first() or ""


def _create(by: Operator, objects: Sequence[Pool], values: dict[str, Any]) -> Text:
    pool = pools.create(by=by, name=values["name"], note=values["note"])
    return _("Made. Start workers for it with CHORUS_POOL=%(name)s, then put teams into it.") % {
        "name": pool.name
    }


def _delete(by: Operator, objects: Sequence[Pool], values: dict[str, Any]) -> Text:
    for pool in objects:
        pools.delete(by=by, name=pool.name)
    return _("Deleted.")


def _assign_preview(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> list[Effect]:
    wanted = values["pool"]
    alive = Worker.objects.alive().filter(pool=wanted).count()
    warning = "" if alive else _("No worker of it is alive: the team's requests would wait.")
    return [
        Effect(team.name, _("pool"), _pool_of(team) or _("none"), wanted or _("none"), warning)
        for team in objects
        if _pool_of(team) != wanted
    ]


def _assign(by: Operator, objects: Sequence[Team], values: dict[str, Any]) -> Text:
    for team in objects:
        pools.assign(by=by, team_id=team.pk, name=values["pool"], reason=values["reason"])
    return _("Saved. What is being spoken is finished where it is.")


@admin.register(Pool)
class PoolAdmin(PanelAdmin):
    """Workers that serve only some teams."""

    intro = gettext_lazy(
        "Workers that serve only some teams. Their load never touches another team's, nor the other way round."
    )
    list_display = ["name", "note", "team_count", "worker_count", moment("created_at", gettext_lazy("made"))]
    search_fields = ["name", "note"]
    id_columns = []
    ordering = ["name"]
    facts = ["name", "note", "created_at"]
    operations = [
        Operation(
            "new", gettext_lazy("New pool"), pools.PERMISSION, _create, form=PoolForm, alone=True, icon="plus"
        ),
        Operation(
            "delete",
            gettext_lazy("Delete"),
            pools.PERMISSION,
            _delete,
            form=OperationForm,
            danger=True,
            icon="trash",
            explain=gettext_lazy("Possible only while no team is in it."),
        ),
    ]

    @admin.display(description=gettext_lazy("teams"))
    def team_count(self, pool: Pool) -> int:
        """How many are in it."""
        return pool.teams.count()

    @admin.display(description=gettext_lazy("workers alive"))
    def worker_count(self, pool: Pool) -> int:
        """How many serve it now."""
        return Worker.objects.alive().filter(pool=pool.name).count()

    def tables(self, request: HttpRequest, obj: Pool) -> list[Table]:
        """Its teams and workers."""
        teams = TeamPool.objects.filter(pool=obj).select_related("team").order_by("team__name")
        workers = Worker.objects.filter(pool=obj.name).order_by("name")
        return [
            Table(_("Teams"), [_("Team")], [[link(one.team)] for one in teams], _("None.")),
            Table(
                _("Workers"),
                [_("Name"), _("State")],
                [[link(one), one.get_state_display()] for one in workers],
                _("None: requests of its teams wait."),
            ),
        ]


TeamAdmin.operations = [
    *TeamAdmin.operations,
    Operation(
        "pool",
        gettext_lazy("Pool"),
        pools.PERMISSION,
        _assign,
        form=AssignForm,
        preview=_assign_preview,
        explain=gettext_lazy("Only the workers of its pool speak for a team."),
        bulk=True,
        icon="server",
    ),
]

panel().add_entry(
    Entry("work", "admin:synthesis_pool_changelist", gettext_lazy("Pools"), "team", "synthesis.view_pool", 25)
)
