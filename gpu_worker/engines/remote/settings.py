"""Where the servers are, and what they understand, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import urlsplit

from gpu_worker.engines.base import EngineUnavailable

#: What a server understands beyond OpenAI's fields: vLLM-Omni a clip and its transcript with each request,
#: Chorus the language and the seed.
Dialect = Literal["openai", "vllm-omni", "chorus"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The servers behind the remote engine.

    `urls` are base addresses that end before `/audio/speech` (`…/v1`). `concurrency` is how many segments are
    in flight at each of them. `timeout` is how many seconds may pass without a byte. `sample_rate` in Hz is
    what the servers' `pcm` has unless their answer says otherwise. `instructions` says whether they follow
    instructions: vLLM-Omni's CosyVoice3 does not, and what would be ignored is refused.
    """

    urls: tuple[str, ...]
    api_key: str = ""
    model: str = ""
    dialect: Dialect = "openai"
    concurrency: int = 4
    timeout: float = 120.0
    sample_rate: int = 24_000
    instructions: bool = True

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """The settings that CHORUS_REMOTE_* name; EngineUnavailable for a value that makes no sense."""
        values = os.environ if environ is None else environ
        dialect = values.get("CHORUS_REMOTE_DIALECT") or "openai"
        if dialect not in get_args(Dialect):
            raise EngineUnavailable(
                f"CHORUS_REMOTE_DIALECT is {dialect!r}; it may be {', '.join(get_args(Dialect))}"
            )
        instructions = values.get("CHORUS_REMOTE_INSTRUCTIONS") or ("0" if dialect == "vllm-omni" else "1")
        if instructions not in ("0", "1"):
            raise EngineUnavailable(f"CHORUS_REMOTE_INSTRUCTIONS is {instructions!r}; say 1 or 0")
        return cls(
            urls=_urls(values.get("CHORUS_REMOTE_URLS", "")),
            api_key=_secret(values, "CHORUS_REMOTE_API_KEY"),
            model=values.get("CHORUS_REMOTE_MODEL", ""),
            dialect=cast("Dialect", dialect),
            concurrency=_integer(values, "CHORUS_REMOTE_CONCURRENCY", 4, least=1, most=1024),
            timeout=float(_integer(values, "CHORUS_REMOTE_TIMEOUT", 120, least=1, most=3600)),
            sample_rate=_integer(values, "CHORUS_REMOTE_SAMPLE_RATE", 24_000, least=8_000, most=192_000),
            instructions=instructions == "1",
        )


def _urls(value: str) -> tuple[str, ...]:
    urls = tuple(url.rstrip("/") for url in value.replace(",", " ").split())
    if not urls:
        raise EngineUnavailable(
            "CHORUS_REMOTE_URLS names no server; give the addresses of one or more, such as http://gpu-1:8091/v1"
        )
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EngineUnavailable(
                f"CHORUS_REMOTE_URLS: {url!r} is no address; it begins with http:// or https://"
            )
    return urls


def _secret(values: Mapping[str, str], name: str) -> str:
    if path := values.get(f"{name}_FILE"):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise EngineUnavailable(f"{name}_FILE: {path} cannot be read ({error.strerror})") from error
    return values.get(name, "")


def _integer(values: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    value = values.get(name) or str(default)
    if not value.isdecimal() or not least <= int(value) <= most:
        raise EngineUnavailable(f"{name} is {value!r}; it must be a whole number from {least} to {most}")
    return int(value)
