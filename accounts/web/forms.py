"""Forms about people. They only shape input; what is allowed is decided by the services."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, time
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import forms as auth_forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts import permissions
from accounts.models import ApiKey, Role, User
from accounts.models.users import EMAIL_CHARACTERS


def offer(form: forms.BaseForm, name: str, choices: Sequence[tuple[str, Any]]) -> None:
    """Give a choice field its choices, where they depend on the reader or the installation."""
    form.fields[name].choices = choices  # type: ignore[attr-defined]


def day_input() -> forms.DateInput:
    """A calendar. Its value is ISO 8601 in every language: browsers refuse a localised one."""
    return forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})


class Styled:
    """Give every control the class that the style sheet knows."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():  # type: ignore[attr-defined]
            kind = getattr(field.widget, "input_type", "")
            if kind not in {"checkbox", "radio", "file", "range", "hidden"}:
                field.widget.attrs.setdefault("class", "input")


class SignInForm(Styled, auth_forms.AuthenticationForm):
    """E-mail address and password."""

    error_messages = {
        "invalid_login": _("Address and password do not match. Check both, or reset your password."),
        "inactive": _("This account is switched off. Ask your operator."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("E-mail address")
        self.fields["username"].widget.attrs |= {"autocomplete": "username", "type": "email"}
        self.fields["password"].label = _("Password")

    def clean_username(self) -> str:
        """Addresses are kept in lower case."""
        return str(self.cleaned_data["username"]).strip().lower()


class PasswordResetForm(Styled, auth_forms.PasswordResetForm):
    """Asks for the address that gets the link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")


class SetPasswordForm(Styled, auth_forms.SetPasswordForm):
    """A new password, twice."""


class PasswordChangeForm(Styled, auth_forms.PasswordChangeForm):
    """The old password, and a new one twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["old_password"].widget.attrs.pop("autofocus", None)


class JoinForm(Styled, forms.Form):
    """What a new person says about themselves when they accept an invitation."""

    name = forms.CharField(
        label=_("Your name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        help_text=_("At least ten characters. A few words in a row are easy to remember and hard to guess."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class ProfileForm(Styled, forms.ModelForm):
    """What others see of a person, and the language they are spoken to in."""

    language = forms.ChoiceField(label=_("Language"), required=False)
    theme = forms.ChoiceField(
        label=_("Theme"),
        required=False,
        choices=[("", _("As the system has it")), ("light", _("Light")), ("dark", _("Dark"))],
    )
    notify_done = forms.BooleanField(
        label=_("Tell me in the browser when something is ready and I look elsewhere"), required=False
    )

    class Meta:
        model = User
        fields = ["name", "language", "theme", "notify_done"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = _("Your name")
        self.fields["name"].widget.attrs["autocomplete"] = "name"
        # Each language in its own words, so that everybody finds theirs.
        own = {"en": "English", "zh-hans": "简体中文"}
        languages = [(code, own.get(code, name)) for code, name in settings.LANGUAGES]
        offer(self, "language", [("", _("As the browser asks")), *languages])


class InviteForm(Styled, forms.Form):
    """Whom to invite, and as what."""

    email = forms.EmailField(
        label=_("Invite by e-mail address"),
        max_length=EMAIL_CHARACTERS,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)


#: What a key may do, in the order in which people think of it.
SCOPES = {
    permissions.SYNTHESES_WRITE: _("Have text spoken"),
    permissions.SYNTHESES_READ: _("Read requests and fetch recordings"),
    permissions.VOICES_READ: _("List voices"),
    permissions.VOICES_WRITE: _("Make and change voices"),
    permissions.USAGE_READ: _("See usage"),
    permissions.WEBHOOKS_WRITE: _("Manage webhooks"),
    permissions.KEYS_WRITE: _("Make and revoke keys"),
    permissions.MEMBERS_WRITE: _("Manage members"),
    permissions.AUDIT_READ: _("Read the audit log"),
    permissions.TEAM_WRITE: _("Change the team"),
}


class _KeyBaseForm(Styled, forms.Form):
    """What a key may do, how much of it, and from where."""

    scopes = forms.MultipleChoiceField(
        label=_("What it may do"),
        error_messages={"required": _("Choose at least one scope.")},
        widget=forms.CheckboxSelectMultiple,
    )
    characters_per_month = forms.IntegerField(
        label=_("Characters a month"),
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text=_("Empty: as much as you may."),
    )
    requests_per_minute = forms.IntegerField(
        label=_("Requests a minute"), required=False, min_value=1, max_value=2**31 - 1
    )
    concurrent_requests = forms.IntegerField(
        label=_("Requests spoken at once"), required=False, min_value=1, max_value=2**31 - 1
    )
    allowed_ips = forms.CharField(
        label=_("Only from these addresses"),
        required=False,
        help_text=_("Addresses or networks such as 10.0.0.0/8, with spaces between. Empty: from anywhere."),
    )

    _CAPS = ("characters_per_month", "requests_per_minute", "concurrent_requests")

    def __init__(self, *args: Any, allowed: Collection[str], **kwargs: Any) -> None:
        """`allowed` are the scopes that can be chosen."""
        super().__init__(*args, **kwargs)
        offer(self, "scopes", [(scope, label) for scope, label in SCOPES.items() if scope in allowed])

    def clean_allowed_ips(self) -> list[str]:
        """One by one."""
        return str(self.cleaned_data["allowed_ips"]).replace(",", " ").split()

    def limits(self) -> dict[str, Any]:
        """What the service takes beside name and expiry."""
        return {name: self.cleaned_data[name] for name in ("scopes", *self._CAPS, "allowed_ips")}


class KeyChangeForm(_KeyBaseForm):
    """All that can be changed of a key."""

    name = forms.CharField(
        label=_("Name"), max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    last_day = forms.DateField(
        label=_("Last day on which it works"),
        required=False,
        widget=day_input(),
        help_text=_("Empty: for ever."),
    )

    def __init__(self, key: ApiKey, data: QueryDict | None = None, *, allowed: Collection[str]) -> None:
        """Filled with what `key` has now, or with what was sent. What it may do it can keep, whoever changes it."""
        self._last_day = timezone.localdate(key.expires_at) if key.expires_at else None
        initial = {name: getattr(key, name) for name in ("name", "scopes", *self._CAPS)}
        initial |= {"allowed_ips": " ".join(key.allowed_ips), "last_day": self._last_day}
        super().__init__(data, initial=initial, auto_id=f"key-{key.id}-%s", allowed={*allowed, *key.scopes})

    def changes(self) -> dict[str, Any]:
        """What the service takes. A day that was left alone is no change, though the moment lies within it."""
        changes = {"name": self.cleaned_data["name"], **self.limits()}
        day = self.cleaned_data["last_day"]
        if day != self._last_day:
            changes["expires_at"] = timezone.make_aware(datetime.combine(day, time.max)) if day else None
        return changes


class KeyForm(_KeyBaseForm):
    """A name for a new key, how long it lives, what it may do and how much."""

    EXPIRIES = [("", _("never")), ("30", _("in 30 days")), ("90", _("in 90 days")), ("365", _("in a year"))]

    name = forms.CharField(
        label=_("Name of the new key"),
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("For example: website")}),
    )
    expires = forms.ChoiceField(label=_("Expires"), choices=EXPIRIES, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scopes"].initial = sorted(permissions.DEFAULT_SCOPES)

    @property
    def is_detailed(self) -> bool:
        """Whether something beyond name and expiry is wrong, so that it must be seen."""
        return bool(set(self.errors) & {"scopes", "allowed_ips", *self._CAPS})
