"""Typed reading of the environment, in one place; a wrong value stops the start with its name, never its content."""

from __future__ import annotations

import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


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


def database(name: str) -> dict[str, object]:
    """Django's DATABASES entry from postgres://user:password@host:port/name?option=value."""
    url = urlsplit(text(name))
    if url.scheme not in {"postgres", "postgresql"} or not url.path.strip("/"):
        raise ImproperlyConfigured(f"{name} must look like postgres://user:password@host:5432/name.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.strip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": url.hostname or "",
        "PORT": str(url.port or ""),
        "OPTIONS": dict(parse_qsl(url.query)),
    }


def peppers(name: str) -> dict[str, bytes]:
    """Pepper id → secret from "1:hex,2:hex"; the last one is used for new keys."""
    result = {}
    for part in words(name):
        identifier, _, value = part.partition(":")
        try:
            result[identifier] = bytes.fromhex(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must look like 1:hex[,2:hex].") from None
        if len(result[identifier]) < 16:
            raise ImproperlyConfigured(f"{name}: pepper {identifier} is shorter than 16 bytes.")
    if not result:
        raise ImproperlyConfigured(f"Set {name} to 1:hex (openssl rand -hex 32 makes one).")
    return result
