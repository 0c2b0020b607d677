"""The audit log."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy

from accounts.admin.cells import moment
from accounts.models import AuditEntry
from accounts.names import team_names
from accounts.panel.modeladmin import PanelAdmin
from accounts.panel.site import Entry, panel


@admin.register(AuditEntry)
class AuditEntryAdmin(PanelAdmin):
    """Who did what. Read-only, as the table is."""

    intro = gettext_lazy("Who did what, and when. Nothing here can be changed or deleted.")
    list_display = [
        moment("created_at", gettext_lazy("when")),
        "actor_name",
        "action",
        "target",
        "team",
        "details",
    ]
    search_fields = ["actor_name", "action"]
    search_help_text = gettext_lazy("E-mail address, action, team or id")
    id_columns = ["id", "team_id", "actor_id", "api_key_id"]
    team_column = "team_id"
    ordering = ["-id"]
    sortable_by = ()
    date_hierarchy = None
    facts = ["created_at", "actor_name", "action", "target", "team", "api_key_id", "all_details"]

    def prepare(self, rows: list[Any]) -> None:
        """Names of teams, once for the page."""
        names = team_names(one.team_id for one in rows)
        for one in rows:
            one.team_name = names.get(one.team_id, "")

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Also by the id of what it was done to."""
        found, distinct = super().get_search_results(request, queryset, search_term)
        term = search_term.strip()
        if term and len(term) == 36:
            found = found | queryset.filter(target_id=term)
        return found, distinct

    @admin.display(description=gettext_lazy("object"))
    def target(self, entry: AuditEntry) -> str:
        """Kind and id."""
        return f"{entry.target_type} {entry.target_id}".strip() or "—"

    @admin.display(description=gettext_lazy("team"))
    def team(self, entry: Any) -> str:
        """Its name while it exists."""
        if entry.team_id is None:
            return "—"
        if not hasattr(entry, "team_name"):
            self.prepare([entry])
        return entry.team_name or str(entry.team_id)

    @admin.display(description=gettext_lazy("details"))
    def details(self, entry: AuditEntry) -> str:
        """In one line."""
        text = json.dumps(entry.data, ensure_ascii=False)
        return text if len(text) <= 120 else text[:119] + "…"

    @admin.display(description=gettext_lazy("details"))
    def all_details(self, entry: AuditEntry) -> SafeString:
        """Whole."""
        return format_html('<pre class="code">{}</pre>', json.dumps(entry.data, ensure_ascii=False, indent=2))


panel().add_entry(
    Entry(
        "system",
        "admin:accounts_auditentry_changelist",
        gettext_lazy("Audit log"),
        "shield",
        "accounts.view_auditentry",
        10,
    )
)
