"""`chorus login` and `chorus logout`."""

from __future__ import annotations

import argparse
import getpass
import sys
from urllib.parse import urlsplit

from chorus_voice import config
from chorus_voice.config import Server
from chorus_voice.errors import Refused, UsageError
from chorus_voice.http import Api
from chorus_voice.words import _


def login(options: argparse.Namespace) -> int:
    """Ask for address and key, try them, keep them. The key is never on the command line, where others could see it."""
    url = options.url or ""
    if not url and sys.stdin.isatty():
        default = config.default_url()
        url = input(_("Address of the server [{default}]: ").format(default=default)).strip() or default
    url = config.clean_url(url or config.default_url())
    if sys.stdin.isatty():
        key = getpass.getpass(_("API key (it is not shown): ")).strip()
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise UsageError(_("No key was given: type it, or send it on standard input."))
    server = Server(url, config.clean_key(key))
    try:
        Api(server, patience=5).get("/quota")
    except Refused as error:
        if error.code != "insufficient_scope":  # a good key, for something else
            raise
    kept = config.save(server)
    host = urlsplit(url).hostname or ""
    if url.startswith("http://") and host not in {"localhost", "::1"} and not host.startswith("127."):
        print(
            _("Note: {url} is not encrypted; whoever listens on the way learns the key.").format(url=url),
            file=sys.stderr,
        )
    print(_("Signed in to {url}. The key is in {path}.").format(url=url, path=kept))
    return 0


def logout(_options: argparse.Namespace) -> int:
    """Forget address and key."""
    print(_("Forgotten.") if config.forget() else _("There was nothing to forget."))
    return 0
