"""One JSON object a line, with the ids of request, team, synthesis and attempt, so that a log can be searched by what
a user quotes."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime

from django.conf import settings

from accounts import log_context

_STANDARD = set(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
#: PostgreSQL tells which row broke a constraint: all of it, with what the user wrote.
_ROWS = re.compile(r"^\s*(?:DETAIL|CONTEXT): .*$", re.MULTILINE)


class JsonFormatter(logging.Formatter):
    """What was passed as `extra=` and what `log_context` holds become fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **log_context.current(),
        }
        line |= {
            key: value
            for key, value in vars(record).items()
            # Django hands over the request object itself, whose text may hold what the user wrote.
            if key not in _STANDARD and key not in {"request", "server_time"}
        }
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line["traceback"] = trace if settings.CHORUS_LOG_TEXT else _ROWS.sub("", trace)
        return json.dumps(line, ensure_ascii=False, default=str)
