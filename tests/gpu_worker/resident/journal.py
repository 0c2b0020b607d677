"""One JSON object a line, from every process of a test, with the machine's monotonic clock."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any


def write(event: str, **fields: Any) -> None:
    """Append an event to the test's journal; short lines, so that appending is atomic."""
    line = json.dumps({"event": event, "at": time.monotonic(), "pid": os.getpid(), **fields})
    with Path(os.environ["CHORUS_TEST_JOURNAL"]).open("a") as file:
        file.write(line + "\n")


def read(path: Path, event: str) -> list[dict[str, Any]]:
    """The events of that name so far."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [entry for line in lines if (entry := json.loads(line))["event"] == event]
