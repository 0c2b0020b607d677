"""What keeps an account safe: the second step of signing in, sessions elsewhere, and the end of the account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.errors import ChorusError
from accounts.models import User
from accounts.panel.signing import CodeForm, qr, secret, spaced
from accounts.services import audit, personal, rates, sessions, two_factor
from accounts.web.forms import Styled
from accounts.web.shell import PersonRequest, add_error, person_page, show

_PENDING = "second_step"
#: Between the password and the code.
_PATIENCE_SECONDS = 600


class EndForm(Styled, forms.Form):
    """The password, once more."""

    password = forms.CharField(
        label=gettext_lazy("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


def ask_for_code(request: HttpRequest, user: User, target: str) -> HttpResponse:
    """The password was right; the session knows, and nobody is signed in before the code is."""
    request.session[_PENDING] = [str(user.pk), timezone.now().timestamp(), target]
    return redirect("sign_in_code")


@never_cache
@sensitive_post_parameters("code")
def code(request: HttpRequest) -> HttpResponse:
    """The second step of signing in."""
    pending = request.session.get(_PENDING)
    user = User.objects.filter(pk=pending[0], is_active=True).first() if pending else None
    if pending is None or user is None or timezone.now().timestamp() - pending[1] > _PATIENCE_SECONDS:
        request.session.pop(_PENDING, None)
        return redirect("sign_in")
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            device = two_factor.verify(user, form.cleaned_data["code"])
        except ChorusError as error:
            add_error(form, error)
        else:
            target = pending[2]
            login(request, user, "django.contrib.auth.backends.ModelBackend")
            request.session.pop(_PENDING, None)
            two_factor.mark(request, device)
            sessions.remember(request)
            rates.forgive(user.email)
            audit.record("user.signed_in", user=user, second_factor=True)
            if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
                target = "/"
            return redirect(target)
    context = {"form": form}
    return render(request, "accounts/sign_in_code.html", context, status=422 if form.errors else 200)


@person_page
@never_cache
@sensitive_post_parameters("code")
def second_factor(request: PersonRequest) -> HttpResponse:
    """Set it up, see how many recovery codes are left, turn it off."""
    user = request.user
    enrolled = two_factor.is_enrolled(user)
    form = CodeForm(request.POST if request.method == "POST" else None)
    codes: list[str] = []
    if form.is_valid():
        try:
            if enrolled and request.POST.get("do") == "renew":
                two_factor.verify(user, form.cleaned_data["code"])
                codes = two_factor.renew_recovery_codes(user)
            elif enrolled:
                two_factor.turn_off(user, form.cleaned_data["code"])
                messages.success(request, _("Two-factor sign-in is off."))
                return redirect("account")
            else:
                device, codes = two_factor.confirm(user, form.cleaned_data["code"])
                two_factor.mark(request, device)
        except ChorusError as error:
            add_error(form, error)
    context: dict[str, Any] = {"form": form, "enrolled": enrolled, "codes": codes}
    if codes:
        context["enrolled"] = True
    elif enrolled:
        context["left"] = two_factor.recovery_codes_left(user)
    else:
        device = two_factor.begin(user)
        context |= {"qr": qr(device, user), "secret": spaced(secret(device))}
    return show(request, "accounts/second_factor.html", context, status=422 if form.errors else 200)


@require_POST
@person_page
def sign_out_elsewhere(request: PersonRequest) -> HttpResponse:
    """End one other session, or all of them."""
    count = sessions.end_others(request, key=request.POST.get("session", ""))
    words = ngettext("%(n)d other session is ended.", "%(n)d other sessions are ended.", count)
    messages.success(request, words % {"n": count})
    return redirect("account")


@person_page
@never_cache
@sensitive_post_parameters("password")
def end(request: PersonRequest) -> HttpResponse:
    """Delete one's account."""
    form = EndForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            personal.erase_oneself(user=request.user, password=form.cleaned_data["password"])
        except ChorusError as error:
            add_error(form, error)
        else:
            logout(request)
            return render(request, "accounts/ended.html")
    return show(request, "accounts/end.html", {"form": form}, status=422 if form.errors else 200)
