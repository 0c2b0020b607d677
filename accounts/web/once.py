"""Forms that cost something: sent twice (a double press, two at once), they do their work once.

Each form carries a word of its own (`{% once %}`). The same word with the same contents is the same request, however
often it comes; with other contents, as after a step back in the browser, it is a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from uuid import UUID

from accounts.services import idempotency
from accounts.web.shell import PageRequest

#: As the template tag of this name writes it.
FIELD = "once"
_BESIDE = {FIELD, "csrfmiddlewaretoken"}


def once(request: PageRequest, work: Callable[[], UUID]) -> tuple[UUID, bool]:
    """`(id, replayed)` of what `work` makes, or made when this form came before. Without the word it always works.

    Raises what `work` raises, after which the form may be mended and sent again, and Conflict while the same form is
    still being worked on.
    """
    word = request.POST.get(FIELD, "")
    contents = sorted((name, values) for name, values in request.POST.lists() if name not in _BESIDE)
    sent = json.dumps([request.user.pk, request.path, word, contents], default=str)
    _status, body, replayed = idempotency.once(
        actor=request.actor,
        key="form:" + hashlib.sha256(sent.encode()).hexdigest() if word else None,
        payload=request.path,
        work=lambda: (200, {"id": str(work())}),
    )
    return UUID(body["id"]), replayed
