"""What concerns a session in which an operator acts as somebody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _

from accounts.acting import acting_by
from accounts.errors import NotAllowed
from accounts.services import impersonation

#: What is a person's alone: how they sign in, and keys that would outlive the visit.
_OWN = ("/account/", "/team/keys/", "/password/")


class ActingAs:
    """Name the operator to the audit log, keep them from what is the person's alone, and end the session in time.

    It costs sessions nothing that they do not pay anyway, and requests without one a look at a cookie.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if iscoroutinefunction(self.get_response):
            return self._later(request)
        acting = impersonation.of(request) if _has_session(request) else None
        if acting is None:
            return self.get_response(request)
        if acting.is_over:
            logout(request)
            return redirect("sign_in")
        token = acting_by.set(acting.operator)
        try:
            return self.get_response(request)
        finally:
            acting_by.reset(token)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        """The same under ASGI."""
        kept = await request.session.aget(impersonation.SESSION) if _has_session(request) else None
        acting = impersonation.parse(kept)
        if acting is not None and acting.is_over:
            await sync_to_async(logout)(request)
            return redirect("sign_in")
        token = acting_by.set(acting.operator if acting else "")
        try:
            return await self.get_response(request)  # type: ignore[misc]
        finally:
            acting_by.reset(token)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """Refuse what is the person's alone; as a page, since an error raised here would be taken for a bug."""
        if not (acting_by.get() and request.method == "POST" and request.path.startswith(_OWN)):
            return None
        template = "errors/fragment.html" if request.headers.get("hx-request") else "errors/error.html"
        error = NotAllowed(_OWN_ALONE, code="acting_as")
        return render(request, template, {"error": error}, status=error.status)


_OWN_ALONE = _("You act as somebody else: this only they can do themselves.")


def _has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES
