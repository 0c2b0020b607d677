"""Typed reading of the environment, in one place; a wrong value stops the start with its name, never its content."""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
#: A `/` in a password ends the host: the address is then another one.
_SIGNS = " In its password write / as %2F, ? as %3F, # as %23 and @ as %40."


def text(name: str, default: str | None = None) -> str:
    """The variable, or the content of the file that NAME_FILE points to (how Docker and Kubernetes hand out
    secrets), or `default`; ImproperlyConfigured when none of them is there."""
    file = os.environ.get(f"{name}_FILE")
    if file:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE cannot be read: {error.strerror}") from None
    value = os.environ.get(name, default)
    if value is None:
        raise ImproperlyConfigured(f"Set {name} (or {name}_FILE).")
    return value


def boolean(name: str, default: bool = False) -> bool:
    """1/true/yes/on or 0/false/no/off."""
    value = text(name, "1" if default else "0").lower()
    if value not in _TRUE | _FALSE:
        raise ImproperlyConfigured(f"{name} must be one of 1, true, yes, on, 0, false, no, off.")
    return value in _TRUE


def integer(name: str, default: int) -> int:
    """A whole number."""
    try:
        return int(text(name, str(default)))
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number.") from None


def port(name: str, default: int) -> int:
    """Where a server listens, 1 to 65535."""
    value = integer(name, default)
    if not 1 <= value <= 65535:
        raise ImproperlyConfigured(f"{name} must be a port, from 1 to 65535.")
    return value


def choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    value = text(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}.")
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A list of addresses and networks, separated by commas or spaces."""
    try:
        return [ip_network(word) for word in text(name, "").replace(",", " ").split()]
    except ValueError:
        raise ImproperlyConfigured(f"{name} must look like 10.0.0.1, 192.168.0.0/16.") from None


def origin(name: str, default: str) -> str:
    """The address of a site, "https://voice.example.org:8443", as browsers name it: without the port where it is the
    scheme's own, and without a slash at the end.
    """
    given = text(name, default)
    try:
        url = urlsplit(given)
        usual = {"http": 80, "https": 443}[url.scheme]
        if not url.hostname or url.path.strip("/") or url.query:
            raise ValueError(given)
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        return f"{url.scheme}://{host}" + (f":{url.port}" if url.port not in (None, usual) else "")
    except (KeyError, ValueError):
        raise ImproperlyConfigured(f"{name} must look like https://voice.example.org.") from None


def server(name: str) -> str:
    """The http address of a server, such as S3's, with its path where it has one; empty where none is named."""
    given = text(name, "")
    if given and not _is_address(given, {"http", "https"}):
        raise ImproperlyConfigured(f"{name} must look like https://storage.example.org:9000.")
    return given


def redis(name: str) -> str:
    """redis://:password@host:port/number, the same with rediss:// (by TLS), or unix:///path."""
    given = text(name)
    if given.startswith("unix://"):
        return given
    if not _is_address(given, {"redis", "rediss"}, path=r"(/\d*)?"):
        raise ImproperlyConfigured(f"{name} must look like redis://:password@host:6379/0.{_SIGNS}")
    return given


def _is_address(given: str, schemes: set[str], *, path: str = ".*") -> bool:
    """Whether it names a host, and a port that there can be."""
    try:
        url = urlsplit(given)
        named = url.scheme in schemes and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
    return named and not re.search(r"\s|#", given) and re.fullmatch(path, url.path) is not None


def database(name: str) -> dict[str, object]:
    """Django's DATABASES entry from postgres://user:password@host:port/name?option=value."""
    given = text(name)
    try:
        url = urlsplit(given)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), None
    # An @ behind the host: a sign in the password has ended the host before its time.
    if url.scheme not in {"postgres", "postgresql"} or not url.path.strip("/") or "@" in url.path:
        raise ImproperlyConfigured(f"{name} must look like postgres://user:password@host:5432/name.{_SIGNS}")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.strip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(port or ""),
        # Without it nothing could be prepared; with it only what `accounts.queries` wants prepared is.
        "OPTIONS": {**dict(parse_qsl(url.query)), "prepare_threshold": 1},
    }


def peppers(name: str) -> dict[str, bytes]:
    """Pepper id → secret from "1:hex,2:hex"; the last one is used for new keys."""
    result = {}
    for part in words(name):
        # Without the colon all of it would be the id, and ids are told: it is the secret.
        identifier, colon, value = part.partition(":")
        try:
            if not colon:
                raise ValueError
            result[identifier] = bytes.fromhex(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must look like 1:hex[,2:hex].") from None
        if len(result[identifier]) < 16:
            raise ImproperlyConfigured(f"{name}: pepper {identifier} is shorter than 16 bytes.")
    if not result:
        raise ImproperlyConfigured(f"Set {name} to 1:hex (openssl rand -hex 32 makes one).")
    return result
