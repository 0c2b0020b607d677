"""Whether what happens right now is done by an operator who acts as somebody else. The audit log asks."""

from __future__ import annotations

from contextvars import ContextVar

#: The operator's e-mail address; empty when people act for themselves.
acting_by: ContextVar[str] = ContextVar("acting_by", default="")
