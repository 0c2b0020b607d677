"""What was done in a team, for who may see it."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from accounts import permissions
from accounts.models import AuditEntry
from accounts.web.shell import PageRequest, show, team_page

PAGE = 50


@require_safe
@team_page
def log(request: PageRequest) -> HttpResponse:
    """The team's audit log, the newest first, searched by action, person or object."""
    request.actor.require(permissions.AUDIT_READ)
    q = " ".join(request.GET.get("q", "").replace("\0", "").split())
    entries = AuditEntry.objects.filter(team_id=request.actor.team.id).order_by("-created_at", "-id")
    if q:
        entries = entries.filter(
            Q(action__icontains=q) | Q(actor_name__icontains=q) | Q(target_id__icontains=q)
        )
    page = Paginator(entries, PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "entries": page.object_list, "q": q, "tab": "audit"}
    return show(request, "team/audit.html", context, section="team")
