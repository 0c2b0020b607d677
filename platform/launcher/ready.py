"""Whether the service is ready, and what a person is told once it is."""

from __future__ import annotations

import json
import re
import shlex
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT_KEYS = ("email", "password", "api_key", "admin_email", "admin_password")
#: What `gpu_worker.supervisor` writes.
_WORKER_ENDED = re.compile(r"Worker \S+ ended with status")
_EXAMPLE = "Hello from Chorus. This sentence was spoken by your own server."


def is_ready(url: str, *, with_workers: bool) -> bool:
    """Whether the public address answers and everything behind it does; `with_workers`: a worker too."""
    status, parts = _get(f"{url}/readyz")
    if with_workers:
        return status == 200
    return bool(parts) and all(parts.get(name) == "ok" for name in ("database", "redis", "storage"))


def streams_answer(url: str) -> bool:
    """Whether the process behind event streams answers, through the public address."""
    try:
        with urllib.request.urlopen(f"{url}/events/", timeout=5) as answer:  # noqa: S310 (our own address)
            # Nobody is signed in here, so there is nothing to stream.
            return bool(answer.status == 204)
    except OSError:
        return False


def what_is_missing(url: str) -> str:
    """In words, for a message."""
    status, parts = _get(f"{url}/readyz")
    missing = [name for name, state in parts.items() if name != "status" and state != "ok"]
    return f"missing: {', '.join(missing)}" if missing else f"{url}/readyz answers {status}"


def why_workers_end(log: bytes, *, times: int) -> str:
    """The last words of a worker, from what the supervisor's `log` has of this start; empty unless workers have ended
    `times` times. They keep their supervisor alive, so that nothing else shows it."""
    lines = [line.strip() for line in log.decode(errors="replace").splitlines() if line.strip()]
    ends = [index for index, line in enumerate(lines) if _WORKER_ENDED.search(line)]
    if len(ends) < times:
        return ""
    last = lines[ends[-1] - 1] if ends[-1] else ""
    return str(_object(last.encode()).get("message") or last or "it said nothing")


def account(bootstrap: dict[str, Any]) -> dict[str, Any]:
    """What `ready.json` holds beside the address."""
    return {key: bootstrap[key] for key in ACCOUNT_KEYS if key in bootstrap}


def is_refused(url: str, bootstrap: dict[str, Any]) -> bool:
    """Whether the first API key no longer works: revoked, or of another installation, whose backup was restored."""
    key = bootstrap.get("api_key")
    return bool(key) and _get(f"{url}/v1/voices", key)[0] in {401, 403}


def text(url: str, bootstrap: dict[str, Any], logs: Path) -> str:
    """The lines that a person sees: where to go, as whom, and a command that works when pasted."""
    known = account(bootstrap)
    key = known.get("api_key")
    voice = _voice(url, key) if key else ""
    request = json.dumps({"voice": voice or "YOUR VOICE", "input": _EXAMPLE})
    curl = [
        f"curl -sS --fail-with-body {url}/v1/audio/speech",
        f"-H {shlex.quote('Authorization: Bearer ' + (key or 'YOUR KEY'))}",
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(request)} -o speech.mp3",
    ]
    lines = ["", f"  Address     {url}"]
    if "email" in known:
        lines.append(f"  Account     {known['email']}   password {known['password']}")
    if "admin_email" in known:
        lines.append(f"  Operator    {known['admin_email']}   password {known['admin_password']}")
    if key:
        lines.append(f"  API key     {key}")
    if len(known) < len(ACCOUNT_KEYS):
        lines.append("  Of the first accounts and their key, what no longer works is left out: use your own.")
    lines.append("")
    if key and not voice:
        lines += [f"  There is no voice yet: make one at {url}/voices/new/, then", ""]
    lines += ["  " + " ".join(curl), "", f"  Ctrl-C stops it. Logs: {logs}", ""]
    return "\n".join(lines)


def _voice(url: str, key: str) -> str:
    """The name of an English preset, or of what there is; empty where the engine has no voice."""
    _status, answer = _get(f"{url}/v1/voices", key)
    voices = answer.get("results") or answer.get("data") or []
    presets = [voice for voice in voices if voice.get("kind") == "preset"]
    english = [voice for voice in presets if str(voice.get("language", "")).lower().startswith("en")]
    return str((english or presets or voices or [{"name": ""}])[0]["name"])


def _get(url: str, key: str | None = None) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of an answer; 0 and an empty one when there is none. Never through a proxy."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return response.status, _object(response.read())
    except urllib.error.HTTPError as error:
        return error.code, _object(error.read())
    except OSError:
        return 0, {}


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
