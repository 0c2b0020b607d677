"""Signing in and out, passwords, invitations, the language."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash, views
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from accounts.api.authentication import client_address
from accounts.errors import ChorusError, LimitReached
from accounts.models import User
from accounts.services import audit, rates, sessions, teams, two_factor
from accounts.web import forms, security
from accounts.web.shell import SESSION_TEAM, PersonRequest, add_error, person_page, show

LANGUAGE_COOKIE_SECONDS = 365 * 24 * 3600


class SignIn(views.LoginView):
    """The sign-in page."""

    template_name = "accounts/sign_in.html"
    form_class = forms.SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Passwords are not tried out here: attempts are counted before one is looked at."""
        try:
            rates.knock(address=client_address(request), email=request.POST.get("username", ""))
        except LimitReached as error:
            form = self.form_class(request)
            context = {**self.get_context_data(form=form), "refusal": str(error)}
            return self.render_to_response(
                context, status=error.status, headers={"Retry-After": error.retry_after}
            )
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: forms.SignInForm) -> HttpResponse:  # type: ignore[override]
        """Sign in, or ask for the second factor; from here on the pages speak the person's language."""
        user = form.get_user()
        # Who runs the service proves it at the panel, and each day anew.
        if not user.is_staff and two_factor.is_enrolled(user):
            return security.ask_for_code(self.request, user, self.get_redirect_url() or "/")
        response = super().form_valid(form)
        sessions.remember(self.request)
        rates.forgive(user.email)
        audit.record("user.signed_in", user=user)
        if user.language:
            _remember_language(response, user.language)
        _remember_theme(response, user.theme)
        return response


class PasswordReset(views.PasswordResetView):
    """Ask for a link that sets a new password."""

    template_name = "accounts/password_reset.html"
    subject_template_name = "accounts/password_reset_subject.txt"
    email_template_name = "accounts/password_reset_email.txt"
    form_class = forms.PasswordResetForm
    success_url = reverse_lazy("password_reset_done")


class PasswordResetConfirm(views.PasswordResetConfirmView):
    """Choose a new password."""

    template_name = "accounts/password_reset_confirm.html"
    form_class = forms.SetPasswordForm
    success_url = reverse_lazy("password_reset_complete")

    def form_valid(self, form: forms.SetPasswordForm) -> HttpResponse:  # type: ignore[override]
        """Save it."""
        response = super().form_valid(form)
        audit.record("user.password_reset", user=form.user)
        return response


@never_cache
@sensitive_post_parameters("password")
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Join a team by a link."""
    joined = teams.joined_by(token=token, user=request.user) if isinstance(request.user, User) else None
    if joined is not None:
        request.session[SESSION_TEAM] = str(joined.team_id)
        messages.info(request, _("You are in %(team)s already.") % {"team": joined.team.name})
        return redirect("studio")
    found = teams.find_invitation(token)
    has_account = User.objects.filter(email=found.email).exists()
    user = request.user if isinstance(request.user, User) else None
    form = forms.JoinForm(request.POST if request.method == "POST" and user is None else None)
    if request.method == "POST" and (user or form.is_valid()):
        name, password = ("", "") if user else (form.cleaned_data["name"], form.cleaned_data["password"])
        try:
            membership = teams.accept(token=token, user=user, name=name, password=password)
        except ChorusError as error:
            if user is not None:
                raise
            add_error(form, error)
        else:
            if user is None:
                login(request, membership.user, "django.contrib.auth.backends.ModelBackend")
            request.session[SESSION_TEAM] = str(membership.team_id)
            messages.success(request, _("Welcome to %(team)s.") % {"team": membership.team.name})
            return redirect("studio")
    context = {"invitation": found, "form": form, "has_account": has_account}
    return render(request, "accounts/invitation.html", context, status=422 if form.errors else 200)


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """Change the language of the pages, for this browser and, when signed in, for the person."""
    target = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        target = "/"
    response = HttpResponseRedirect(urlsplit(target).geturl())
    code = request.POST.get("language", "")
    if code in dict(settings.LANGUAGES) and check_for_language(code):
        _remember_language(response, code)
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=code)
    return response


def _remember_language(response: HttpResponse, code: str) -> None:
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=LANGUAGE_COOKIE_SECONDS,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )


def _remember_theme(response: HttpResponse, theme: str) -> None:
    """The cookie that pages are drawn by; the switch in the corner writes the same one."""
    if theme:
        response.set_cookie(
            "chorus_theme",
            theme,
            max_age=LANGUAGE_COOKIE_SECONDS,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )


@person_page
@sensitive_post_parameters()
def account(request: PersonRequest) -> HttpResponse:
    """A person's own profile and password."""
    sent = request.POST.get("form") if request.method == "POST" else None
    profile = forms.ProfileForm(request.POST if sent == "profile" else None, instance=request.user)
    password = forms.PasswordChangeForm(request.user, request.POST if sent == "password" else None)
    if sent == "profile" and profile.is_valid():
        user = profile.save()
        messages.success(request, _("Saved."))
        response = redirect("account")
        if user.language:
            _remember_language(response, user.language)
        else:
            response.delete_cookie(settings.LANGUAGE_COOKIE_NAME)
        if user.theme:
            _remember_theme(response, user.theme)
        else:
            response.delete_cookie("chorus_theme")
        return response
    if sent == "password" and password.is_valid():
        update_session_auth_hash(request, password.save())
        audit.record("user.password_changed", user=request.user)
        messages.success(request, _("Your password is changed. Other devices are signed out."))
        return redirect("account")
    failed = bool(profile.errors or password.errors)
    return show(
        request,
        "accounts/account.html",
        {
            "profile": profile,
            "password": password,
            "sessions": sessions.of(request),
            "two_factor": two_factor.is_enrolled(request.user),
        },
        status=422 if failed else 200,
    )
