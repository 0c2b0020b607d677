"""What each role may do. The same names are the scopes that an API key can carry."""

from __future__ import annotations

from accounts.models import Role

VOICES_READ = "voices:read"
VOICES_WRITE = "voices:write"
SYNTHESES_READ = "syntheses:read"
SYNTHESES_WRITE = "syntheses:write"
USAGE_READ = "usage:read"
KEYS_WRITE = "keys:write"
MEMBERS_WRITE = "members:write"
AUDIT_READ = "audit:read"
TEAM_WRITE = "team:write"
WEBHOOKS_WRITE = "webhooks:write"

_VIEWER = frozenset({VOICES_READ, SYNTHESES_READ, USAGE_READ})
_MEMBER = _VIEWER | {VOICES_WRITE, SYNTHESES_WRITE, KEYS_WRITE}
_ADMIN = _MEMBER | {MEMBERS_WRITE, AUDIT_READ, WEBHOOKS_WRITE}
_OWNER = _ADMIN | {TEAM_WRITE}

OF_ROLE: dict[str, frozenset[str]] = {
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
    Role.ADMIN: _ADMIN,
    Role.OWNER: _OWNER,
}

#: Scopes that a key may be given.
SCOPES: tuple[str, ...] = tuple(sorted(_OWNER))
#: Scopes of a key when nobody chose: everything about speech, nothing about people.
DEFAULT_SCOPES: tuple[str, ...] = tuple(sorted(_VIEWER | {VOICES_WRITE, SYNTHESES_WRITE}))
