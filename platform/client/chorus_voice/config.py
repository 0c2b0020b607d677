"""Which server, and with which key: CHORUS_URL and CHORUS_API_KEY, else what `chorus login` kept."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from chorus_voice.errors import NOT_ALLOWED, CommandError, UsageError
from chorus_voice.words import _

DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Server:
    """`url` without a slash at its end."""

    url: str
    key: str


def path() -> Path:
    """Where `chorus login` keeps it: readable by nobody else."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "chorus" / "config.json"


def load() -> Server:
    """CommandError when there is no key."""
    kept = _kept()
    url = clean_url(os.environ.get("CHORUS_URL") or kept.get("url") or DEFAULT_URL)
    key = os.environ.get("CHORUS_API_KEY", "").strip()
    # A key goes to the server that it was entered for, and to no other.
    if not key and kept.get("url") == url:
        key = kept.get("key", "")
    if not key:
        raise CommandError(
            _("There is no key for {url}: run `chorus login`, or set CHORUS_API_KEY.").format(url=url),
            NOT_ALLOWED,
        )
    return Server(url, clean_key(key))


def default_url() -> str:
    """What `login` offers."""
    return os.environ.get("CHORUS_URL") or _kept().get("url") or DEFAULT_URL


def _kept() -> dict[str, str]:
    try:
        kept = json.loads(path().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise CommandError(
            _("{path} cannot be read: run `chorus login` again.").format(path=path())
        ) from None
    return {name: str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}


def save(server: Server) -> Path:
    """Keep it in a file that only its owner can read, never half-written."""
    target = path()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp makes it with mode 0600, whatever the umask.
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".config-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"url": server.url, "key": server.key}, file)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
    return target


def forget() -> bool:
    """Whether there was something to forget."""
    try:
        path().unlink()
    except FileNotFoundError:
        return False
    return True


def clean_url(url: str) -> str:
    """The address without its end; UsageError when it is none."""
    url = url.strip().rstrip("/").removesuffix("/v1")
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or re.search(r"\s", url) or not url.isprintable() or "@" in urlsplit(url).netloc:
        raise UsageError(
            _("“{url}” is no address of a server, such as {example}.").format(url=url, example=DEFAULT_URL)
        )
    return url


def clean_key(key: str) -> str:
    """CommandError for what cannot be sent in a header."""
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise CommandError(_("This is no API key: it holds characters that no key has."), NOT_ALLOWED)
    return key
