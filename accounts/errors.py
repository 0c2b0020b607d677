"""The one tree of business errors, rendered in one place for the API and for pages (`config.errors`).

ChorusError
├── InvalidInput (400)
├── NotAuthenticated (401)
├── NotAllowed (403)
├── NotFound (404)
├── Conflict (409)
├── PayloadTooLarge (413)
├── Unprocessable (422)
├── LimitReached (429)
└── Unavailable (503)
"""

from __future__ import annotations

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class ChorusError(Exception):
    """A rule of the service was not met; `message` tells the reader what to do about it.

    `code` is stable and machine-readable; `param` names the field at fault; `details` holds plain JSON values
    (numbers, strings) that a client may want to act on; `retry_after` is in seconds.
    """

    status = 400
    code = "invalid_request"
    #: What OpenAI's clients are told in `x-should-retry`; None leaves it to their own judgement, which is to retry each
    #: 408, 409, 429 and 5xx.
    should_retry: bool | None = None
    message: str | Promise = _("The request could not be carried out.")

    def __init__(
        self,
        message: str | Promise | None = None,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        **details: Any,
    ) -> None:
        self.message = message if message is not None else type(self).message
        self.code = code or type(self).code
        self.param = param
        self.retry_after = retry_after
        self.details = details
        #: What the answer says in headers beside what it says of every error.
        self.headers: dict[str, str] = {}
        super().__init__(self.code)

    def __str__(self) -> str:
        return str(self.message)


class InvalidInput(ChorusError):
    """Something that was sent is wrong; sending it again unchanged cannot help."""


class NotAuthenticated(ChorusError):
    """No valid key or session."""

    status = 401
    code = "invalid_api_key"
    message = _("Send a valid API key as “Authorization: Bearer …” or “xi-api-key: …”.")


class NotAllowed(ChorusError):
    """Known, but not permitted."""

    status = 403
    code = "permission_denied"
    message = _("You do not have permission to do this. Ask an owner or admin of your team.")


class NotFound(ChorusError):
    """It does not exist, or it belongs to somebody else: the two answers are the same on purpose."""

    status = 404
    code = "not_found"
    message = _("There is nothing at this address, or it is not yours.")


class Conflict(ChorusError):
    """The object is in a state that does not allow this."""

    status = 409
    code = "conflict"
    should_retry: bool | None = False


class PayloadTooLarge(ChorusError):
    """The body is larger than what is taken here."""

    status = 413
    code = "payload_too_large"


class Unprocessable(ChorusError):
    """Well-formed, but contradicts what was sent before."""

    status = 422
    code = "unprocessable"


class LimitReached(ChorusError):
    """A rate, a slot or a quota is used up; `retry_after` says when to come back."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(
        self, message: str | Promise, *, retry_after: int, code: str | None = None, **details: Any
    ) -> None:
        # Never without a time: a client that is told to wait must know how long.
        super().__init__(message, code=code, retry_after=retry_after, **details)


class Unavailable(ChorusError):
    """A part of the service is down for now."""

    status = 503
    code = "unavailable"
    message = _("A part of the service does not answer right now. Try again in a few seconds.")
