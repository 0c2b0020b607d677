"""The team page: usage, members, invitations, API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import ChorusError, NotFound
from accounts.models import Invitation, Membership, Role
from accounts.services import keys, limits, teams
from accounts.web import forms
from accounts.web.shell import SESSION_TEAM, PageRequest, add_error, fragment, show, team_page


@team_page
@never_cache
def team(request: PageRequest) -> HttpResponse:
    """Everything about the team on one page."""
    return _answer(request, "")


@require_POST
@team_page
def switch(request: PageRequest) -> HttpResponse:
    """Look at another of one's teams from here on."""
    chosen = request.POST.get("team", "")
    if not any(str(one.team_id) == chosen for one in Membership.objects.filter(user=request.user)):
        raise NotFound
    request.session[SESSION_TEAM] = chosen
    return redirect("studio")


@require_POST
@team_page
def invite(request: PageRequest) -> HttpResponse:
    """Ask somebody to join."""
    form = forms.InviteForm(request.POST)
    if form.is_valid():
        path = reverse("invitation", args=["-token-"])
        accept_url = settings.CHORUS_BASE_URL + path.replace("-token-", "{token}")
        try:
            made, link = teams.invite(actor=request.actor, accept_url=accept_url, **form.cleaned_data)
        except ChorusError as error:
            add_error(form, error)
        else:
            return _answer(
                request,
                "members",
                invitation_link=link,
                invited_email=made.email,
                by_mail=bool(settings.EMAIL_HOST),
            )
    return _answer(request, "members", invite_form=form, status=422)


@require_POST
@team_page
def invitation_withdraw(request: PageRequest, invitation_id: UUID) -> HttpResponse:
    """End an open invitation."""
    teams.withdraw(actor=request.actor, invitation_id=invitation_id)
    return _answer(request, "members")


@require_POST
@team_page
def member_role(request: PageRequest, membership_id: UUID) -> HttpResponse:
    """Give a member another role."""
    teams.change_role(actor=request.actor, membership_id=membership_id, role=request.POST.get("role", ""))
    return _answer(request, "members")


@require_POST
@team_page
def member_remove(request: PageRequest, membership_id: UUID) -> HttpResponse:
    """Take somebody out of the team."""
    teams.remove(actor=request.actor, membership_id=membership_id)
    return _answer(request, "members")


@require_POST
@team_page
@never_cache
def key_create(request: PageRequest) -> HttpResponse:
    """A new key, whose secret this one answer shows."""
    form = forms.KeyForm(request.POST, allowed=request.actor.permissions)
    if form.is_valid():
        days = form.cleaned_data["expires"]
        expires_at = timezone.now() + timedelta(days=int(days)) if days else None
        try:
            _key, secret = keys.create(
                actor=request.actor,
                name=form.cleaned_data["name"],
                expires_at=expires_at,
                **form.limits(),
            )
        except ChorusError as error:
            add_error(form, error)
        else:
            return _answer(request, "keys", new_secret=secret)
    return _answer(request, "keys", key_form=form, status=422)


@require_POST
@team_page
def key_update(request: PageRequest, key_id: UUID) -> HttpResponse:
    """Change what a key is called, what it may do, how much of it, until when and from where; at once."""
    key = keys.find(request.actor, key_id)
    form = forms.KeyChangeForm(key, request.POST, allowed=request.actor.permissions)
    if form.is_valid():
        try:
            keys.update(actor=request.actor, key_id=key_id, **form.changes())
        except ChorusError as error:
            add_error(form, error)
        else:
            return _answer(request, "keys")
    return _answer(request, "keys", changed_key=(key_id, form), status=422)


@require_POST
@team_page
def key_revoke(request: PageRequest, key_id: UUID) -> HttpResponse:
    """End a key at once."""
    keys.revoke(actor=request.actor, key_id=key_id)
    return _answer(request, "keys")


def _answer(request: PageRequest, part: str, *, status: int = 200, **shown: Any) -> HttpResponse:
    """The changed part for htmx; without htmx the page anew (a secret would be lost by a redirect)."""
    context = {**_context(request), **shown}
    context["keys"] = _keys(request.actor, *shown.get("changed_key", ()))
    if part and request.htmx:
        response = fragment(request, f"team/{part}.html", context=context, status=status)
        # Answers of 4xx are not put onto the page unless they say so.
        response.headers["HX-Reswap"] = "outerHTML"
        return response
    if part and not shown:
        return redirect("team")
    return show(request, "team/team.html", context, section="team", status=status)


def _keys(
    actor: Actor, changed: UUID | None = None, form: forms.KeyChangeForm | None = None
) -> list[dict[str, Any]]:
    """Each key with the form that changes it; `form` is that of `changed`, as it was sent."""
    may = actor.can(permissions.KEYS_WRITE)
    return [
        {
            "key": key,
            "form": (form if key.id == changed else forms.KeyChangeForm(key, allowed=actor.permissions))
            if may and key.revoked_at is None
            else None,
        }
        for key in keys.visible(actor).select_related("user")
    ]


def _context(request: HttpRequest) -> dict[str, Any]:
    actor: Actor = request.actor  # type: ignore[attr-defined]
    may_manage = actor.can(permissions.MEMBERS_WRITE)
    roles = [
        choice for choice in Role.choices if choice[0] != Role.OWNER or actor.membership.role == Role.OWNER
    ]
    invite_form = forms.InviteForm()
    invite_form.fields["role"].choices = roles  # type: ignore[attr-defined]
    return {
        "members": Membership.objects.filter(team=actor.team).select_related("user").order_by("created_at"),
        "invitations": Invitation.objects.filter(
            team=actor.team, accepted_at=None, expires_at__gt=timezone.now()
        ).order_by("created_at")
        if may_manage
        else [],
        "limits": limits.of_team(actor.team),
        "may_manage": may_manage,
        "may_make_keys": actor.can(permissions.KEYS_WRITE),
        "roles": roles,
        "invite_form": invite_form,
        "key_form": forms.KeyForm(allowed=actor.permissions),
        "base_url": settings.CHORUS_BASE_URL,
    }
