"""Checks of the ledger: what was found, and looking now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.admin.cells import badge, moment, number
from accounts.effects import Text
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table
from accounts.panel.operations import Operation, OperationForm
from accounts.panel.site import Entry, panel
from synthesis.models import LedgerCheck
from synthesis.services import verification


def _run(by: Operator, objects: Sequence[LedgerCheck], values: dict[str, Any]) -> Text:
    made = verification.record(by=by, result=verification.verify())
    return _words(made)


def _words(check: LedgerCheck) -> str:
    if not check.differences:
        return _("Everything adds up: no difference.")
    return ngettext("%(n)s difference.", "%(n)s differences.", check.differences) % {
        "n": number(check.differences)
    }


@admin.register(LedgerCheck)
class LedgerCheckAdmin(PanelAdmin):
    """Comparisons of ledger, counters and requests."""

    intro = gettext_lazy(
        "Every night each entry of the ledger is compared with the counters and the requests."
    )
    list_display = [
        moment("started_at", gettext_lazy("when")),
        "outcome",
        "entries_",
        "counters_",
        "requests_",
        "took",
        "trigger",
    ]
    ordering = ["-started_at"]
    id_columns = []
    facts = ["started_at", "outcome", "entries_", "counters_", "requests_", "took", "trigger"]
    operations = [
        Operation(
            "run",
            gettext_lazy("Check now"),
            "synthesis.view_ledgercheck",
            _run,
            form=OperationForm,
            alone=True,
            icon="check",
            explain=gettext_lazy(
                "It reads everything once: seconds, or minutes with many millions of entries."
            ),
        )
    ]

    @admin.display(description=gettext_lazy("result"))
    def outcome(self, check: LedgerCheck) -> SafeString:
        """In words."""
        return badge(_words(check), "bad" if check.differences else "good")

    @admin.display(description=gettext_lazy("ledger entries"))
    def entries_(self, check: LedgerCheck) -> str:
        """With separators."""
        return number(check.entries)

    @admin.display(description=gettext_lazy("counters"))
    def counters_(self, check: LedgerCheck) -> str:
        """With separators."""
        return number(check.counters)

    @admin.display(description=gettext_lazy("requests"))
    def requests_(self, check: LedgerCheck) -> str:
        """With separators."""
        return number(check.requests)

    @admin.display(description=gettext_lazy("took"))
    def took(self, check: LedgerCheck) -> str:
        """Seconds."""
        return f"{(check.finished_at - check.started_at).total_seconds():.1f} s"

    def tables(self, request: HttpRequest, obj: LedgerCheck) -> list[Table]:
        """Each difference."""
        if not obj.differences:
            return []
        rows = [
            [
                one["kind"],
                one["team"] or "—",
                one["object"] or one["user"] or one["api_key"] or "—",
                one["expected"],
                one["found"],
            ]
            for one in obj.details
        ]
        columns = [_("Kind"), _("Team"), _("Object"), _("Expected"), _("Found")]
        return [Table(_("Differences"), columns, rows)]


panel().add_entry(
    Entry(
        "usage",
        "admin:synthesis_ledgercheck_changelist",
        gettext_lazy("Checks of the ledger"),
        "check",
        "synthesis.view_ledgercheck",
        40,
    )
)
