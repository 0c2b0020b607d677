"""Do the counters say what the ledger says, and does every request have the reservation that it should?

Both are changed in the same transactions, so that the answer is always yes; a no is a bug or a hand in the database.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from synthesis import tally

logger = logging.getLogger(__name__)

#: The current month and the one before: older counters change no more.
_SINCE = timedelta(days=62)

# One statement sees one moment: counters and entries of a transaction that is under way are both in or both out.
_COUNTERS = """
WITH entry AS (
    SELECT team_id, user_id, api_key_id, period_start,
           grouping(user_id) = 0 AS of_user, grouping(api_key_id) = 0 AS of_key,
           coalesce(sum(characters) FILTER (WHERE kind = 'settle'), 0) AS used,
           coalesce(sum(characters) FILTER (WHERE kind = 'reserve'), 0)
             - coalesce(sum(characters) FILTER (WHERE kind IN ('settle', 'release')), 0) AS reserved
    FROM accounts_ledgerentry WHERE period_start >= %(since)s AND kind IN ('reserve', 'settle', 'release')
    GROUP BY GROUPING SETS ((team_id, period_start), (team_id, period_start, user_id),
                            (team_id, period_start, api_key_id))
)
SELECT count(*) FROM accounts_usagecounter c
LEFT JOIN entry e ON e.team_id = c.team_id AND e.period_start = c.period_start
    AND e.of_user = (c.user_id IS NOT NULL) AND e.of_key = (c.api_key_id IS NOT NULL)
    AND e.user_id IS NOT DISTINCT FROM c.user_id AND e.api_key_id IS NOT DISTINCT FROM c.api_key_id
WHERE c.period_start >= %(since)s AND (c.used <> coalesce(e.used, 0) OR c.reserved <> coalesce(e.reserved, 0))
"""

_REQUESTS = """
SELECT count(*) FROM accounts_ledgerentry r
JOIN synthesis_synthesisrequest s ON s.id = r.request_id
LEFT JOIN accounts_ledgerentry c ON c.request_id = r.request_id AND c.kind IN ('settle', 'release')
WHERE r.kind = 'reserve' AND r.period_start >= %(since)s
  AND ((s.status IN ('queued', 'running')) = (c.id IS NOT NULL)
       OR (s.status = 'succeeded' AND c.kind = 'release')
       OR (s.status IN ('failed', 'canceled') AND c.kind = 'settle'))
"""


def differences() -> dict[str, int]:
    """How many usage counters differ from the sum of their entries (`counters`), and how many requests are not
    reserved, settled or released as their status wants it (`requests`), this month and the last."""
    values = {"since": (timezone.now() - _SINCE).date()}
    found = {}
    with connection.cursor() as cursor:
        for kind, query in (("counters", _COUNTERS), ("requests", _REQUESTS)):
            cursor.execute(query, values)
            found[kind] = int(cursor.fetchone()[0])
    return found


def check() -> int:
    """Look, write the numbers down for `/metrics`, and log what differs; how many in all."""
    found = differences()
    for kind, number in found.items():
        tally.note(tally.field("ledger_differences", kind), number)
    if any(found.values()):
        logger.error("The ledger and what it accounts for differ", extra=found)
    return sum(found.values())
