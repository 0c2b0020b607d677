"""People, who sign in by e-mail address."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id

#: The domain of addresses that nobody has (RFC 2606): those of people who were erased.
NOBODY = "erased.invalid"


class UserManager(BaseUserManager["User"]):
    """Addresses are compared and kept in lower case."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        """A person; without a password they can only sign in after a reset."""
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        """A person who may do everything in the admin panel."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        """Sign-in finds a person whatever the case they type."""
        return self.get(email=(username or "").strip().lower())


#: Of an address: what Django's model field stores, while its form field and validator take up to 320.
EMAIL_CHARACTERS = 254


class User(AbstractBaseUser, PermissionsMixin):
    """A person, in any number of teams."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(_("e-mail address"), max_length=EMAIL_CHARACTERS, unique=True)
    name = models.CharField(_("name"), max_length=150, blank=True)
    language = models.CharField(_("language"), max_length=16, blank=True)
    #: light or dark; empty: as the system has it.
    theme = models.CharField(_("theme"), max_length=8, blank=True, db_default="", default="")
    #: Tell the browser when a request is done.
    notify_done = models.BooleanField(_("notify when done"), db_default=False, default=False)
    #: The first steps were taken or put away.
    guided_at = models.DateTimeField(null=True, blank=True)
    is_staff = models.BooleanField(_("may enter the admin panel"), default=False)
    is_active = models.BooleanField(_("active"), default=True)
    date_joined = models.DateTimeField(_("joined"), default=timezone.now)

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_lower_case"),
        ]

    def clean(self) -> None:
        """What the admin's form sends is kept in lower case as well."""
        self.email = (self.email or "").strip().lower()

    def __str__(self) -> str:
        return self.name or self.email

    @property
    def is_erased(self) -> bool:
        """Whether only the id is left of this person."""
        return self.email.endswith(f"@{NOBODY}")

    def get_short_name(self) -> str:
        """What a page calls this person."""
        return self.name or self.email.partition("@")[0]
