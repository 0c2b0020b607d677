"""The admin site: who gets in, what the navigation shows them, and the pages that are no list of a table.

It is Django's own admin, in this project's design. django-unfold was considered: its pages need Alpine and inline
styles, so the Content-Security-Policy would have to allow `unsafe-eval` and `unsafe-inline` for exactly those pages
whose takeover would cost the most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from django.contrib.admin import AdminSite, site
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.functional import Promise
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext_lazy as _

from accounts.errors import NotAllowed
from accounts.models import User
from accounts.operators import Operator
from accounts.services import two_factor

View = Callable[..., HttpResponseBase]


@dataclass(frozen=True, slots=True)
class Entry:
    """A place in the navigation; shown to whom `permission` is given (any member of staff when it is empty)."""

    section: str
    url_name: str
    label: str | Promise
    icon: str
    permission: str = ""
    order: int = 50


@dataclass(frozen=True, slots=True)
class Page:
    """A page of its own; `route` is below /admin/. `open` lets staff in who have not proved themselves yet."""

    route: str
    name: str
    view: View
    permission: str = ""


#: Headings of the navigation, in order.
SECTIONS: dict[str, str | Promise] = {
    "work": _("Work"),
    "customers": _("Customers"),
    "usage": _("Usage"),
    "system": _("System"),
}


class Panel(AdminSite):
    """Reached only by staff with a second factor."""

    site_header = site_title = "Chorus"
    enable_nav_sidebar = False

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        self._pages: list[Page] = []
        self._entries: list[Entry] = []
        self._index: View | None = None

    # --- What apps put here ------------------------------------------------------------------------------------

    def add_entry(self, entry: Entry) -> None:
        """Show `entry` in the navigation."""
        self._entries.append(entry)

    def add_page(self, page: Page, entry: Entry | None = None) -> None:
        """Serve `page`, and show it in the navigation when it has an `entry`."""
        self._pages.append(page)
        if entry:
            self.add_entry(entry)

    def set_index(self, view: View) -> None:
        """Make `view` the first page of the panel."""
        self._index = view

    # --- Who gets in -------------------------------------------------------------------------------------------

    def has_permission(self, request: HttpRequest) -> bool:
        """Active staff who have proved themselves by a second factor."""
        return _is_staff(request) and two_factor.is_proved(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Where Django sends whom it does not let in: on to our sign-in, then to the second factor."""
        wanted = request.GET.get("next", "")
        if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
            wanted = reverse("admin:index")
        if not request.user.is_authenticated:
            return redirect_to_login(wanted, reverse("sign_in"))
        if not _is_staff(request):
            raise NotAllowed(_("The admin panel is for the people who run this service."))
        if two_factor.is_proved(request):
            return redirect(wanted)
        return redirect(f"{reverse('admin:two_factor')}?{urlencode({'next': wanted})}")

    def logout(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """Ours as well."""
        return LogoutView.as_view()(request)

    def guarded(self, view: View, permission: str = "") -> View:
        """`view` for staff with `permission`; others get 403 and nothing of the page."""

        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            operator(request).require(permission) if permission else None
            return view(request, *args, **kwargs)

        return self.admin_view(wrapped)

    # --- Addresses ---------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's own, less what our pages replace, and the added pages before them."""
        from accounts.panel import signing

        replaced = {"password_change", "password_change_done", "view_on_site", "app_list", "autocomplete"}
        standard = [url for url in super().get_urls() if getattr(url, "name", None) not in replaced]
        return [
            path("two-factor/", signing.two_factor_page, name="two_factor"),
            path("two-factor/codes/", self.admin_view(signing.recovery_codes), name="recovery_codes"),
            *(
                path(page.route, self.guarded(page.view, page.permission), name=page.name)
                for page in self._pages
            ),
            *standard,
        ]

    def index(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        """The overview."""
        if self._index is None:
            raise Http404
        return self._index(request)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What the frame of each page needs."""
        return {
            "site_title": self.site_title,
            "site_header": self.site_header,
            "has_permission": True,
            "is_popup": False,
            "is_nav_sidebar_enabled": False,
            "navigation": self._navigation(request),
        }

    def _navigation(self, request: HttpRequest) -> list[dict[str, Any]]:
        who = operator(request)
        here = request.path
        shown: dict[str, list[dict[str, Any]]] = {section: [] for section in SECTIONS}
        for entry in sorted(self._entries, key=lambda entry: entry.order):
            if not entry.permission or who.can(entry.permission):
                url = reverse(entry.url_name)
                shown[entry.section].append(
                    {"label": entry.label, "url": url, "icon": entry.icon, "current": here.startswith(url)}
                )
        return [{"label": SECTIONS[name], "links": links} for name, links in shown.items() if links]


def panel() -> Panel:
    """The one site, typed."""
    return cast(Panel, site)


def operator(request: HttpRequest) -> Operator:
    """The member of staff who sent `request`."""
    if not isinstance(request.user, User):
        raise NotAllowed
    return Operator.person(request.user)


def _is_staff(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_staff)


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """A page in the panel's frame."""
    return render(request, template, {**site.each_context(request), **context}, status=status)
