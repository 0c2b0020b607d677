"""What can go wrong, each with the status that the command ends with."""

from __future__ import annotations

from typing import Any

OK = 0
#: An error of this program itself, or of the machine that it runs on.
BROKEN = 1
#: The command line is wrong.
USAGE = 2
#: No key, or one that is not (any longer) good for this.
NOT_ALLOWED = 3
#: The server refused what was asked for: a wrong voice, text, file.
REFUSED = 4
#: A rate, a place in the queue or the month's characters are used up.
LIMIT = 5
#: The server does not answer, or not as a Chorus server does.
UNREACHABLE = 6
#: It was taken, and could not be spoken.
FAILED = 7
#: Of a batch, some rows could not be spoken.
ROWS_FAILED = 8
INTERRUPTED = 130


class CommandError(Exception):
    """One line for a person; `status` is what the command ends with."""

    status = BROKEN

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = type(self).status if status is None else status


class UsageError(CommandError):
    """Something on the command line."""

    status = USAGE


class Unreachable(CommandError):
    """No answer; `again` where another attempt may get one."""

    status = UNREACHABLE

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class Refused(CommandError):
    """The server's own error. `code` is stable; `details` holds its other fields; `retry_after` is in seconds."""

    def __init__(
        self,
        http_status: int,
        code: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        again: bool = False,
        retry_after: float = 0.0,
    ) -> None:
        status = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 429: LIMIT}.get(http_status, REFUSED)
        super().__init__(message, UNREACHABLE if http_status >= 500 else status)
        self.http_status = http_status
        self.code = code
        self.details = details or {}
        self.again = again
        self.retry_after = retry_after
