"""The pages of making an account oneself."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.api.authentication import client_address
from accounts.errors import ChorusError
from accounts.models.users import EMAIL_CHARACTERS
from accounts.services import rates, sign_up
from accounts.web.forms import JoinForm, Styled
from accounts.web.shell import SESSION_TEAM, add_error


class AskForm(Styled, forms.Form):
    """The address that the link goes to."""

    email = forms.EmailField(
        label=_("E-mail address"),
        max_length=EMAIL_CHARACTERS,
        widget=forms.EmailInput(attrs={"autocomplete": "email", "autofocus": True}),
    )


class CompleteForm(JoinForm):
    """Name, password, and what the team is called."""

    team = forms.CharField(label=_("Name of your team"), max_length=100)
    field_order = ["name", "team", "password"]


@never_cache
def ask(request: HttpRequest) -> HttpResponse:
    """Ask for a link."""
    if request.user.is_authenticated:
        return redirect("studio")
    if not sign_up.is_open():
        return render(request, "accounts/sign_up_closed.html", status=404)
    form = AskForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        path = reverse("sign_up_complete", args=["-token-"]).replace("-token-", "{token}")
        try:
            rates.knock(address=client_address(request), email=form.cleaned_data["email"])
            sign_up.ask(email=form.cleaned_data["email"], address=settings.CHORUS_BASE_URL + path)
        except ChorusError as error:
            add_error(form, error)
        else:
            return render(
                request, "accounts/sign_up_sent.html", {"email": form.cleaned_data["email"].lower()}
            )
    return render(request, "accounts/sign_up.html", {"form": form}, status=422 if form.errors else 200)


@never_cache
@sensitive_post_parameters("password")
def complete(request: HttpRequest, token: str) -> HttpResponse:
    """Make the account."""
    email = sign_up.address_of(token)
    form = CompleteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            user, team = sign_up.complete(token=token, **form.cleaned_data)
        except ChorusError as error:
            add_error(form, error)
        else:
            login(request, user, "django.contrib.auth.backends.ModelBackend")
            request.session[SESSION_TEAM] = str(team.pk)
            return redirect("studio")
    context = {"form": form, "email": email}
    return render(request, "accounts/sign_up_complete.html", context, status=422 if form.errors else 200)
