"""Private files of a data folder: generated once, kept, readable by the owner only."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any


def private_folder(path: Path) -> Path:
    """Make a folder, with those above it, that only its owner may enter."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


def write_private(path: Path, text: str) -> None:
    """Write `text` to `path` with mode 0600, whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return content if isinstance(content, dict) else {}


class Secrets:
    """Generated secrets, kept in one JSON file (mode 0600) so that a restart finds the same."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, name: str, *, bytes_of_entropy: int = 24) -> str:
        """The secret called `name`, made at its first use: hexadecimal digits, safe in URLs and in files."""
        # Read each time: another object on the same file may have added one, which must not be lost by our write.
        values: dict[str, str] = read_json(self.path)
        if name not in values:
            values[name] = secrets.token_hex(bytes_of_entropy)
            write_private(self.path, json.dumps(values, indent=2))
        return values[name]
