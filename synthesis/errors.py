"""Errors of the domain; the tree's root and its HTTP statuses are in `accounts.errors`."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from accounts.errors import ChorusError, Conflict, InvalidInput, NotAllowed, NotFound

#: Why a request (`voice_taken_down`, `voice_deleted`) has failed; translated where it is shown.
VOICE_TAKEN_DOWN = gettext_noop("The operator of this service has blocked this voice.")
VOICE_DELETED = gettext_noop("The voice was deleted before this was spoken.")


class VoiceNotFound(NotFound):
    """No such voice for this team; also another team's."""

    code = "voice_not_found"
    message = _("There is no such voice. GET /v1/voices lists the voices that you can use.")


class VoiceIsPreset(NotAllowed):
    """What only a team's own voice has, or what only its team may do with it."""

    code = "voice_is_preset"
    message = _(
        "A preset belongs to the installation: it has no recordings, and cannot be changed, deleted or exported. "
        "Clone a voice of your own."
    )


class ConsentNotFound(NotFound):
    """No such recorded consent in this team."""

    code = "consent_not_found"
    message = _("There is no such recorded consent. GET /v1/audio/voice_consents lists them.")


class WebhookNotFound(NotFound):
    """No such webhook in this team."""

    code = "webhook_not_found"
    message = _("There is no such webhook in your team.")


class DeliveryNotFound(NotFound):
    """The webhook has no such delivery (any more)."""

    code = "delivery_not_found"
    message = _("There is no such delivery. They are kept for thirty days.")


class UnknownVoice(InvalidInput):
    """A submission names a voice that the team does not have."""

    code = "voice_not_found"
    message = _("There is no such voice. GET /v1/voices lists the voices that you can use.")


class BlockedVoice(UnknownVoice):
    """A submission names a voice that an operator has forbidden; its reason is in the message."""

    code = "voice_blocked"
    message = _("The operator has blocked this voice (%(reason)s). Choose another one.")

    def __init__(self, reason: str) -> None:
        super().__init__(type(self).message % {"reason": reason}, param="voice")


class NotAVoice(InvalidInput):
    """A file that is no exported voice, or was changed since."""

    code = "voice_file_unreadable"
    message = _("This is not the file of a voice as it was exported: %(reason)s.")

    def __init__(self, reason: str) -> None:
        super().__init__(type(self).message % {"reason": reason}, param="file")


class RequestNotFound(NotFound):
    """No such request in this team."""

    code = "synthesis_not_found"
    message = _("There is no such synthesis request in your team.")


class BatchNotFound(NotFound):
    """No such batch in this team."""

    code = "batch_not_found"
    message = _("There is no such batch in your team.")


class NotReady(Conflict):
    """The audio of a request that has not succeeded."""

    code = "not_ready"


class OutputExpired(NotFound):
    """The sound was deleted when its time was over."""

    status = 410
    code = "output_expired"
    message = _("The recording was deleted when its time was over. Submit the text again.")


class RangeOutside(ChorusError):
    """A part of a file that lies behind its end; `size` is that of the whole, in bytes."""

    status = 416
    code = "range_not_satisfiable"
    message = _("There is nothing in this range: the file has %(size)d bytes.")

    def __init__(self, size: int) -> None:
        super().__init__(type(self).message % {"size": size}, param="Range", size=size)
        self.headers["Content-Range"] = f"bytes */{size}"
