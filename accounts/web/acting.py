"""The end of acting as somebody else."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.services import impersonation


@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """Back to one's own session; the panel asks for the second factor anew."""
    impersonation.end(request)
    return redirect("admin:index")
