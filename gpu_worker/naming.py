"""Names of workers: the same after a restart, and never those of another installation."""

from __future__ import annotations

import hashlib
import socket

from django.conf import settings


def instance() -> str:
    """Six digits that tell this installation from others on the same machine, from its secret key."""
    return hashlib.sha256(b"chorus instance\0" + settings.SECRET_KEY.encode()).hexdigest()[:6]


def worker_name(slot: int, prefix: str = "") -> str:
    """The name of the worker in that slot of this machine: `host:instance:slot`; `prefix` stands for the
    host."""
    return f"{prefix or socket.gethostname()}:{instance()}:{slot}"
