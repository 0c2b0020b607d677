"""Who runs the service: the roles of the panel, and who has them.

A role is a group of Django's permissions, written here and brought into the database by `seed_roles`; a superuser
has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.models import User
from accounts.operators import Operator

PERMISSION = "accounts.manage_staff"

_LOOK = (
    "accounts.view_team",
    "accounts.view_user",
    "accounts.view_membership",
    "accounts.view_plan",
    "accounts.view_apikey",
    "accounts.view_invitation",
    "accounts.view_usagecounter",
    "accounts.view_grant",
    "accounts.view_quotachange",
    "synthesis.view_voice",
    "synthesis.view_synthesisrequest",
    "synthesis.view_worker",
)
#: Role → (name for people, permissions).
ROLES: dict[str, tuple[str | Promise, tuple[str, ...]]] = {
    "support": (
        gettext_lazy("Support"),
        (*_LOOK, "accounts.change_apikey", "synthesis.change_synthesisrequest"),
    ),
    "billing": (
        gettext_lazy("Billing"),
        (
            *_LOOK,
            "accounts.change_teamquota",
            "accounts.change_memberquota",
            "accounts.add_grant",
            "accounts.change_grant",
            "accounts.add_plan",
            "accounts.change_plan",
            "accounts.delete_plan",
            "accounts.view_ledgerentry",
            "accounts.view_price",
            "accounts.change_price",
            "accounts.view_alertrule",
            "accounts.change_alertrule",
            "accounts.view_alert",
            "synthesis.view_usagerollup",
            "synthesis.view_ledgercheck",
        ),
    ),
    "operations": (
        gettext_lazy("Operations"),
        (
            *_LOOK,
            "synthesis.change_synthesisrequest",
            "synthesis.change_worker",
            "synthesis.view_pool",
            "synthesis.change_pool",
            "synthesis.view_usagerollup",
            "synthesis.view_ledgercheck",
        ),
    ),
    "trust": (
        gettext_lazy("Trust and safety"),
        (
            *_LOOK,
            "accounts.change_team",
            "accounts.change_user",
            "accounts.change_apikey",
            "accounts.view_auditentry",
            "synthesis.change_voice",
            "synthesis.view_misusereport",
            "synthesis.change_misusereport",
            "synthesis.change_synthesisrequest",
        ),
    ),
}


def seed_roles() -> None:
    """Bring the groups in line with ROLES; safe to run again."""
    with transaction.atomic():
        for name, (_label, permissions) in ROLES.items():
            group, _made = Group.objects.get_or_create(name=name)
            group.permissions.set(_permissions(permissions))


def _permissions(names: Sequence[str]) -> list[Permission]:
    where = Q()
    for name in names:
        app, codename = name.split(".")
        where |= Q(content_type__app_label=app, codename=codename)
    found = list(Permission.objects.filter(where).select_related("content_type"))
    missing = set(names) - {f"{one.content_type.app_label}.{one.codename}" for one in found}
    if missing:
        raise LookupError(f"Roles name permissions that do not exist: {', '.join(sorted(missing))}")
    return found


def set_access(*, by: Operator, user_id: UUID, roles: Sequence[str], superuser: bool = False) -> User:
    """Give a person these roles of the panel; none of them and no superuser: they are no longer staff.

    Raises Conflict for oneself and for the last superuser, InvalidInput for an unknown role.
    """
    by.require(PERMISSION)
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise InvalidInput(
            _("“%(role)s” is not a role. There are: %(all)s.")
            % {"role": unknown[0], "all": ", ".join(ROLES)},
            code="role_unknown",
            param="roles",
        )
    if by.user is not None and by.user.pk == user_id:
        raise Conflict(_("You cannot change your own access. Ask another administrator."), code="own_account")
    if superuser and by.user is not None and not by.user.is_superuser:
        raise Conflict(_("Only an administrator can make another one."), code="not_administrator")
    seed_roles()
    with transaction.atomic():
        # All administrators are locked together: two that remove each other cannot both succeed.
        administrators = {
            user.pk: user for user in User.objects.select_for_update(no_key=True).filter(is_superuser=True)
        }
        user = (
            administrators.get(user_id)
            or User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
        )
        if user is None:
            raise NotFound
        if user.is_superuser and by.user is not None and not by.user.is_superuser:
            raise Conflict(_("Only an administrator can change another one."), code="not_administrator")
        others = [one for one in administrators.values() if one.is_active and one.pk != user.pk]
        if user.is_superuser and not superuser and not others:
            raise Conflict(_("Somebody must remain an administrator."), code="last_administrator")
        before = access_of(user)
        user.is_superuser = superuser
        user.is_staff = bool(superuser or roles)
        user.save(update_fields=["is_superuser", "is_staff"])
        user.groups.set(Group.objects.filter(name__in=roles))
        by.record("staff.access_changed", target=user, before=before, after=access_of(user))
    return user


def access_of(user: User) -> list[str]:
    """Names of the roles; `administrator` for a superuser."""
    roles = sorted(group.name for group in user.groups.all() if group.name in ROLES)
    return ["administrator", *roles] if user.is_superuser else roles
