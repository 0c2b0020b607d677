"""The streams process (uvicorn with config.asgi) on a free port of loopback, over the test database."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 60
#: Its database connections.
POOL = 4


class Streams:
    """A running process, its address, and clients whose requests are under way at once.

    The clients live in a thread of their own, so that a test stays synchronous and keeps its one database connection.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(base_url=url, timeout=120, limits=limits)

    @property
    def threads(self) -> int:
        """How many the process has right now."""
        return psutil.Process(self.process.pid).num_threads()

    def begin(self, method: str, path: str, person: Any = None, **options: Any) -> Future[httpx.Response]:
        """Send a request with a person's key; cancelling the future hangs up."""
        headers = getattr(person, "headers", {}) | options.pop("headers", {})
        request = self._client.request(method, path, headers=headers, **options)
        return asyncio.run_coroutine_threadsafe(request, self._loop)

    def request(self, method: str, path: str, person: Any = None, **options: Any) -> httpx.Response:
        """The same, to its end."""
        return self.begin(method, path, person, **options).result(30)

    def close(self) -> None:
        """Close the clients; the process is stopped by `serve`."""
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _database_url() -> str:
    database = connection.settings_dict
    user, password = quote(database["USER"]), quote(database["PASSWORD"])
    return f"postgres://{user}:{password}@{database['HOST']}:{database['PORT']}/{database['NAME']}"


@contextmanager
def serve(application: str = "config.asgi:application") -> Iterator[Streams]:
    """Start it, wait until it answers, stop it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "DATABASE_URL": _database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "CHORUS_DB_POOL": str(POOL),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
    }
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", application, "--port", str(port)),
            *("--lifespan", "off", "--no-proxy-headers", "--no-access-log", "--log-level", "warning"),
            *("--timeout-graceful-shutdown", "3"),
        ],
        env=environment,
        cwd=ROOT,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                httpx.get(f"{url}/healthz").raise_for_status()
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("The streams process did not start") from None
                time.sleep(0.05)
        streams = Streams(process, url)
        try:
            yield streams
        finally:
            streams.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
