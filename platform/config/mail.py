"""E-mail where no mail server is set."""

from __future__ import annotations

import sys
from typing import Any

from django.core.mail.backends import console


class ToTheLog(console.EmailBackend):
    """Writes messages to standard error, which is the process's log: standard output is for what a command answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("stream", sys.stderr)
        super().__init__(*args, **options)
