"""One JSON object a line, with the request's id, so that a log can be searched by what a user quotes."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

#: The `x-request-id` of the HTTP request that is being answered.
request_id: ContextVar[str] = ContextVar("request_id", default="")

_STANDARD = set(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """What was passed as `extra=` becomes fields of the line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if identifier := request_id.get():
            line["request_id"] = identifier
        line |= {
            key: value
            for key, value in vars(record).items()
            # Django hands over the request object itself, whose text may hold what the user wrote.
            if key not in _STANDARD and key not in {"request", "server_time"}
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
