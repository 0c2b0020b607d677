"""The second step of signing in to the panel: enrolment at the first time, a code from then on."""

from __future__ import annotations

import segno
from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.errors import ChorusError, NotAllowed
from accounts.models import User
from accounts.panel.site import render_page
from accounts.services import two_factor
from accounts.web.forms import Styled
from accounts.web.shell import add_error, to_sign_in


class CodeForm(Styled, forms.Form):
    """Six digits, or a recovery code."""

    code = forms.CharField(
        label=_("Code"),
        max_length=20,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "one-time-code",
                "autofocus": True,
                "spellcheck": "false",
                "inputmode": "text",
            }
        ),
    )


@never_cache
@csrf_protect
@sensitive_post_parameters("code")
def two_factor_page(request: HttpRequest) -> HttpResponse:
    """Enrol, or prove oneself; then on to where one wanted to go."""
    if not request.user.is_authenticated:
        return to_sign_in(request)
    user = request.user
    if not (isinstance(user, User) and user.is_staff):
        raise NotAllowed(_("The admin panel is for the people who run this service."))
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    if not url_has_allowed_host_and_scheme(wanted, {request.get_host()}, request.is_secure()):
        wanted = reverse("admin:index")
    enrolled = two_factor.is_enrolled(user)
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            if enrolled:
                two_factor.mark(request, two_factor.verify(user, form.cleaned_data["code"]))
                return redirect(wanted)
            device, codes = two_factor.confirm(user, form.cleaned_data["code"])
        except ChorusError as error:
            add_error(form, error)
        else:
            two_factor.mark(request, device)
            return render(request, "admin/recovery_codes.html", {"codes": codes, "next": wanted})
    context = {"form": form, "next": wanted, "enrolled": enrolled}
    if not enrolled:
        device = two_factor.begin(user)
        context |= {"qr": qr(device, user), "secret": spaced(secret(device))}
    return render(request, "admin/two_factor.html", context, status=422 if form.errors else 200)


@require_POST
@never_cache
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Ten new recovery codes."""
    if not isinstance(request.user, User):
        raise NotAllowed
    codes = two_factor.renew_recovery_codes(request.user)
    return render_page(request, "admin/recovery_codes.html", {"codes": codes, "next": reverse("admin:index")})


def secret(device: TOTPDevice) -> str:
    """The device's secret, as an app takes it."""
    from base64 import b32encode

    return b32encode(device.bin_key).decode()


def spaced(value: str) -> str:
    """In groups of four, to be typed."""
    return " ".join(value[start : start + 4] for start in range(0, len(value), 4))


def qr(device: TOTPDevice, user: User) -> SafeString:
    """The QR code of the device's address, as SVG without styles."""
    from urllib.parse import quote

    label = quote(f"Chorus:{user.email}")
    address = f"otpauth://totp/{label}?secret={secret(device)}&issuer=Chorus&digits={device.digits}&period={device.step}"
    # The only variable part is encoded in the picture; segno writes attributes and no styles.
    return mark_safe(segno.make(address, error="m").svg_inline(scale=4, border=2, dark="#000", light="#fff"))  # noqa: S308
