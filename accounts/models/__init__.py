"""Tables, their constraints, and what a row knows about itself."""

from accounts.models.audit import AuditEntry
from accounts.models.changes import Grant, QuotaChange
from accounts.models.idempotency import IdempotentAnswer
from accounts.models.keys import ApiKey
from accounts.models.operator_settings import OperatorSetting
from accounts.models.prices import Alert, AlertRule, Price
from accounts.models.quotas import LedgerEntry, MemberQuota, Plan, TeamQuota, UsageCounter
from accounts.models.teams import Invitation, Membership, Role, Team
from accounts.models.users import User

__all__ = [
    "Alert",
    "AlertRule",
    "ApiKey",
    "AuditEntry",
    "Grant",
    "IdempotentAnswer",
    "Invitation",
    "LedgerEntry",
    "MemberQuota",
    "Membership",
    "OperatorSetting",
    "Plan",
    "Price",
    "QuotaChange",
    "Role",
    "Team",
    "TeamQuota",
    "UsageCounter",
    "User",
]
