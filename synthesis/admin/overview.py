"""The first page of the panel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.panel.site import operator, panel, render_page
from synthesis.models import LedgerCheck, MisuseReport
from synthesis.services import overview


def index(request: HttpRequest) -> HttpResponse:
    """How things stand; each part only for whom it is for."""
    who = operator(request)
    context: dict[str, Any] = {"title": _("Overview")}
    attention: list[tuple[str, str, str]] = []
    if who.can("synthesis.view_ledgercheck"):
        attention += _ledger()
    if who.can("synthesis.view_misusereport"):
        attention += _misuse()
    if who.can("synthesis.view_worker"):
        state = overview.now()
        attention += _attention(state)
        context["now"] = state
    context["attention"] = attention
    return render_page(request, "admin/overview.html", context)


def _ledger() -> Iterator[tuple[str, str, str]]:
    latest = LedgerCheck.objects.order_by("-started_at").first()
    if latest is not None and latest.differences:
        yield (
            _("The ledger does not add up: %(n)d differences.") % {"n": latest.differences},
            reverse("admin:synthesis_ledgercheck_change", args=[latest.pk]),
            "bad",
        )


def _misuse() -> Iterator[tuple[str, str, str]]:
    waiting = MisuseReport.objects.filter(decided_at=None).count()
    if waiting:
        yield (
            ngettext(
                "%(n)d report of misuse waits for a decision.",
                "%(n)d reports of misuse wait for a decision.",
                waiting,
            )
            % {"n": waiting},
            reverse("admin:synthesis_misusereport_changelist") + "?decided_at=0",
            "warn",
        )


def _attention(state: overview.Now) -> Iterator[tuple[str, str, str]]:
    """(words, where to look, how bad)."""
    workers = reverse("admin:synthesis_worker_changelist")
    if state.workers == 0:
        yield _("No worker is alive: requests wait until one is started."), workers, "bad"
    for name in state.silent:
        yield _("The worker %(name)s has fallen silent.") % {"name": name}, workers, "warn"
    if state.longest_wait > overview.LONG_WAIT.total_seconds():
        yield (
            _("A request has waited for more than %(minutes)d minutes.")
            % {"minutes": state.longest_wait // 60},
            reverse("admin:synthesis_synthesisrequest_changelist") + "?status__exact=queued",
            "warn",
        )
    if state.failed_today:
        yield (
            _("%(failed)d requests failed within a day.") % {"failed": state.failed_today},
            reverse("admin:synthesis_synthesisrequest_changelist") + "?status__exact=failed",
            "bad" if state.failure_share > 0.05 else "warn",
        )


panel().set_index(index)
