"""Usage counters and the ledger: read-only, searchable to the entry."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, moment, number
from accounts.models import LedgerEntry, UsageCounter
from accounts.names import emails, team_names
from accounts.panel.modeladmin import PanelAdmin
from accounts.panel.site import Entry, panel


@admin.register(UsageCounter)
class UsageCounterAdmin(PanelAdmin):
    """Characters of each month."""

    intro = gettext_lazy(
        "Characters of a month: of a team, of a person in it, of a key. The ledger says why."
    )
    list_display = ["subject", "period_start", "used_", "reserved_", "granted_", "allowance_"]
    list_filter = ["period_start"]
    list_select_related = ["team", "user", "api_key"]
    search_fields = ["team__name", "user__email", "api_key__name"]
    id_columns = ["id", "team_id", "user_id", "api_key_id"]
    ordering = ["-period_start", "-used"]
    facts = ["of_team", "user", "api_key", "period_start", "used_", "reserved_", "granted_", "allowance_"]

    @admin.display(description=gettext_lazy("of"))
    def subject(self, counter: UsageCounter) -> str:
        """The team, and whom in it."""
        if counter.user:
            return f"{counter.team} · {counter.user.email}"
        if counter.api_key:
            return f"{counter.team} · {counter.api_key.name}"
        return str(counter.team)

    @admin.display(description=gettext_lazy("team"))
    def of_team(self, counter: UsageCounter) -> SafeString:
        """A way to the team."""
        return anchor(counter.team)

    @admin.display(description=gettext_lazy("used"), ordering="used")
    def used_(self, counter: UsageCounter) -> str:
        """With separators."""
        return number(counter.used)

    @admin.display(description=gettext_lazy("reserved"), ordering="reserved")
    def reserved_(self, counter: UsageCounter) -> str:
        """With separators."""
        return number(counter.reserved)

    @admin.display(description=gettext_lazy("granted"), ordering="granted")
    def granted_(self, counter: UsageCounter) -> str:
        """With separators."""
        return number(counter.granted)

    @admin.display(description=gettext_lazy("allowance"), ordering="allowance")
    def allowance_(self, counter: UsageCounter) -> str:
        """At the latest reservation."""
        return number(counter.allowance) if counter.allowance is not None else _("no limit of its own")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(PanelAdmin):
    """Each reservation, settlement, release, grant and correction."""

    intro = gettext_lazy("Why each counter is what it is. Entries are only ever added.")
    list_display = [
        moment("created_at", gettext_lazy("when")),
        "kind_",
        "characters_",
        "team",
        "person",
        "cause",
        "period_start",
    ]
    list_filter = ["kind", "period_start"]
    search_help_text = gettext_lazy("Team, person, or the id of a request, team, person, key, grant or entry")
    id_columns = ["id", "request_id", "team_id", "user_id", "api_key_id", "grant_id"]
    team_column = "team_id"
    user_column = "user_id"
    ordering = ["-id"]
    sortable_by = ()
    facts = [
        "created_at",
        "kind_",
        "characters_",
        "team",
        "person",
        "api_key_id",
        "request_id",
        "grant_id",
        "period_start",
        "note",
        "id",
    ]

    def prepare(self, rows: list[Any]) -> None:
        """Names of teams and people, once for the page."""
        teams, people = team_names(one.team_id for one in rows), emails(one.user_id for one in rows)
        for one in rows:
            one.team_name = teams.get(one.team_id, "")
            one.user_email = people.get(one.user_id, "")

    @admin.display(description=gettext_lazy("kind"))
    def kind_(self, entry: LedgerEntry) -> SafeString:
        """As a coloured word."""
        colour = {"settle": "good", "release": "", "reserve": "accent", "grant": "warn", "adjust": "warn"}
        return badge(entry.get_kind_display(), colour[entry.kind])

    @admin.display(description=gettext_lazy("characters"))
    def characters_(self, entry: LedgerEntry) -> str:
        """With separators."""
        return number(entry.characters)

    @admin.display(description=gettext_lazy("team"))
    def team(self, entry: Any) -> str:
        """Its name while it exists."""
        if not hasattr(entry, "team_name"):
            self.prepare([entry])
        return entry.team_name or str(entry.team_id)

    @admin.display(description=gettext_lazy("person"))
    def person(self, entry: Any) -> str:
        """Their address while they exist."""
        if entry.user_id is None:
            return "—"
        if not hasattr(entry, "user_email"):
            self.prepare([entry])
        return entry.user_email or str(entry.user_id)

    @admin.display(description=gettext_lazy("because of"))
    def cause(self, entry: LedgerEntry) -> str:
        """The request, grant or note."""
        return str(entry.request_id or entry.note or entry.grant_id or "—")


panel().add_entry(
    Entry(
        "usage",
        "admin:accounts_ledgerentry_changelist",
        gettext_lazy("Ledger"),
        "card",
        "accounts.view_ledgerentry",
        20,
    )
)
panel().add_entry(
    Entry(
        "usage",
        "admin:accounts_usagecounter_changelist",
        gettext_lazy("Counters"),
        "studio",
        "accounts.view_usagecounter",
        30,
    )
)
