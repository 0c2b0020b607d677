"""What a change would do, told before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise

Text = str | Promise


@dataclass(frozen=True)
class Effect:
    """One line of a preview: `what` (of which `subject`) goes from `before` to `after`; `warning` where it hurts."""

    subject: Text
    what: Text
    before: Text
    after: Text
    warning: Text = ""

    def as_json(self) -> dict[str, Any]:
        """For commands."""
        return {
            "subject": str(self.subject),
            "what": str(self.what),
            "before": str(self.before),
            "after": str(self.after),
            "warning": str(self.warning),
        }
