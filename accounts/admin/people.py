"""People: who they are, what they may do in the panel, and stopping them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from accounts.admin.cells import badge, link, moment
from accounts.effects import Effect, Text
from accounts.models import ApiKey, AuditEntry, Invitation, Membership, User
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, Table, is_set, short_time
from accounts.panel.operations import Operation, OperationForm, ReasonForm
from accounts.panel.site import Entry, Page, operator, panel
from accounts.services import impersonation, people, personal, staff, suspension, two_factor


def _suspend(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    canceled = sum(
        suspension.suspend_user(by=by, user_id=user.pk, reason=values["reason"]) for user in objects
    )
    return _("Suspended. Waiting requests canceled: %(canceled)d.") % {"canceled": canceled}


def _restore(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    for user in objects:
        suspension.restore_user(by=by, user_id=user.pk, reason=values["reason"])
    return _("Restored.")


def _end_access(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    sessions, keys = people.end_access(by=by, user_id=objects[0].pk, reason=values["reason"])
    return _("Ended: %(sessions)d sessions, %(keys)d keys.") % {"sessions": sessions, "keys": keys}


def _reset_two_factor(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    two_factor.reset(by=by, user_id=objects[0].pk)
    return _("Removed. The next visit to the panel begins with setting it up anew.")


class AccessForm(OperationForm):
    """Roles in the panel."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        user = self.objects[0]
        self.fields["roles"] = forms.MultipleChoiceField(
            label=_("Roles"),
            choices=[(name, label) for name, (label, _permissions) in staff.ROLES.items()],
            required=False,
            initial=staff.access_of(user),
            widget=forms.CheckboxSelectMultiple,
            help_text=_("None and no administrator: no access to the panel."),
        )
        self.fields["superuser"] = forms.BooleanField(
            label=_("Administrator: may do everything"), required=False, initial=user.is_superuser
        )


def _access_preview(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> list[Effect]:
    before = staff.access_of(objects[0])
    after = (["administrator"] if values["superuser"] else []) + sorted(values["roles"])
    if before == after:
        return []
    return [
        Effect(
            objects[0].email,
            _("access to the panel"),
            ", ".join(before) or _("none"),
            ", ".join(after) or _("none"),
        )
    ]


def _set_access(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    staff.set_access(by=by, user_id=objects[0].pk, roles=values["roles"], superuser=values["superuser"])
    return _("Saved.")


class EraseForm(ReasonForm):
    """The address again: this cannot be undone."""

    confirm = forms.CharField(widget=forms.TextInput(attrs={"autocomplete": "off"}))
    field_order = ["confirm", "reason"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].label = _("Type %(email)s to confirm") % {"email": self.objects[0].email}

    def clean_confirm(self) -> str:
        """Exactly."""
        if self.cleaned_data["confirm"].strip().lower() != self.objects[0].email:
            raise forms.ValidationError(_("This is another address."))
        return self.objects[0].email


def _erase_preview(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> list[Effect]:
    user = objects[0]
    alone = ", ".join(personal.what_would_go(user))
    warning = _("They are the only owner of %(teams)s. Make somebody else an owner first.") % {"teams": alone}
    gone = _("removed for good")
    return [
        Effect(user.email, _("account, memberships, sessions"), "", gone, warning if alone else ""),
        Effect(user.email, _("API keys"), str(ApiKey.objects.filter(user=user).count()), gone),
        Effect(user.email, _("texts, recordings and voices"), "", gone),
        Effect(user.email, _("ledger, usage and audit log"), "", _("stay, under an id")),
    ]


def _erase(by: Operator, objects: Sequence[User], values: dict[str, Any]) -> Text:
    report = personal.erase(by=by, user_id=objects[0].pk, reason=values["reason"])
    counts = ", ".join(
        f"{name.replace('_', ' ')}: {count}" for name, count in report["removed"].items() if count
    )
    return _("Erased. Removed: %(counts)s. The report is in the audit log.") % {
        "counts": counts or _("nothing")
    }


class ActForm(OperationForm):
    """Why."""

    reason = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = _("Reason")
        self.fields["reason"].help_text = _(
            "The person gets it by e-mail, and it is in the audit log of their teams."
        )


def _act(request: HttpRequest, objects: Sequence[User], values: dict[str, Any]) -> HttpResponse:
    impersonation.begin(request, by=operator(request), user_id=objects[0].pk, reason=values["reason"])
    return redirect("studio")


def export_person(request: HttpRequest, user_id: UUID) -> HttpResponseBase:
    """Everything about a person as a zip archive."""
    pieces = personal.export(by=operator(request), user_id=user_id)
    response = StreamingHttpResponse(pieces, content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="person-{user_id}.zip"'
    response.headers["Cache-Control"] = "no-store"
    return response


panel().add_page(
    Page("people/<uuid:user_id>/export/", "export_person", require_POST(export_person), personal.EXPORT)
)


@admin.register(User)
class UserAdmin(PanelAdmin):
    """Everybody with an account."""

    list_display = [
        "email",
        "name",
        "state",
        "access",
        moment("last_login", gettext_lazy("last here")),
        moment("date_joined", gettext_lazy("joined")),
    ]
    list_filter = ["is_active", "is_staff"]
    search_fields = ["email", "name", "memberships__team__name"]
    ordering = ["email"]
    facts = ["email", "name", "language", "date_joined", "last_login", "access", "second_factor", "id"]
    operations = [
        Operation(
            "access",
            gettext_lazy("Access to the panel"),
            staff.PERMISSION,
            _set_access,
            form=AccessForm,
            preview=_access_preview,
            applies=lambda user: not user.is_erased,
            icon="key",
        ),
        Operation(
            "end-access",
            gettext_lazy("End sessions and keys"),
            suspension.USER_PERMISSION,
            _end_access,
            explain=gettext_lazy(
                "For a lost laptop: they can sign in again at once, their old sessions and keys are over."
            ),
            applies=lambda user: not user.is_erased,
            icon="leave",
        ),
        Operation(
            "act",
            gettext_lazy("Act as"),
            impersonation.PERMISSION,
            form=ActForm,
            answer=_act,
            applies=lambda user: user.is_active and not user.is_staff,
            explain=gettext_lazy(
                "For an hour at most you see and do what they can, except their password and keys. They are told."
            ),
            icon="person",
        ),
        Operation(
            "reset-two-factor",
            gettext_lazy("Remove two-factor"),
            suspension.USER_PERMISSION,
            _reset_two_factor,
            form=OperationForm,
            applies=lambda user: two_factor.is_enrolled(user),
            explain=gettext_lazy(
                "For a lost phone without recovery codes. Make sure that it is really them."
            ),
            danger=True,
            icon="key",
        ),
        Operation(
            "suspend",
            gettext_lazy("Suspend"),
            suspension.USER_PERMISSION,
            _suspend,
            applies=lambda user: user.is_active,
            explain=gettext_lazy(
                "Sessions and keys stop at once, what waits is canceled without charge, what is spoken now is finished."
            ),
            bulk=True,
            danger=True,
            icon="pause",
        ),
        Operation(
            "restore",
            gettext_lazy("Restore"),
            suspension.USER_PERMISSION,
            _restore,
            applies=lambda user: not user.is_active and not user.is_erased,
            bulk=True,
            icon="play",
        ),
        Operation(
            "erase",
            gettext_lazy("Erase"),
            personal.ERASE,
            _erase,
            form=EraseForm,
            preview=_erase_preview,
            applies=lambda user: not user.is_superuser and not user.is_erased,
            explain=gettext_lazy("For good. Export their data first if they ask for it."),
            danger=True,
            icon="trash",
        ),
    ]
    extra_template = "admin/parts/person.html"

    def context(self, request: HttpRequest, obj: User) -> dict[str, Any]:
        """Whether the export may be had."""
        return {"may_export": operator(request).can(personal.EXPORT), "user_id": obj.pk}

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With the roles."""
        return super().get_queryset(request).prefetch_related("groups")

    def badges(self, obj: User) -> list[tuple[Text, str]]:
        """Whether they may sign in."""
        return [(_("active"), "good")] if obj.is_active else [(_("suspended"), "bad")]

    @admin.display(description=gettext_lazy("state"))
    def state(self, user: User) -> SafeString:
        """Active or suspended."""
        return badge(_("active"), "good") if user.is_active else badge(_("suspended"), "bad")

    @admin.display(description=gettext_lazy("panel"))
    def access(self, user: User) -> str:
        """Roles in the panel."""
        return ", ".join(staff.access_of(user)) if user.is_staff else "—"

    @admin.display(description=gettext_lazy("two-factor"))
    def second_factor(self, user: User) -> str:
        """Set up or not."""
        if not two_factor.is_enrolled(user):
            return _("not set up")
        return _("set up, %(codes)d recovery codes left") % {"codes": two_factor.recovery_codes_left(user)}

    def tables(self, request: HttpRequest, obj: User) -> list[Table]:
        """Teams, keys, log."""
        can = request.user.has_perm
        tables = []
        if can("accounts.view_membership"):
            members = Membership.objects.filter(user=obj).select_related("team", "user")
            rows: list[list[Any]] = [
                [link(one.team), one.get_role_display(), link(one, _("Limits in this team"))]
                for one in members
            ]
            tables.append(Table(_("Teams"), [_("Team"), _("Role"), _("Limits")], rows, _("In no team.")))
        if can("accounts.view_apikey"):
            keys = ApiKey.objects.filter(user=obj).select_related("team").order_by("-created_at")[:20]
            rows = [[link(one), link(one.team), short_time(one.last_used_at)] for one in keys]
            tables.append(Table(_("API keys"), [_("Name"), _("Team"), _("Last used")], rows, _("None.")))
        if can("accounts.view_auditentry"):
            entries = AuditEntry.objects.filter(actor_id=obj.pk).order_by("-id")[:15]
            rows = [[f"{one.created_at:%Y-%m-%d %H:%M}", one.action, one.target_type] for one in entries]
            tables.append(Table(_("What they did lately"), [_("When"), _("Action"), _("Object")], rows))
        return tables


def _withdraw(by: Operator, objects: Sequence[Invitation], values: dict[str, Any]) -> Text:
    for invitation in objects:
        people.withdraw_invitation(by=by, invitation_id=invitation.pk)
    return _("Withdrawn.")


@admin.register(Invitation)
class InvitationAdmin(PanelAdmin):
    """Who is asked to join, never the link."""

    list_display = [
        "email",
        "team",
        "role",
        "invited_by",
        moment("created_at", gettext_lazy("made")),
        moment("expires_at", gettext_lazy("expires")),
        moment("accepted_at", gettext_lazy("accepted")),
    ]
    list_filter = [
        is_set("accepted_at", gettext_lazy("state"), gettext_lazy("accepted"), gettext_lazy("open"))
    ]
    list_select_related = ["team", "invited_by"]
    search_fields = ["email", "team__name"]
    ordering = ["-created_at"]
    facts = ["email", "team", "role", "invited_by", "created_at", "expires_at", "accepted_at"]
    operations = [
        Operation(
            "withdraw",
            gettext_lazy("Withdraw"),
            suspension.USER_PERMISSION,
            _withdraw,
            form=OperationForm,
            applies=lambda invitation: invitation.accepted_at is None,
            explain=gettext_lazy("Its link works no more."),
            bulk=True,
            danger=True,
            icon="close",
        ),
    ]


panel().add_entry(
    Entry(
        "customers",
        "admin:accounts_user_changelist",
        gettext_lazy("People"),
        "person",
        "accounts.view_user",
        20,
    )
)
panel().add_entry(
    Entry(
        "customers",
        "admin:accounts_invitation_changelist",
        gettext_lazy("Invitations"),
        "mail",
        "accounts.view_invitation",
        22,
    )
)
