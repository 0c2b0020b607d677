"""What waits and why, what runs where, what failed and trying it again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import object_url
from accounts.errors import InvalidInput
from accounts.models import Team
from accounts.panel.site import Entry, Page, operator, panel, render_page
from synthesis.services import operations, overview, waiting

VIEW = "synthesis.view_synthesisrequest"
#: Hours that the page of failures can look back.
RANGES = (1, 24, 168)


def queue_page(request: HttpRequest) -> HttpResponse:
    """By team, then what runs, then what waits; it renews itself every five seconds."""
    team = _team(request.GET.get("team", ""))
    now = timezone.now()
    running = waiting.running()
    for one in running:
        one.seconds = (now - one.started_at).total_seconds() if one.started_at else 0  # type: ignore[attr-defined]
        one.address = object_url(one)  # type: ignore[attr-defined]
    queued = waiting.queued(team=team.pk if team else None)
    for one in queued:
        one.seconds = (now - one.created_at).total_seconds()  # type: ignore[attr-defined]
        one.address = object_url(one)  # type: ignore[attr-defined]
    context: dict[str, Any] = {
        "title": _("Queue"),
        "now": overview.now(),
        "teams": waiting.by_team(),
        "running": running,
        "queued": queued,
        "team": team,
        "may_operate": operator(request).can(operations.PERMISSION),
        "may_see_workers": operator(request).can("synthesis.change_worker"),
    }
    template = "admin/parts/queue.html" if getattr(request, "htmx", False) else "admin/queue.html"
    return render_page(request, template, context)


def _team(given: str) -> Team | None:
    try:
        return Team.objects.filter(pk=UUID(given)).first() if given else None
    except ValueError:
        return None


def failures_page(request: HttpRequest) -> HttpResponse:
    """Failures by cause; a POST tries a cause again."""
    hours = _hours(request.POST.get("hours") or request.GET.get("hours") or "24")
    if request.method == "POST":
        done, refused, why = operations.retry_all(
            by=operator(request), code=request.POST.get("code", ""), hours=hours
        )
        messages.success(request, _("Submitted again: %(done)d.") % {"done": done})
        if refused:
            said = _("Not submitted: %(refused)d. The last reason: %(why)s") % {
                "refused": refused,
                "why": why,
            }
            messages.warning(request, said)
        return redirect(f"{reverse('admin:failures')}?hours={hours}")
    return render_page(
        request,
        "admin/failures.html",
        {
            "title": _("Failures"),
            "failures": waiting.failures(hours=hours),
            "hours": hours,
            "ranges": [(1, _("1 hour")), (24, _("24 hours")), (168, _("7 days"))],
            "may_operate": operator(request).can(operations.PERMISSION),
        },
    )


def _hours(given: str) -> int:
    if given not in {str(hours) for hours in RANGES}:
        raise InvalidInput(_("Choose one of the ranges."), code="range_invalid", param="hours")
    return int(given)


panel().add_page(
    Page("queue/", "queue", queue_page, VIEW),
    Entry("work", "admin:queue", gettext_lazy("Queue"), "queue", VIEW, 10),
)
panel().add_page(
    Page("failures/", "failures", failures_page, VIEW),
    Entry("work", "admin:failures", gettext_lazy("Failures"), "alert", VIEW, 40),
)
